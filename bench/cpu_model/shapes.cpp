#include "bench/cpu_model/shapes.h"

#include <algorithm>
#include <cstdint>

#include "compiler/base/status.h"

namespace wl {
namespace {

// Numbers of recorded schedules of a ranked shape, of a calibration shape, and of a ranked shape with weights in
// panels. The model is fitted to only the first kFitted schedules of a calibration shape; the others serve to judge a
// new term of the model before it is applied to the ranked shapes.
constexpr int kRanked = 150, kCalibrating = 20, kOfWeights = 32;

enum Tail { kPlain, kBias, kBiasRelu, kBiasGelu };

class Text {
 public:
  int add(const std::string& value, const std::string& type) {
    append(&text_, "  %", next_, " = ", value, " : f32[", type, "]\n");
    return next_++;
  }
  int input(const std::string& type) {
    append(&text_, "  %", next_, " = input \"i", next_, "\" : f32[", type, "] normal(0,1)\n");
    return next_++;
  }
  // Returns the text of the graph that outputs `value`, of shape `type`, after what `tail` names: the addition of a
  // bias that has the extent `extent` and varies along `axis`, and an activation.
  std::string finish(int value, const std::string& type, Tail tail, const std::string& extent, int axis) {
    if (tail != kPlain) {
      const int bias = add(cat("broadcast %", input(extent), " dims=[", axis, "]"), type);
      value = add(cat("add %", value, " %", bias), type);
    }
    if (tail == kBiasRelu) value = add(cat("max %", value, " %", add("constant 0", type)), type);
    if (tail == kBiasGelu) {
      const int scaled = add(cat("mul %", value, " %", add("constant 0.70710677", type)), type);
      const int one = add(cat("add %", add(cat("erf %", scaled), type), " %", add("constant 1", type)), type);
      const int half = add(cat("mul %", value, " %", add("constant 0.5", type)), type);
      value = add(cat("mul %", half, " %", one), type);
    }
    return cat("graph {\n", text_, "  output \"y\" %", value, "\n}");
  }

 private:
  std::string text_;
  int next_ = 0;
};

CpuShape gemm(std::string name, int64_t m, int64_t n, int64_t k, Tail tail = kPlain) {
  Text text;
  const std::string type = cat(m, ",", n);
  const int a = text.input(cat(m, ",", k)), b = text.input(cat(k, ",", n));
  const int c = text.add(cat("contract %", a, " %", b, " \"mk,kn->mn\""), type);
  return {std::move(name), text.finish(c, type, tail, cat(n), 1)};
}

// A product of `batch` pairs of matrices. `transposed`: the right operand is stored as [batch, n, k].
CpuShape batched(std::string name, int64_t batch, int64_t m, int64_t n, int64_t k, bool transposed) {
  Text text;
  const std::string type = cat(batch, ",", m, ",", n);
  const int a = text.input(cat(batch, ",", m, ",", k));
  const int b = text.input(transposed ? cat(batch, ",", n, ",", k) : cat(batch, ",", k, ",", n));
  const int c = text.add(cat("contract %", a, " %", b, transposed ? " \"bmk,bnk->bmn\"" : " \"bmk,bkn->bmn\""), type);
  return {std::move(name), text.finish(c, type, kPlain, "", 0)};
}

// A product with a weight that is stored in panels of `panel` columns each.
CpuShape linear(std::string name, int64_t panel, int64_t m, int64_t n, int64_t k, Tail tail = kBias) {
  Text text;
  const int a = text.input(cat(m, ",", k)), b = text.input(cat(n / panel, ",", k, ",", panel));
  const int c = text.add(cat("contract %", a, " %", b, " \"mk,pkq->mpq\""), cat(m, ",", n / panel, ",", panel));
  const std::string type = cat(m, ",", n);
  return {std::move(name), text.finish(text.add(cat("reshape %", c), type), type, tail, cat(n), 1)};
}

// A convolution with `window` x `window` taps, padded so that stride 1 keeps the size of the image. `panel`: number of
// filters in each panel of the weights; 0: the weights are not in panels. `last`: channels are the innermost dimension
// of images, as the cover channels-last stores them.
CpuShape conv(std::string name, int64_t from, int64_t to, int64_t size, int64_t window, int64_t stride = 1,
              int64_t dilation = 1, int64_t panel = 0, bool last = false) {
  Text text;
  const int64_t reach = (window - 1) * dilation, padded = size + reach, out = (padded - reach - 1) / stride + 1;
  const auto image_of = [last](const auto& channels, const auto& rows, const auto& columns, const char* between = ",") {
    return last ? cat(rows, between, columns, between, channels) : cat(channels, between, rows, between, columns);
  };
  const auto letters_of = [&](const char* channels) { return image_of(channels, "m", "o", ""); };
  const std::string type = image_of(to, out, out);
  const std::string product = panel > 0 ? image_of(cat(to / panel, ",", panel), out, out) : type;
  const std::string taps = window == 1 && stride == 1 ? "" : cat(",", window, ",", window);
  int image = text.input(image_of(from, size, size));
  const int weights = text.input(panel > 0 ? cat(to / panel, ",", from, taps, ",", panel) : cat(to, ",", from, taps));
  if (!taps.empty()) {
    if (const int64_t low = reach / 2; reach > 0)
      image =
          text.add(cat("pad %", image, " low=[", image_of(0, low, low), "] high=[", image_of(0, low, low), "] value=0"),
                   image_of(from, padded, padded));
    image = text.add(cat("reshape %", image), image_of(cat("1,", from), padded, padded));
    const std::string one = cat(window, ",", stride, ",", dilation);
    image = text.add(cat("window %", image, " axes=[", last ? "0,1" : "2,3", "] params=[", one, ",", one, "]"),
                     cat(image_of(cat("1,", from), out, out), taps));
    image = text.add(cat("reshape %", image), cat(image_of(from, out, out), taps));
  }
  const char* const each = taps.empty() ? "" : "li";
  int result = text.add(cat("contract %", image, " %", weights, " \"", letters_of("k"), each, ",nk", each,
                            panel > 0 ? "u->" : "->", letters_of(panel > 0 ? "nu" : "n"), "\""),
                        product);
  if (panel > 0) result = text.add(cat("reshape %", result), type);
  return {std::move(name), text.finish(result, type, kBiasRelu, cat(to), last ? 2 : 0)};
}

// Convolutions with weights in panels. Their spaces also have transposed tiles, in which the micro-kernel loads vectors
// of filters and broadcasts pixels.
std::vector<CpuShape> shapes_of_weights(int64_t panel) {
  const auto in_panels = [panel](std::string name, int64_t from, int64_t to, int64_t size, int64_t window,
                                 int64_t stride = 1) {
    return conv(std::move(name), from, to, size, window, stride, 1, panel);
  };
  std::vector<CpuShape> out = {in_panels("panels_resnet_stem", 3, 64, 224, 7, 2),
                               in_panels("panels_resnet_56_3", 64, 64, 56, 3),
                               in_panels("panels_resnet_28_3", 128, 128, 28, 3),
                               in_panels("panels_resnet_14_3", 256, 256, 14, 3),
                               in_panels("panels_resnet_7_3", 512, 512, 7, 3),
                               in_panels("panels_resnet_56_3_s2", 128, 128, 56, 3, 2),
                               in_panels("panels_resnet_28_3_s2", 256, 256, 28, 3, 2),
                               in_panels("panels_resnet_14_3_s2", 512, 512, 14, 3, 2),
                               in_panels("panels_resnet_56_1", 64, 256, 56, 1),
                               in_panels("panels_resnet_28_1", 512, 128, 28, 1),
                               in_panels("panels_resnet_14_1", 1024, 256, 14, 1),
                               in_panels("panels_resnet_7_1", 512, 2048, 7, 1),
                               in_panels("panels_resnet_7_1_down", 2048, 512, 7, 1),
                               in_panels("panels_resnet_14_1_s2", 1024, 2048, 14, 1, 2),
                               linear("panels_bert_projection", panel, 512, 768, 768),
                               linear("panels_bert_ffn_up", panel, 512, 3072, 768, kBiasGelu),
                               linear("panels_rows_64", panel, 64, 768, 3072),
                               linear("panels_rows_16", panel, 16, 768, 3072),
                               linear("panels_rows_8", panel, 8, 4096, 4096)};
  const auto last = [panel, &out](std::string name, int64_t from, int64_t to, int64_t size, int64_t window,
                                  int64_t stride = 1) {
    out.push_back(conv(std::move(name), from, to, size, window, stride, 1, panel, /*last=*/true));
  };
  last("last_resnet_56_3", 64, 64, 56, 3);
  last("last_resnet_28_3", 128, 128, 28, 3);
  last("last_resnet_14_3", 256, 256, 14, 3);
  last("last_resnet_7_3", 512, 512, 7, 3);
  last("last_resnet_28_3_s2", 256, 256, 28, 3, 2);
  last("last_resnet_14_3_s2", 512, 512, 14, 3, 2);
  last("last_resnet_56_1", 64, 256, 56, 1);
  last("last_resnet_14_1", 1024, 256, 14, 1);
  last("last_resnet_7_1", 512, 2048, 7, 1);
  last("last_resnet_14_1_s2", 1024, 2048, 14, 1, 2);
  for (CpuShape& shape : out) {
    shape.points = kOfWeights;
    shape.seeds = true;
  }
  return out;
}

}  // namespace

std::vector<CpuShape> micro_kernels(const Target& target) {
  constexpr int64_t kDepth = 160;
  std::vector<CpuShape> out;
  for (int vectors = 1; vectors <= 4; ++vectors) {
    // Registers hold the accumulators, the vectors of one row of the right operand and one element of the left operand.
    const int most = std::min(14, (target.vector_registers - 1 - vectors) / vectors);
    for (int height = 1; height <= most; ++height) {
      CpuShape shape =
          gemm(cat("micro_", height, "x", vectors), 2 * int64_t{height}, int64_t{target.lanes} * vectors, kDepth);
      shape.height = height;
      shape.vectors = vectors;
      out.push_back(std::move(shape));
    }
  }
  return out;
}

std::vector<CpuShape> calibration_shapes() {
  std::vector<CpuShape> out = {
      gemm("gemm_448_640_960", 448, 640, 960),    gemm("gemm_640", 640, 640, 640),
      gemm("gemm_1152", 1152, 1152, 1152),        gemm("gemm_96_1536_1280", 96, 1536, 1280, kBias),
      gemm("gemm_256_256_2048", 256, 256, 2048),  gemm("gemm_16_3072_2048", 16, 3072, 2048),
      gemm("gemm_64_2600_640", 64, 2600, 640),    gemm("gemm_24_2048_1024", 24, 2048, 1024),
      gemm("gemm_32_3088_1600", 32, 3088, 1600),  batched("batched_8_192_192_96", 8, 192, 192, 96, true),
      conv("conv_96_96_28_3", 96, 96, 28, 3),     conv("conv_48_48_48_3", 48, 48, 48, 3),
      conv("conv_320_320_10_3", 320, 320, 10, 3), conv("conv_192_160_28_1", 192, 160, 28, 1),
      conv("conv_8_48_96_5_s2", 8, 48, 96, 5, 2)};
  for (CpuShape& shape : out) shape.points = kCalibrating;
  return out;
}

std::vector<CpuShape> ranked_shapes(const Target& target) {
  std::vector<CpuShape> out = {gemm("square_512", 512, 512, 512),
                               gemm("square_1024", 1024, 1024, 1024),
                               gemm("bert_projection", 512, 768, 768, kBias),
                               gemm("bert_ffn_up", 512, 3072, 768, kBiasGelu),
                               gemm("bert_ffn_down", 512, 768, 3072, kBias),
                               batched("bert_scores", 12, 512, 512, 64, true),
                               batched("bert_context", 12, 512, 64, 512, false),
                               gemm("vit_qkv", 64, 2304, 768, kBias),
                               gemm("llama_gate", 128, 2816, 1024),
                               gemm("decode_8", 8, 4096, 4096),
                               conv("resnet_stem", 3, 64, 224, 7, 2),
                               conv("resnet_56_3", 64, 64, 56, 3),
                               conv("resnet_28_3", 128, 128, 28, 3),
                               conv("resnet_14_3", 256, 256, 14, 3),
                               conv("resnet_7_3", 512, 512, 7, 3),
                               conv("resnet_56_1", 64, 256, 56, 1),
                               conv("resnet_14_1", 1024, 256, 14, 1),
                               conv("shufflenet_28_1", 58, 58, 28, 1),
                               conv("sardrn_128_3_d2", 64, 64, 128, 3, 1, 2),
                               gemm("vit_ffn_down", 64, 768, 3072, kBias),
                               gemm("llama_down", 128, 1024, 2816),
                               conv("resnet_28_1", 512, 128, 28, 1)};
  for (CpuShape& shape : out) shape.points = kRanked;
  for (CpuShape& shape : shapes_of_weights(panel_widths(target)[0])) out.push_back(std::move(shape));
  return out;
}

}  // namespace wl

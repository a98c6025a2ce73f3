// Random convolutions in the form that the ONNX import gives them: an image that may be padded (pad), the windows of
// it (window), and a contraction of the windows with weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "compiler/base/splitmix.h"
#include "compiler/base/status.h"

namespace wl::testing {

class ConvolutionText {
 public:
  // Draws a convolution with 1 to 3 spatial axes. `panels`: 0, or the number of filters in each panel of the weights
  // (there is only one panel if this is no multiple of 16). `channels_last`: channels are the innermost axis of image
  // and result. `bytes`: image and weights are eight-bit integers instead of floats; if four divides the number of
  // channels, weights in panels then hold 32-bit words of four neighbouring channels.
  explicit ConvolutionText(uint64_t seed, int64_t panels = 0, bool channels_last = false, bool bytes = false)
      : state_(seed * kGolden + 1) {
    static constexpr const char* kTypes[] = {"f16", "bf16", "f64"};
    type_ = bytes ? "i32" : draw(4) == 0 ? kTypes[draw(3)] : "f32";
    const bool is_signed = bytes && draw(4) == 0;
    const std::string image_type = !bytes      ? type_
                                   : is_signed ? "i8"
                                               : "u8",
                      weight_type = !bytes      ? type_
                                    : is_signed ? "u8"
                                                : "i8";
    const auto fill = [](const std::string& type) {
      return type == "u8"    ? " uniform(0,255)"
             : type == "i8"  ? " uniform(-128,127)"
             : type == "i32" ? " uniform(-99,99)"
                             : " normal(0,1)";
    };
    const int64_t rank = 1 + draw(3), most = rank == 1 ? 90 : rank == 2 ? 19 : 8;
    const int64_t batch = 1 + draw(2), groups = draw(3) == 0 ? 2 : 1;
    const int64_t channels = 1 + draw(bytes ? 13 : 5), outputs = 2 + draw(13);
    const int64_t word = panels > 0 && bytes && channels % 4 == 0 ? 4 : 1;
    std::vector<int64_t> image = {batch}, padded = image, low = {0}, high = low;
    const auto add_channels = [&] {
      for (std::vector<int64_t>* shape : {&image, &padded}) shape->insert(shape->end(), {groups, channels});
      for (std::vector<int64_t>* amounts : {&low, &high}) amounts->insert(amounts->end(), {0, 0});
    };
    if (!channels_last) add_channels();
    std::vector<int64_t> filters = {groups, outputs};
    if (panels > 0) filters = {groups, panels % 16 == 0 ? 1 + outputs / 6 : 1, panels};
    std::vector<int64_t> weights(filters.begin(), filters.end() - (panels > 0)), result = {batch};
    weights.push_back(channels / word);
    if (!channels_last) result.insert(result.end(), filters.begin(), filters.end());
    std::vector<int64_t> axes, params;
    std::string spatial, taps;
    for (int64_t i = 0; i < rank; ++i) {
      const int64_t size = 1 + draw(4), stride = 1 + draw(3), dilation = 1 + draw(3), reach = (size - 1) * dilation + 1;
      const int64_t extent = std::max<int64_t>(reach, 2 + draw(most));
      const int64_t before = draw(2) == 0 ? 0 : draw(reach + 1), after = draw(2) == 0 ? 0 : draw(reach + 1);
      image.push_back(extent);
      padded.push_back(extent + before + after);
      low.push_back(before);
      high.push_back(after);
      result.push_back((padded.back() - reach) / stride + 1);
      weights.push_back(size);
      axes.push_back((channels_last ? 1 : 3) + i);
      params.insert(params.end(), {size, stride, dilation});
      spatial += static_cast<char>('o' + i);
      taps += static_cast<char>('r' + i);
    }
    if (panels > 0) weights.push_back(panels);
    if (word > 1) weights.push_back(word);
    std::vector<int64_t> windows = {batch};
    if (channels_last) add_channels();
    if (!channels_last) windows.insert(windows.end(), {groups, channels});
    windows.insert(windows.end(), result.end() - rank, result.end());
    if (channels_last) windows.insert(windows.end(), {groups, channels});
    if (channels_last) result.insert(result.end(), filters.begin(), filters.end());
    for (int64_t i = 0; i < rank; ++i) windows.push_back(params[static_cast<size_t>(3 * i)]);
    const std::string columns = panels > 0 ? "gam" : "gm", z = word > 1 ? "z" : "";
    const std::string out = channels_last ? cat("n", spatial, columns) : cat("n", columns, spatial);
    const std::string in = channels_last ? cat("n", spatial, "gc", z, taps) : cat("ngc", z, spatial, taps);
    const std::string read = panels > 0 ? cat("gac", taps, "m", z) : cat("gmc", taps);
    int value = add(cat("input \"x\""), image, fill(image_type), image_type);
    const int w = add(cat("input \"w\""), weights, fill(weight_type), weight_type);
    // An image that is padded gets no elementwise work; the windows of other images may get some (below).
    if (padded != image)
      value = add(cat("pad %", value, list(" low", low), list(" high", high), " value=",
                      draw(3) != 0 ? 0
                      : bytes      ? 3
                                   : 0.5),
                  padded, "", image_type);
    value = add(cat("window %", value, list(" axes", axes), list(" params", params)), windows, "", image_type);
    if (padded == image && draw(2) == 0) value = add(cat(bytes ? "abs %" : "tanh %", value), windows, "", image_type);
    if (word > 1) {
      const auto at = windows.begin() + (channels_last ? 2 + rank : 2);
      *at /= word;
      windows.insert(at + 1, word);
      value = add(cat("reshape %", value), windows, "", image_type);
    }
    value = add(cat("contract %", value, " %", w, " \"", in, ",", read, "->", out, "\""), result);
    if (draw(2) == 0) {
      const int bias = add("input \"bias\"", filters, fill(type_));
      std::vector<int64_t> dims;
      for (size_t i = 0; i < filters.size(); ++i)
        dims.push_back(static_cast<int64_t>(i) + (channels_last ? 1 + rank : 1));
      value = add(cat("add %", value, " %", add(cat("broadcast %", bias, list(" dims", dims)), result)), result);
    }
    if (draw(3) == 0) value = add(cat("add %", value, " %", add("input \"residual\"", result, fill(type_))), result);
    if (draw(3) == 0) value = add(cat(draw(2) == 0 && !bytes ? "erf" : "abs", " %", value), result);
    text_ = cat("graph {\n", text_, "  output \"y\" %", value, "\n}");
  }
  const std::string& text() const { return text_; }

 private:
  int64_t draw(int64_t n) { return static_cast<int64_t>(split_mix(state_) % static_cast<uint64_t>(n)); }
  static std::string list(const std::string& name, const std::vector<int64_t>& values) {
    return cat(name, "=[", absl::StrJoin(values, ","), "]");
  }
  int add(const std::string& value, const std::vector<int64_t>& shape, const std::string& fill = "",
          const std::string& type = "") {
    append(&text_, "  %", next_, " = ", value, " : ", type.empty() ? type_ : type, "[", absl::StrJoin(shape, ","), "]",
           fill, "\n");
    return next_++;
  }

  uint64_t state_;
  std::string text_, type_;
  int next_ = 0;
};

}  // namespace wl::testing

#include "bench/device/plans.h"

#include "bench/device/text.h"

namespace wl {
namespace {

std::string softmax(Text t, bool log) {
  const int x = t.input("x", t.shape());
  const int shifted = t.full("sub", x, t.spread(t.row("reduce_max", x)));
  const int e = t.full("exp", shifted);
  const int sum = t.row("reduce_sum", e);
  return log ? t.done(t.full(
                   "sub", shifted,
                   t.spread(t.add(cat("log %", sum), "f32[" + t.shape().substr(1, t.shape().find(',') - 1) + "]"))))
             : t.done(t.full("div", e, t.spread(sum)));
}

std::string norm(Text t, bool residual, bool centered) {
  int x = t.input("x", t.shape());
  if (residual) x = t.full("add", x, t.input("residual", t.shape()));
  if (centered) x = t.full("sub", x, t.spread(t.mean(x)));
  const int variance = t.of_rows("add", t.mean(t.full("mul", x, x)), t.row_constant(1e-5));
  const int scale = t.add(cat("rsqrt %", variance), "f32[" + t.shape().substr(1, t.shape().find(',') - 1) + "]");
  int y = t.full("mul", t.full("mul", x, t.spread(scale)), t.columns(t.input("gamma", t.vector())));
  if (centered) y = t.full("add", y, t.columns(t.input("beta", t.vector())));
  return t.done(y);
}

std::string bias_gelu(Text t) {
  const int x = t.full("add", t.input("x", t.shape()), t.columns(t.input("bias", t.vector())));
  return t.done(t.gelu(x));
}

// Rotary embedding of 32 heads of 128: x * cos + (x's second half, x's first half) * sin, where the input "sin" has the
// signs. The halves are exchanged before x is converted to f32, since a concat reads values as they are stored.
std::string rotary(int64_t tokens, const std::string& dtype) {
  const std::string whole = cat("[", tokens, ",32,128]"), half = cat("[", tokens, ",32,64]");
  const std::string angles = cat("[", tokens, ",128]");
  std::string text;
  int next = 0;
  const auto add = [&](const std::string& what, const std::string& type) {
    append(&text, "  %", next, " = ", what, " : ", type, "\n");
    return next++;
  };
  const auto input = [&](const char* name, const std::string& shape) {
    return add(cat("input \"", name, "\""), cat(dtype, shape, " normal(0,1)"));
  };
  const auto wide = [&](int a, const std::string& shape) {
    return dtype == "f32" ? a : add(cat("cast %", a), cat("f32", shape));
  };
  const int x = input("x", whole), c = input("cos", angles), s = input("sin", angles);
  const int low = add(cat("slice %", x, " starts=[0,0,0] steps=[1,1,1]"), cat(dtype, half));
  const int high = add(cat("slice %", x, " starts=[0,0,64] steps=[1,1,1]"), cat(dtype, half));
  const int turned = wide(add(cat("concat %", high, " %", low, " axis=[2]"), cat(dtype, whole)), whole);
  const auto spread = [&](int a) { return add(cat("broadcast %", wide(a, angles), " dims=[0,2]"), cat("f32", whole)); };
  const int straight = wide(x, whole), cosine = spread(c), sine = spread(s);
  const int left = add(cat("mul %", straight, " %", cosine), cat("f32", whole));
  const int right = add(cat("mul %", turned, " %", sine), cat("f32", whole));
  int y = add(cat("add %", left, " %", right), cat("f32", whole));
  if (dtype != "f32") y = add(cat("cast %", y), cat(dtype, whole));
  return cat("graph {\n", text, "  output \"y\" %", y, "\n}\n");
}

std::string transpose_add(int64_t n, const std::string& dtype) {
  Text t(n, n, dtype);
  const int x = t.input("x", t.shape()), z = t.input("z", t.shape());
  return t.done(t.full("add", t.add(cat("transpose %", x, " perm=[1,0]"), cat("f32", t.shape())), z));
}

}  // namespace

std::vector<DeviceWorkload> device_workloads(bool quick) {
  // Number of elements of a workload's tensor: 128 MiB of f32 that are read, and as many that are written, far more
  // than any L2 holds.
  constexpr int64_t kElements = int64_t{1} << 25;
  const int64_t elements = quick ? int64_t{1} << 15 : kElements;
  std::vector<DeviceWorkload> out;
  const std::vector<int64_t> lengths =
      quick ? std::vector<int64_t>{256} : std::vector<int64_t>{256, 1024, 4096, 16384, 65536, 262144};
  for (const char* dtype : {"f32", "bf16"}) {
    if (quick && out.size() > 1) break;
    for (int64_t n : lengths) {
      const int64_t rows = elements / n;
      const Text t(rows, n, dtype);
      const std::string tail = cat("_", dtype, "_", n);
      const auto put = [&](const char* op, std::string graph) {
        out.push_back({cat(op, tail), op, dtype, {rows, n}, 0, std::move(graph)});
      };
      put("softmax", softmax(t, false));
      put("log_softmax", softmax(t, true));
      put("layer_norm", norm(t, false, true));
      put("rms_norm", norm(t, false, false));
      put("residual_layer_norm", norm(t, true, true));
      put("bias_gelu", bias_gelu(t));
    }
    const int64_t tokens = elements / 4096, side = quick ? 128 : 4096;
    out.push_back({cat("rotary_", dtype), "rotary", dtype, {tokens, 4096}, 0, rotary(tokens, dtype)});
    out.push_back({cat("transpose_add_", dtype), "transpose_add", dtype, {side, side}, 0, transpose_add(side, dtype)});
    // The data of the small workloads fits in the GPU's L2 cache, so that the cost of launching a kernel is a visible
    // share of the time.
    if (!quick) {
      out.push_back(
          {cat("small_softmax_", dtype), "softmax", dtype, {512, 1024}, 0, softmax(Text(512, 1024, dtype), false)});
      out.push_back({cat("small_layer_norm_", dtype),
                     "residual_layer_norm",
                     dtype,
                     {512, 768},
                     0,
                     norm(Text(512, 768, dtype), true, true)});
    }
  }
  for (DeviceWorkload& product : device_products(quick)) out.push_back(std::move(product));
  return out;
}

}  // namespace wl

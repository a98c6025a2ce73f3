#include <cmath>

#include "bench/device/plans.h"
#include "bench/device/text.h"

namespace wl {
namespace {

std::string list(std::initializer_list<int64_t> extents) {
  std::string out = "[";
  for (const int64_t extent : extents) append(&out, out.size() > 1 ? "," : "", extent);
  return out + "]";
}

DeviceWorkload workload(const std::string& op, const std::string& dtype, std::vector<int64_t> shape, double operations,
                        std::string graph) {
  DeviceWorkload out;
  out.name = cat(op, "_", dtype);
  for (const int64_t extent : shape) append(&out.name, "_", extent);
  out.op = op;
  out.dtype = dtype;
  out.shape = std::move(shape);
  out.operations = operations;
  out.graph = std::move(graph);
  return out;
}

// A product of matrices. `transposed`: the right operand is [n, k]. `tf32`: factors of f32 may be rounded to tf32.
DeviceWorkload gemm(const std::string& dtype, int64_t m, int64_t n, int64_t k, bool transposed, bool tf32 = false) {
  Text t(m, n, dtype);
  const int a = t.stored("a", list({m, k})), b = t.stored("b", transposed ? list({n, k}) : list({k, n}));
  const int y =
      t.add(cat("contract %", a, " %", b, transposed ? " \"mk,nk->mn\"" : " \"mk,kn->mn\"", tf32 ? " tf32" : ""),
            dtype + t.shape());
  return workload(tf32         ? "gemm_tf32"
                  : transposed ? "gemm_nt"
                               : "gemm",
                  dtype, {m, n, k}, 2.0 * m * n * k, t.done_with(y));
}

// GELU(a b + bias) by erf: the first linear layer of a transformer's feed-forward block.
DeviceWorkload gemm_bias_gelu(const std::string& dtype, int64_t m, int64_t n, int64_t k) {
  Text t(m, n, dtype);
  const std::string full = dtype + t.shape();
  const int a = t.stored("a", list({m, k})), b = t.stored("b", list({k, n})), bias = t.stored("bias", t.vector());
  const int product = t.add(cat("contract %", a, " %", b, " \"mk,kn->mn\""), full);
  const int row = t.add(cat("broadcast %", bias, " dims=[1]"), full);
  const int x = t.add(cat("cast %", t.add(cat("add %", product, " %", row), full)), "f32" + t.shape());
  return workload("gemm_bias_gelu", dtype, {m, n, k}, 2.0 * m * n * k, t.done(t.gelu(x)));
}

// A convolution of images that have channels last and are already padded. The window is square.
DeviceWorkload convolution(const std::string& dtype, int64_t batch, int64_t side, int64_t channels, int64_t filters,
                           int64_t window) {
  const int64_t padded = side + window - 1;
  Text t(batch * side * side, filters, dtype);
  const int image = t.stored("x", list({batch, padded, padded, channels}));
  const int weight = t.stored("w", list({window, window, channels, filters}));
  const int windows = t.add(cat("window %", image, " axes=[1,2] params=[", window, ",1,1,", window, ",1,1]"),
                            dtype + list({batch, side, side, channels, window, window}));
  const int y = t.add(cat("contract %", windows, " %", weight, " \"bhwkrs,rskn->bhwn\""),
                      dtype + list({batch, side, side, filters}));
  return workload("convolution", dtype, {batch, side, channels, filters, window},
                  2.0 * batch * side * side * channels * filters * window * window, t.done_with(y));
}

// softmax(q k' / sqrt(channels)) v of each head. `causal`: a query attends only to keys up to its own position.
DeviceWorkload attention(const std::string& dtype, int64_t heads, int64_t tokens, int64_t channels, bool causal) {
  Text t(tokens, channels, dtype);
  const std::string factor = list({heads, tokens, channels}), rows = list({heads, tokens}),
                    scores = list({heads, tokens, tokens}), square = list({tokens, tokens});
  const int q = t.stored("q", factor), k = t.stored("k", factor), v = t.stored("v", factor);
  const auto full = [&](const std::string& what) { return t.add(what, "f32" + scores); };
  const auto spread = [&](int row) { return full(cat("broadcast %", row, " dims=[0,1]")); };
  int score = full(cat("cast %", t.add(cat("contract %", q, " %", k, " \"bmk,bnk->bmn\""), dtype + scores)));
  const int scale = full(cat("constant ", absl::StrFormat("%.9g", 1 / std::sqrt(static_cast<double>(channels)))));
  score = full(cat("mul %", score, " %", scale));
  if (causal) {
    const int row = t.add("iota axis=[0]", "i64" + square), column = t.add("iota axis=[1]", "i64" + square);
    const int sees = t.add(cat("le %", column, " %", row), "b1" + square);
    const int all = t.add(cat("broadcast %", sees, " dims=[1,2]"), "b1" + scores);
    score = full(cat("select %", all, " %", score, " %", full("constant -inf")));
  }
  const int most = t.add(cat("reduce_max %", score, " axes=[2]"), "f32" + rows);
  const int e = full(cat("exp %", full(cat("sub %", score, " %", spread(most)))));
  const int sum = t.add(cat("reduce_sum %", e, " axes=[2]"), "f32" + rows);
  const int weight = full(cat("div %", e, " %", spread(sum)));
  const int y = t.add(cat("contract %", t.add(cat("cast %", weight), dtype + scores), " %", v, " \"bmn,bnk->bmk\""),
                      dtype + factor);
  const double products = 4.0 * heads * tokens * tokens * channels;
  return workload(causal ? "causal_attention" : "attention", dtype, {heads, tokens, channels},
                  causal ? products / 2 : products, t.done_with(y));
}

}  // namespace

std::vector<DeviceWorkload> device_products(bool quick) {
  std::vector<DeviceWorkload> out;
  if (quick) {
    out.push_back(gemm("bf16", 32, 32, 32, false));
    out.push_back(gemm("f32", 32, 32, 32, false, true));
    out.push_back(gemm_bias_gelu("f16", 32, 32, 32));
    out.push_back(convolution("bf16", 1, 4, 16, 16, 3));
    out.push_back(attention("bf16", 2, 64, 32, true));
    return out;
  }
  for (const char* dtype : {"bf16", "f16"}) out.push_back(gemm(dtype, 4096, 4096, 4096, false));
  out.push_back(gemm("bf16", 4096, 4096, 4096, true));
  out.push_back(gemm("bf16", 8192, 8192, 8192, false));
  out.push_back(gemm("bf16", 512, 3072, 768, false));
  out.push_back(gemm("bf16", 16, 4096, 4096, true));
  out.push_back(gemm("f32", 2048, 2048, 2048, false));
  out.push_back(gemm("f32", 4096, 4096, 4096, false, true));
  out.push_back(gemm_bias_gelu("bf16", 8192, 3072, 768));
  out.push_back(convolution("bf16", 32, 56, 256, 256, 3));
  out.push_back(convolution("bf16", 32, 28, 512, 128, 1));
  for (const bool causal : {false, true}) out.push_back(attention("bf16", 32, 2048, 128, causal));
  return out;
}

}  // namespace wl

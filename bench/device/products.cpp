#include "bench/device/plans.h"
#include "compiler/base/status.h"

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

DeviceWorkload gemm(const std::string& dtype, int64_t m, int64_t n, int64_t k, bool transposed) {
  std::string text =
      cat("graph {\n  %0 = input \"a\" : ", dtype, list({m, k}), " normal(0,1)\n  %1 = input \"b\" : ", dtype,
          transposed ? list({n, k}) : list({k, n}), " normal(0,1)\n  %2 = contract %0 %1 \"",
          transposed ? "mk,nk->mn" : "mk,kn->mn", "\" : ", dtype, list({m, n}), "\n  output \"y\" %2\n}\n");
  return workload(transposed ? "gemm_nt" : "gemm", dtype, {m, n, k}, 2.0 * m * n * k, std::move(text));
}

// GELU(a b + bias) by erf: what a transformer's first layer of a feed-forward block computes.
DeviceWorkload gemm_bias_gelu(const std::string& dtype, int64_t m, int64_t n, int64_t k) {
  const std::string full = list({m, n});
  std::string text =
      cat("graph {\n  %0 = input \"a\" : ", dtype, list({m, k}), " normal(0,1)\n  %1 = input \"b\" : ", dtype,
          list({k, n}), " normal(0,1)\n  %2 = input \"bias\" : ", dtype, list({n}),
          " normal(0,1)\n  %3 = contract %0 %1 \"mk,kn->mn\" : ", dtype, full);
  int next = 4;
  const auto add = [&](const std::string& what, const std::string& type) {
    append(&text, "\n  %", next, " = ", what, " : ", type, full);
    return next++;
  };
  const int bias = add("broadcast %2 dims=[1]", dtype);
  const int biased = add(cat("add %3 %", bias), dtype);
  const int x = add(cat("cast %", biased), "f32");
  const int root = add("constant 0.70710678", "f32"), one = add("constant 1", "f32"), half = add("constant 0.5", "f32");
  const int erf = add(cat("erf %", add(cat("mul %", x, " %", root), "f32")), "f32");
  const int factor = add(cat("add %", erf, " %", one), "f32");
  const int y = add(cat("mul %", add(cat("mul %", x, " %", half), "f32"), " %", factor), "f32");
  const int out = add(cat("cast %", y), dtype);
  append(&text, "\n  output \"y\" %", out, "\n}\n");
  return workload("gemm_bias_gelu", dtype, {m, n, k}, 2.0 * m * n * k, std::move(text));
}

// A convolution of images with channels last that are padded already; the window is square.
DeviceWorkload convolution(const std::string& dtype, int64_t batch, int64_t side, int64_t channels, int64_t filters,
                           int64_t window) {
  const int64_t padded = side + window - 1;
  std::string text = cat("graph {\n  %0 = input \"x\" : ", dtype, list({batch, padded, padded, channels}),
                         " normal(0,1)\n  %1 = input \"w\" : ", dtype, list({window, window, channels, filters}),
                         " normal(0,1)\n  %2 = window %0 axes=[1,2] params=[", window, ",1,1,", window,
                         ",1,1] : ", dtype, list({batch, side, side, channels, window, window}),
                         "\n  %3 = contract %2 %1 \"bhwkrs,rskn->bhwn\" : ", dtype, list({batch, side, side, filters}),
                         "\n  output \"y\" %3\n}\n");
  return workload("convolution", dtype, {batch, side, channels, filters, window},
                  2.0 * batch * side * side * channels * filters * window * window, std::move(text));
}

}  // namespace

std::vector<DeviceWorkload> device_products(bool quick) {
  std::vector<DeviceWorkload> out;
  if (quick) {
    out.push_back(gemm("bf16", 32, 32, 32, false));
    out.push_back(gemm_bias_gelu("f16", 32, 32, 32));
    out.push_back(convolution("bf16", 1, 4, 16, 16, 3));
    return out;
  }
  for (const char* dtype : {"bf16", "f16"}) out.push_back(gemm(dtype, 4096, 4096, 4096, false));
  out.push_back(gemm("bf16", 4096, 4096, 4096, true));
  out.push_back(gemm("bf16", 8192, 8192, 8192, false));
  out.push_back(gemm("bf16", 512, 3072, 768, false));
  out.push_back(gemm("bf16", 16, 4096, 4096, true));
  out.push_back(gemm("f32", 2048, 2048, 2048, false));
  out.push_back(gemm_bias_gelu("bf16", 8192, 3072, 768));
  out.push_back(convolution("bf16", 32, 56, 256, 256, 3));
  out.push_back(convolution("bf16", 32, 28, 512, 128, 1));
  return out;
}

}  // namespace wl

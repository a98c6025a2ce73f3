#include "compiler/ir/panel.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/ir/ops.h"

namespace wl {
namespace {

typedef double Doubles __attribute__((vector_size(32)));
typedef float Floats __attribute__((vector_size(32)));

// Computes the dot products of rows [0, MR) of a and rows [0, NR) of b, each of n terms; n must be a multiple of 8.
template <typename T, typename Vector, int MR, int NR>
[[gnu::always_inline]] inline void dots(const T* a, const T* b, int64_t n, T out[MR][NR]) {
  constexpr int kLanes = sizeof(Vector) / sizeof(T);
  Vector sum[MR][NR] = {};
  for (int64_t k = 0; k < n; k += kLanes) {
    Vector bs[NR];
#pragma GCC unroll 8
    for (int j = 0; j < NR; ++j) __builtin_memcpy(&bs[j], b + j * n + k, sizeof(Vector));
#pragma GCC unroll 8
    for (int i = 0; i < MR; ++i) {
      Vector as;
      __builtin_memcpy(&as, a + i * n + k, sizeof(Vector));
#pragma GCC unroll 8
      for (int j = 0; j < NR; ++j) sum[i][j] += as * bs[j];
    }
  }
  for (int i = 0; i < MR; ++i) {
    for (int j = 0; j < NR; ++j) {
      out[i][j] = 0;
      for (int lane = 0; lane < kLanes; ++lane) out[i][j] += sum[i][j][lane];
    }
  }
}

// Computes the dot products of `rows` (1 or 2) rows of a with `columns` (1 to 4) rows of b, each of n terms.
template <typename T, typename Vector>
[[gnu::always_inline]] inline void block(const T* a, const T* b, int64_t n, int rows, int columns, T out[2][4]) {
  if (rows == 2 && columns == 4) return dots<T, Vector, 2, 4>(a, b, n, out);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      T one[1][1];
      dots<T, Vector, 1, 1>(a + i * n, b + j * n, n, one);
      out[i][j] = one[0][0];
    }
  }
}

using DoubleBlock = void (*)(const double*, const double*, int64_t, int, int, double[2][4]);
using FloatBlock = void (*)(const float*, const float*, int64_t, int, int, float[2][4]);

void double_block(const double* a, const double* b, int64_t n, int rows, int columns, double out[2][4]) {
  block<double, Doubles>(a, b, n, rows, columns, out);
}
void float_block(const float* a, const float* b, int64_t n, int rows, int columns, float out[2][4]) {
  block<float, Floats>(a, b, n, rows, columns, out);
}
#if defined(__x86_64__)
// These functions use AVX2 without fused multiply-add, so that their results equal those of the portable functions
// above.
[[gnu::target("avx2")]] void double_block_avx2(const double* a, const double* b, int64_t n, int rows, int columns,
                                               double out[2][4]) {
  block<double, Doubles>(a, b, n, rows, columns, out);
}
[[gnu::target("avx2")]] void float_block_avx2(const float* a, const float* b, int64_t n, int rows, int columns,
                                              float out[2][4]) {
  block<float, Floats>(a, b, n, rows, columns, out);
}
#endif

DoubleBlock pick_double_block() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return double_block_avx2;
#endif
  return double_block;
}
FloatBlock pick_float_block() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return float_block_avx2;
#endif
  return float_block;
}

// Factors and errors other than zero are raised to at least this fraction of the largest one in their panel. The
// product of two numbers that are at least kMinFactor, or of the squares of two that are at least kMinSquareFactor, is
// then a normal f32. Larger factors and errors only make the error bounds larger.
constexpr double kMinFactor = 1e-18, kMinSquareFactor = 1e-9;
float at_least(double least, double x) {
  return static_cast<float>(x == 0 ? 0 : std::max(x, least));
}

void finish(double factor_scale, bool squares, ErrorPanel& panel) {
  const float largest = *std::max_element(panel.error.begin(), panel.error.end());
  panel.exact = largest == 0;
  panel.factor_scale = squares ? factor_scale * factor_scale : factor_scale;
  panel.scale = squares ? static_cast<double>(largest) * largest : largest;
  if (panel.exact) return;
  const double least = squares ? kMinSquareFactor : kMinFactor;
  for (size_t i = 0; i < panel.error.size(); ++i) {
    const float e = at_least(least, panel.error[i] / largest), f = at_least(least, panel.factor[i]);
    panel.error[i] = squares ? e * e : e;
    panel.factor[i] = squares ? f * f : f;
  }
}

}  // namespace

void Panel::gather(const Column& from, const ElementSet& positions, std::span<const int64_t> bases,
                   const std::vector<int64_t>& steps, int64_t padded, bool second, bool literal_worst, double inexact) {
  const size_t total = bases.size() * static_cast<size_t>(padded);
  value.assign(total, 0);
  spread.factor.assign(total, 0);
  spread.error.assign(total, 0);
  worst.error.assign(total, 0);
  double largest = 0;
  finite = true;
  for (size_t r = 0; r < bases.size(); ++r) {
    size_t to = r * static_cast<size_t>(padded);
    for (int64_t step : steps) {
      Estimate e = from.at(static_cast<size_t>(positions.position(bases[r] + step)));
      if (inexact > 0) e.add_error(inexact * std::fabs(e.value));
      value[to] = e.value;
      spread.error[to] = static_cast<float>(e.spread);
      worst.error[to] = static_cast<float>(e.worst);
      spread.factor[to] = static_cast<float>(std::fabs(e.value) + (second ? e.bound() : 0));
      largest = std::max<double>(largest, spread.factor[to]);
      finite &= std::isfinite(e.worst);
      ++to;
    }
  }
  scale = largest > 0 && std::isfinite(largest) ? largest : 1;
  magnitude.resize(total);
  for (size_t i = 0; i < total; ++i) {
    magnitude[i] = at_least(kMinFactor, std::fabs(value[i]) / scale);
    spread.factor[i] = at_least(kMinFactor, spread.factor[i] / scale);
  }
  worst.exact = true;
  if (literal_worst) {
    worst.factor = spread.factor;
    finish(scale, false, worst);
  }
  finish(scale, true, spread);
}

PanelProduct::PanelProduct(DType dtype, int64_t terms, int64_t padded, double inexact)
    : dtype_(dtype),
      errors_(dtype, terms),
      flushed_(dtype == DType::bf16 ? static_cast<double>(terms) * 0x1p-126 : 0),
      padded_(padded),
      inexact_(inexact),
      multiply_(pick_double_block()),
      multiply_errors_(pick_float_block()) {}

void PanelProduct::add_errors(const ErrorPanel& a, int64_t i, const ErrorPanel& b, int64_t j, int rows, int columns,
                              Doubles& total) const {
  float part[2][4];
  for (const bool of_b : {true, false}) {
    if ((of_b ? b : a).exact) continue;
    const float* left = of_b ? a.factor.data() : a.error.data();
    const float* right = of_b ? b.error.data() : b.factor.data();
    const double scale = of_b ? a.factor_scale * b.scale : a.scale * b.factor_scale;
    multiply_errors_(left + i, right + j, padded_, rows, columns, part);
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < columns; ++c) total[r][c] += scale * part[r][c];
    }
  }
}

void PanelProduct::operator()(const Panel& a, int64_t i, const Panel& b, int64_t j, int rows, int columns,
                              Estimate out[2][4]) const {
  double value[2][4], worst[2][4] = {}, squares[2][4] = {};
  float magnitude[2][4] = {};
  i *= padded_;
  j *= padded_;
  multiply_(&a.value[i], &b.value[j], padded_, rows, columns, value);
  if (errors_.rounding.floating) {
    multiply_errors_(&a.magnitude[i], &b.magnitude[j], padded_, rows, columns, magnitude);
    add_errors(a.spread, i, b.spread, j, rows, columns, squares);
    if (literal_worst()) add_errors(a.worst, i, b.worst, j, rows, columns, worst);
  }
  // Contractions of bf16 may treat denormal factors and sums as zeros (docs/numerics.md).
  const double flushed = flushed_ * (1 + a.scale + b.scale);
  constexpr double kUp = 1 + 1e-3;  // a factor that covers the rounding errors of the sums computed in f32
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      const double v = value[r][c];
      if (!errors_.rounding.floating) {
        const double error = a.spread.exact && b.spread.exact ? 0 : std::numeric_limits<double>::infinity();
        out[r][c] = {to_integer(dtype_, DType::i64, v), error, error};
      } else if (!std::isfinite(v)) {
        const double error = a.finite && b.finite ? 0 : std::numeric_limits<double>::infinity();
        out[r][c] = {v, error, error};
      } else {
        const double zeros = magnitude[r][c] > 0 ? flushed : 0;
        out[r][c] = errors_.result(v, worst[r][c] * kUp + zeros, squares[r][c] * kUp + zeros * zeros,
                                   a.scale * b.scale * magnitude[r][c] * kUp);
        // Cutting off mantissa bits makes every factor smaller, so these errors have one sign and do not average out.
        if (inexact_ > 0) out[r][c].add_error(2 * inexact_ * std::fabs(v));
      }
    }
  }
}

}  // namespace wl

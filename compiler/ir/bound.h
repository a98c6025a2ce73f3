// Bounds how rounding errors grow through one operation (docs/numerics.md). Only the oracle uses this header.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "compiler/ir/eval.h"
#include "compiler/ir/graph.h"

namespace wl {

// An exact value, and how far a kernel's evaluation of it, in the dtypes of the nodes, may differ: by `worst` in the
// worst case, and with the standard deviation `spread` if roundings are independent. The worst case of a long sum is
// far too large to be useful, so kConfidence standard deviations replace it there.
inline constexpr double kConfidence = 8;
struct Estimate {
  double value = 0, worst = 0, spread = 0;
  int64_t whole = 0;  // the bits of an integer of magnitude 2^53 or more, which a double may not hold
  double bound() const { return std::min(worst, kConfidence * spread); }
  // Adds an error that is independent of those added so far.
  void add_error(double error) {
    worst += error;
    spread = std::sqrt(spread * spread + error * error);
  }
};

// Returns the integer of `dtype` whose bits are the low bits of `bits`, as the nearest double.
double from_integer(DType dtype, uint64_t bits);
// Returns the 64 bits of the integer `value` of `dtype`; values that 64 bits cannot hold saturate.
int64_t bits_of(DType dtype, double value);
inline int64_t bits_of(const Estimate& x) {
  return std::fabs(x.value) < 0x1p53 ? static_cast<int64_t>(x.value) : x.whole;
}
inline Estimate whole_number(DType dtype, int64_t bits) {
  return {from_integer(dtype, static_cast<uint64_t>(bits)), 0, 0, bits};
}
// Returns the exact result of an elementwise op on integers. The operands x, of dtype `from`, and the result, of dtype
// `to`, are the 64-bit patterns of these integers (see bits_of).
int64_t integer_result(Op op, DType from, DType to, const int64_t x[3]);

// How a dtype rounds the result of an operation.
struct Rounding {
  explicit Rounding(DType dtype);
  // Returns `v`, the result of an operation before rounding, as the dtype stores it. A value that certainly overflows
  // becomes an exact infinity. The bound becomes infinite if it is uncertain whether the value overflows, if the bound
  // is NaN, or if the value is infinite but the dtype has no infinity.
  Estimate stored(Estimate v) const;
  bool floating;
  double unit, tiny, largest;
  // whether a value that is too large for the dtype may stay finite, because fused kernels keep f32 between ops
  bool wider_allowed;
  bool infinite;  // whether the dtype has infinities
};

// The error of a sum of n terms. It consists of the terms' own errors and of the rounding errors of the accumulator
// that kernels use for sums of `dtype`, which are relative to the sum of the terms' magnitudes. The true worst case is
// used only for at most kConfidence^2 terms; for more, kConfidence standard deviations replace it.
struct SumErrors {
  SumErrors(DType dtype, int64_t n);
  // Returns the sum `value` with the error that it has after rounding to the dtype. `worst`, `squares` and `magnitude`
  // are the sums of worst, spread^2 and |term| over the terms.
  Estimate result(double value, double worst, double squares, double magnitude) const;
  bool literal_worst;
  double worst_factor, spread_factor;
  Rounding rounding;
};

// Evaluates one elementwise op and its error. The operands x are of dtype `from`; for select, this is the dtype of
// operand 1.
class Elementwise {
 public:
  Elementwise(Op op, DType from, DType to);
  Estimate operator()(const Estimate x[3]) const;

 private:
  double value(const double x[3]) const;
  void propagate(const Estimate x[3], Estimate& result) const;
  double swing(const Estimate x[3], double r) const;
  double remainder_swing(const Estimate x[3]) const;
  const OpInfo& row_;
  DType from_, to_;
  Rounding rounding_;
  bool jumps_;  // whether derivatives do not bound the op's error, so that its operands' intervals are sampled
  bool compares_, logical_;
  bool whole_;  // whether operands and result are integers, so that the result is exact
  double relative_;
};

}  // namespace wl

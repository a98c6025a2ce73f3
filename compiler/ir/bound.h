// How rounding error grows through one operation (docs/numerics.md). Internal to the oracle.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "compiler/ir/eval.h"
#include "compiler/ir/graph.h"

namespace wl {

// An exact value, and how far an evaluation in the nodes' dtypes may differ from it: in the worst case, and as a
// standard deviation when roundings are independent. The worst case of a long sum is far too large to be useful, so it
// is replaced by kConfidence deviations.
inline constexpr double kConfidence = 8;
struct Estimate {
  double value = 0, worst = 0, spread = 0;
  int64_t whole = 0;  // the bits of an integer whose value no double need hold: of 2^53 or more in magnitude
  double bound() const { return std::min(worst, kConfidence * spread); }
  // Adds an error that is independent of the others.
  void add_error(double error) {
    worst += error;
    spread = std::sqrt(spread * spread + error * error);
  }
};

// Returns the integer of the dtype with these low bits, or the nearest double.
double from_integer(DType dtype, uint64_t bits);
// Returns the bits of the integer of a dtype that is `value`, saturated.
int64_t bits_of(DType dtype, double value);
inline int64_t bits_of(const Estimate& x) {
  return std::fabs(x.value) < 0x1p53 ? static_cast<int64_t>(x.value) : x.whole;
}
inline Estimate whole_number(DType dtype, int64_t bits) {
  return {from_integer(dtype, static_cast<uint64_t>(bits)), 0, 0, bits};
}
// Returns an elementwise op of integers, exactly; x and the result are bits. `from`: the dtype of the operands.
int64_t integer_result(Op op, DType from, DType to, const int64_t x[3]);

// How a dtype rounds the result of an operation.
struct Rounding {
  explicit Rounding(DType dtype);
  // Returns the exact result `v` as it is stored. Overflow becomes infinity. The bound becomes infinite where finite
  // and infinite results are both right, and where the bound is NaN.
  Estimate stored(Estimate v) const;
  bool floating;
  double unit, tiny, largest;
  bool wider_allowed;  // a fused kernel may keep f32 between ops, so overflow may or may not happen
  bool infinite;       // whether the dtype has infinities
};

// The error of a sum of n terms: the errors of the terms, and those of adding up in the accumulator of `dtype`
// (relative to the sum of magnitudes). Up to kConfidence^2 terms the true worst case is used.
struct SumErrors {
  SumErrors(DType dtype, int64_t n);
  // Returns the errors of a sum that is then rounded to `value`, from the sums over the terms of worst, spread^2 and
  // |term|.
  Estimate result(double value, double worst, double squares, double magnitude) const;
  bool literal_worst;
  double worst_factor, spread_factor;
  Rounding rounding;
};

// One elementwise op on operands x, whose dtype is `from` (for select: the dtype of operand 1).
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
  bool jumps_;  // whether first order is not enough, so that both ends of the interval are evaluated
  bool compares_, logical_;
  bool whole_;  // integers of integers, which are computed exactly
  double relative_;
};

}  // namespace wl

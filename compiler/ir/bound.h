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
  double bound() const { return std::min(worst, kConfidence * spread); }
  // Adds an error that is independent of the others.
  void add_error(double error) {
    worst += error;
    spread = std::sqrt(spread * spread + error * error);
  }
};

// Returns the integer of the dtype with these low bits.
double from_integer(DType dtype, uint64_t bits);

// How a dtype rounds the result of an operation.
struct Rounding {
  explicit Rounding(DType dtype);
  // Returns the exact result `v` as it is stored. Overflow becomes infinity. The bound becomes infinite where finite
  // and infinite results are both right, where the bound is NaN, and where an integer is beyond 2^53.
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
  double integer_value(const double x[3]) const;
  void propagate(const Estimate x[3], Estimate& result) const;
  double swing(const Estimate x[3], double r) const;
  double remainder_swing(const Estimate x[3]) const;
  const OpInfo& row_;
  DType from_, to_;
  Rounding rounding_;
  bool jumps_;  // whether first order is not enough, so that both ends of the interval are evaluated
  bool compares_, logical_;
  double relative_;
};

}  // namespace wl

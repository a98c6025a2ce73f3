// How rounding error grows through one operation (docs/numerics.md). Internal to the oracle.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "compiler/ir/eval.h"
#include "compiler/ir/graph.h"

namespace wl {

// An exact value and how far an evaluation in the nodes' dtypes may be off: in the worst case, and as a standard
// deviation when roundings are independent. Worst cases of long sums compound beyond any use, so such a sum's worst
// case is kConfidence deviations.
inline constexpr double kConfidence = 8;
struct Estimate {
  double value = 0, worst = 0, spread = 0;
  double bound() const { return std::min(worst, kConfidence * spread); }
  // One more error, independent of the others.
  void add_error(double error) {
    worst += error;
    spread = std::sqrt(spread * spread + error * error);
  }
};

// The integer of the dtype with these low bits.
double from_integer(DType dtype, uint64_t bits);

// What a dtype does to a result.
struct Rounding {
  explicit Rounding(DType dtype);
  // The exact result `v` as stored: overflow becomes infinity; where finite and infinite are both right, where the
  // bound is not a number, and where an integer is beyond 2^53, the bound becomes infinite.
  Estimate stored(Estimate v) const;
  bool floating;
  double unit, tiny, largest;
  bool wider_allowed;  // a fused kernel may keep f32 between ops, so overflow may or may not happen
  bool infinite;       // the dtype has infinities
};

// A sum of n terms: what they bring along, and accumulation in the accumulator of `dtype` (errors relative to the sum
// of magnitudes). Up to kConfidence^2 terms the worst case is taken literally.
struct SumErrors {
  SumErrors(DType dtype, int64_t n);
  // From sums over the terms of worst, spread^2 and |term|; errors of a sum that is then rounded to `value`.
  Estimate result(double value, double worst, double squares, double magnitude) const;
  bool literal_worst;
  double worst_factor, spread_factor;
  Rounding rounding;
};

// One elementwise op on operands x, whose dtype (select: of operand 1) is `from`.
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
  bool jumps_;  // first order says too little: always look at both ends
  bool compares_, logical_;
  double relative_;
};

}  // namespace wl

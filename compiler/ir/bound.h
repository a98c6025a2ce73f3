// How rounding error grows through one operation (docs/numerics.md). Internal to the oracle.
#pragma once

#include <cmath>
#include <cstdint>

#include "compiler/ir/eval.h"
#include "compiler/ir/graph.h"

namespace wl {

// What a dtype does to a result.
struct Rounding {
  explicit Rounding(DType dtype);
  // The exact result `v` as stored: overflow becomes infinity; where finite and infinite are both right, and where the
  // bound is not a number, the bound becomes infinite.
  Value stored(Value v) const;
  bool floating;
  double unit, tiny, largest;
  bool wider_allowed;  // a fused kernel may keep f32 between ops, so overflow may or may not happen
};

// Accumulation of n terms in the accumulator of `dtype`: relative to the sum of magnitudes.
double accumulation_factor(DType dtype, int64_t n);

// One elementwise op on operands x, whose dtype (select: of operand 1) is `from`.
class Elementwise {
 public:
  Elementwise(Op op, DType from, DType to);
  Value operator()(const Value x[3]) const;

 private:
  double value(const double x[3]) const;
  double integer_value(const double x[3]) const;
  double propagate(const Value x[3], double r) const;
  double swing(const Value x[3], int operand, double r) const;
  const OpInfo& row_;
  DType from_, to_;
  Rounding rounding_;
  bool jumps_;  // not continuous: always look at both ends
  bool compares_, logical_;
  double relative_;
};

}  // namespace wl

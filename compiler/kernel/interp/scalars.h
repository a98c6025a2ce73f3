// Single values as the interpreter computes them: in double, rounded as a register of the dtype rounds.
#pragma once

#include <cstdint>

#include "compiler/base/fill.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/ops.h"

namespace wl {

// The value rounded as a register rounds it.
inline double kept(DType dtype, double value) {
  if (is_float(dtype)) return round_to(size_of(dtype) < 4 ? DType::f32 : dtype, value);
  return to_integer(dtype, DType::i64, value);
}

// One op of an expression; `from` is the dtype of its first operand.
inline double result_of(Op op, DType dtype, DType from, double x, double y, double z) {
  if (!is_float(dtype) && (op == Op::mul || op == Op::fma)) {  // the product may exceed a double
    const auto bits = [](double v) { return static_cast<uint64_t>(as_integer(v)); };
    return to_integer(dtype, DType::i64,
                      static_cast<double>(wrap(dtype, static_cast<int64_t>(bits(x) * bits(y) + bits(z)))));
  }
  const bool divides = op == Op::div || op == Op::mod || op == Op::fmod;
  if (!is_float(dtype) && ((divides && y == 0) || (op == Op::pow && x == 0 && y < 0))) return 0;
  const double result = info(op).value(x, y, z);
  if (op != Op::cast) return kept(dtype, result);
  return is_float(dtype) ? round_to(dtype, result) : to_integer(dtype, from, result);
}

}  // namespace wl

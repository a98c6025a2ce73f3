// Scalar operations of the interpreter. Floats are computed in double and rounded as a register of the dtype would
// round them; integers are computed on their bits.
#pragma once

#include <cstdint>

#include "compiler/base/fill.h"
#include "compiler/ir/graph.h"
#include "compiler/ir/ops.h"
#include "compiler/kernel/interp/number.h"

namespace wl {

// Returns the result of one op of an expression; `from` is the dtype of the op's first operand.
inline Number result_of(Op op, DType dtype, DType from, Number x, Number y, Number z) {
  if (!is_float(dtype) && !is_float(from)) {
    const int64_t bits[3] = {bits_of(x), bits_of(y), bits_of(z)};
    return number_of(dtype, integer_result(op, from, dtype, bits));
  }
  const double result = info(op).value(static_cast<double>(x), static_cast<double>(y), static_cast<double>(z));
  if (!is_float(dtype)) return held_as(dtype, op == Op::cast ? to_integer(dtype, from, result) : result);
  return round_to(op != Op::cast && size_of(dtype) < 4 ? DType::f32 : dtype, result);
}

inline Number combine(Op op, DType dtype, Number a, Number b) {
  return result_of(op, dtype, dtype, a, b, 0);
}

}  // namespace wl

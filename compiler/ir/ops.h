// Scalar functions for the ops that C++ has no function for. The `value` column of ops.def calls these functions, and
// the preludes (the text at the top of every generated kernel) must agree with them.
#pragma once

#include <cstdint>

#include "compiler/base/dtype.h"

namespace wl {

double nan_min(double x, double y);  // NaN if either operand is NaN
double nan_max(double x, double y);
double floor_mod(double x, double y);  // the result has the sign of y, as in Python
double sign_of(double x);              // -1, 0 or 1; NaN stays NaN
double safe_log(double x);             // log|x|, but finite at 0

// Bit operations on 64-bit integers that are held in doubles. NaN counts as 0, and values of 2^63 or more are unsigned.
double bit_and(double x, double y);
double bit_or(double x, double y);
double bit_xor(double x, double y);
double shift_left(double x, double y);  // 0 for shifts of 64 bits or more, in shift_right too
double shift_right(double x, double y);
int64_t as_integer(double x);  // as two's complement; saturates out of range; NaN becomes 0

// Returns the number of the integer dtype that is congruent to `value` modulo 2^(its bits), in two's complement. For
// b1, returns whether `value` is not 0.
int64_t wrap(DType dtype, int64_t value);
// Converts the result `value` of an elementwise op or cast, whose operands are of dtype `from`, to the integer dtype
// `to`. It truncates. Out of range, integers wrap and floats saturate; NaN becomes 0. For b1, returns whether `value`
// is not 0.
double to_integer(DType to, DType from, double value);

}  // namespace wl

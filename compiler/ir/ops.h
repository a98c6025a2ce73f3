// Scalar meaning of the ops that C++ has no function for. The `value` column of ops.def calls them, and the preludes
// must agree with them.
#pragma once

#include <cstdint>

#include "compiler/base/dtype.h"

namespace wl {

double nan_min(double x, double y);  // NaN if either operand is NaN
double nan_max(double x, double y);
double floor_mod(double x, double y);  // the result has the sign of y, as in Python
double sign_of(double x);              // -1, 0 or 1; NaN stays NaN
double safe_log(double x);             // log|x|, but finite at 0

// Bit operations on 64-bit integers held in doubles: NaN counts as 0, and values beyond 2^63 are unsigned.
double bit_and(double x, double y);
double bit_or(double x, double y);
double bit_xor(double x, double y);
double shift_left(double x, double y);  // 0 for shifts of 64 bits or more, as shift_right
double shift_right(double x, double y);
int64_t as_integer(double x);  // two's complement of the same bits; saturates out of range

// Returns the number of the integer dtype that is congruent to `value` modulo 2^bits (two's complement).
int64_t wrap(DType dtype, int64_t value);
// Converts an elementwise result, or a cast from `from`, to an integer dtype: truncates; integers out of range wrap,
// floats out of range saturate, NaN becomes 0.
double to_integer(DType to, DType from, double value);

}  // namespace wl

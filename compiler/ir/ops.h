// Functions on scalars for those ops that C++ has no function for. The `value` column of ops.def calls these functions,
// and the preludes (the text at the top of every generated kernel) must compute the same.
#pragma once

#include <cstdint>

#include "compiler/base/dtype.h"

namespace wl {

double nan_min(double x, double y);  // returns the smaller operand; NaN if either operand is NaN
double nan_max(double x, double y);
double floor_mod(double x, double y);  // returns x modulo y with the sign of y, as in Python
double sign_of(double x);              // returns the sign of x: -1, 0 or 1; NaN for NaN
double safe_log(double x);             // returns log|x|, but a finite number for x = 0

// Bit operations on 64-bit integers that are held in doubles. NaN counts as 0. Values of 2^63 or more count as unsigned
// integers.
double bit_and(double x, double y);
double bit_or(double x, double y);
double bit_xor(double x, double y);
double shift_left(double x, double y);  // returns 0 for shifts of 64 bits or more, as does shift_right()
double shift_right(double x, double y);
int64_t as_integer(double x);  // returns x in two's complement; saturates out of range; NaN becomes 0

// Returns the integer of `dtype` (in two's complement) that is congruent to `value` modulo 2^bits, where `bits` is the
// dtype's width. For b1, returns whether `value` is not 0.
int64_t wrap(DType dtype, int64_t value);
// Converts `value`, the result of an elementwise op or cast on operands of dtype `from`, to the integer dtype `to`. The
// value is truncated. If it is out of range, it wraps where `from` is an integer dtype and saturates where `from` is a
// float; NaN becomes 0. For b1, returns whether `value` is not 0.
double to_integer(DType to, DType from, double value);

}  // namespace wl

// Scalar meaning of the ops that C++ has no word for; what the `value` column of ops.def may call. Preludes must agree.
#pragma once

#include <cstdint>

#include "compiler/base/dtype.h"

namespace wl {

double nan_min(double x, double y);  // NaN if either is NaN
double nan_max(double x, double y);
double floor_mod(double x, double y);  // sign of y, as Python's %
double sign_of(double x);              // -1, 0, 1; NaN stays NaN
double safe_log(double x);             // log|x|, finite at 0

// Bits, of operands that are 64-bit integers: NaN is 0, and what is beyond 2^63 is an unsigned one.
double bit_and(double x, double y);
double bit_or(double x, double y);
double bit_xor(double x, double y);
double shift_left(double x, double y);  // 0 from 64 bits on, as shift_right
double shift_right(double x, double y);
int64_t as_integer(double x);  // two's complement of the same bits; out of range saturates

// Two's complement: the value of `dtype` (an integer) congruent to `value` modulo 2^bits.
int64_t wrap(DType dtype, int64_t value);
// An elementwise result, or a cast from `from`, as an integer dtype stores it: truncated; out of range integers wrap,
// out of range floats saturate, NaN is 0.
double to_integer(DType to, DType from, double value);

}  // namespace wl

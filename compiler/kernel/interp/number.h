// A value of a tile or buffer, as the interpreter represents it.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "compiler/ir/bound.h"

namespace wl {

// A Number represents every double and every 64-bit integer exactly. NaN marks elements to which nothing was stored.
using Number = long double;
static_assert(std::numeric_limits<Number>::digits >= 64);

// Returns the integer that `bits` represents in an integer dtype.
inline Number number_of(DType dtype, int64_t bits) {
  return dtype == DType::u64 ? static_cast<Number>(static_cast<uint64_t>(bits)) : static_cast<Number>(bits);
}

// Returns the bits of an integer that number_of() made; 0 for NaN.
inline int64_t bits_of(Number number) {
  if (!(number < 0)) return number >= 0 ? static_cast<int64_t>(static_cast<uint64_t>(number)) : 0;
  return static_cast<int64_t>(number);
}

// Converts a double to the value that a buffer or register of the dtype would hold: floats are rounded, integers
// saturate.
inline Number held_as(DType dtype, double value) {
  return is_float(dtype) ? round_to(dtype, value) : number_of(dtype, bits_of(dtype, round_to(dtype, value)));
}

// numbers_of: converts the elements of a buffer before the kernel runs. Outputs keep what they hold, which need not be
// integers of the dtype before the kernel has written them. doubles_of: converts the elements back after the kernel has
// run.
inline std::vector<Number> numbers_of(DType dtype, bool output, const std::vector<double>& values) {
  std::vector<Number> out(values.begin(), values.end());
  if (!output && !is_float(dtype))
    for (size_t i = 0; i < values.size(); ++i) out[i] = held_as(dtype, values[i]);
  return out;
}
inline std::vector<double> doubles_of(const std::vector<Number>& numbers) {
  return {numbers.begin(), numbers.end()};
}

}  // namespace wl

// A value of a tile or buffer, as the interpreter represents it.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "compiler/ir/bound.h"

namespace wl {

// Represents every double and every integer of 64 bits exactly. NaN stands for elements that nothing was stored to.
using Number = long double;
static_assert(std::numeric_limits<Number>::digits >= 64);

// The number whose bits, as an integer of the dtype, are `bits`.
inline Number number_of(DType dtype, int64_t bits) {
  return dtype == DType::u64 ? static_cast<Number>(static_cast<uint64_t>(bits)) : static_cast<Number>(bits);
}

// The bits of a number that number_of() made; 0 for NaN.
inline int64_t bits_of(Number number) {
  if (!(number < 0)) return number >= 0 ? static_cast<int64_t>(static_cast<uint64_t>(number)) : 0;
  return static_cast<int64_t>(number);
}

// A double as a buffer or a register of the dtype holds it: floats rounded, integers saturated.
inline Number held_as(DType dtype, double value) {
  return is_float(dtype) ? round_to(dtype, value) : number_of(dtype, bits_of(dtype, round_to(dtype, value)));
}

// numbers_of: the elements of a buffer of the dtype before the kernel runs. Those of outputs stay as they are, since
// they need not be integers of the dtype. doubles_of: the elements after the kernel has run.
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

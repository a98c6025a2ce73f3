// Words in the interpreter: u32 values that narrow elements are packed into (compiler/base/dtype.h).
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "compiler/base/fill.h"
#include "compiler/kernel/interp/scalars.h"

namespace wl {

// word_of: packs elements into a word; missing elements are zero. element_of: unpacks one element of a word. The
// element is NaN if nothing was stored to the word, because fresh buffers consist of NaN.
inline Number word_of(DType dtype, const std::vector<Number>& elements) {
  uint32_t word = 0;
  for (size_t i = 0; i < elements.size(); ++i)
    store_element(dtype, &word, i, round_to(dtype, static_cast<double>(elements[i])));
  return word;
}
inline Number element_of(DType dtype, Number word, int index) {
  if (std::isnan(word)) return word;
  const auto bits = static_cast<uint32_t>(word);
  return load_element(dtype, &bits, static_cast<uint64_t>(index));
}

// The factor that a matrix instruction reads from a word: one element; of an f32 element only the bits that tf32 keeps.
inline Number factor_of(DType dtype, Number word, int index) {
  if (dtype != DType::f32 || std::isnan(word)) return element_of(dtype, word, index);
  return element_of(dtype, static_cast<uint32_t>(word) & 0xffffe000u, index);
}

// Adds to `to` the products of the corresponding elements of two words.
inline void add_products(DType a_element, Number a, DType b_element, Number b, DType sum, Number& to) {
  for (int i = 0; i < elements_of_word(a_element); ++i)
    to = combine(Op::add, sum, to, factor_of(a_element, a, i) * factor_of(b_element, b, i));
}

}  // namespace wl

// Contractions of narrow elements (bf16, bytes) that multiply words: a word is a u32 of several neighbouring elements,
// and the instruction `dot` adds the products of two words' elements to a sum.
#pragma once

#include <optional>

#include "compiler/domain/domain.h"
#include "compiler/domain/image.h"

namespace wl {

struct Dot {
  AtomId k_atom = -1;  // the atom (loop) along which the elements of a word are neighbours
  int group = 1;       // number of elements in a word
  // Whether elements are multiplied one by one as f32 (choice `widen`): the left operand is packed as f32, and words of
  // the right operand are unpacked in registers.
  bool widened = false;
};

// Returns how a contraction is computed with words; nullopt if it is not. On a machine without the instruction `dot`,
// or if `widen` (the value of that choice) is true, words are used only if the right operand has rows of them in
// memory, as weights in panels have, because unpacking words in registers costs less than packing the operand in every
// call. `copied`: the image that is copied for an operand, if any. Words are then made along its channels, and channels
// that fill more than half of a word are padded with zeros to a whole word.
std::optional<Dot> dot_of(const Graph& group, const Domain& domain, const Machine& machine, bool widen,
                          const std::optional<Image>& copied = std::nullopt);

// Whether the right operand has rows of words in memory, that is, words of neighbouring columns are neighbours. Such an
// operand need not be packed.
bool has_rows_of_words(const Domain& domain, const Dot& dot);
// Whether an operand has words in memory, that is, the elements of each word are neighbours. Such an operand need not
// be packed.
bool has_words(const Domain& domain, const Domain::Operand& operand, const Dot& dot);

}  // namespace wl

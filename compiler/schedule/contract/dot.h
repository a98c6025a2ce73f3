// Contractions of narrow elements (bf16, bytes) that multiply words: a word is a u32 of several neighbouring elements,
// and the instruction `dot` adds the products of two words' elements to a sum.
#pragma once

#include <optional>

#include "compiler/domain/domain.h"
#include "compiler/domain/image.h"

namespace wl {

struct Dot {
  AtomId k_atom = -1;  // the elements of a word are neighbours along this atom
  int group = 1;       // elements of a word
  // Whether elements are multiplied one by one as f32 (choice `widen`): the left operand is packed as f32, and words of
  // the right operand are taken apart in registers.
  bool widened = false;
};

// Returns how a contraction is computed with words; nullopt where it is not. On a machine without the instruction
// `dot`, words are multiplied only if the right operand has rows of them in memory, as weights in panels have: taking
// words apart in registers costs less than packing the operand in every call. `widen`: the value of the choice; then
// too, only a right operand with rows of words is read as words. `copied`: the image that is copied for an operand, if
// any. Words are then made along its channels, and channels that fill more than half of a word are filled up with
// zeros.
std::optional<Dot> dot_of(const Graph& group, const Domain& domain, const Machine& machine, bool widen,
                          const std::optional<Image>& copied = std::nullopt);

// Whether the right operand has rows of words in memory: words of neighbouring columns are neighbours, so it need not
// be packed.
bool has_rows_of_words(const Domain& domain, const Dot& dot);
// Whether the elements of an operand's words are neighbours in memory, so that it need not be packed.
bool has_words(const Domain& domain, const Domain::Operand& operand, const Dot& dot);

}  // namespace wl

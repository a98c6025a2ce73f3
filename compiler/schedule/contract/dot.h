// Contractions of narrow elements that multiply words, each of which is several elements (the instruction `dot`).
#pragma once

#include <optional>

#include "compiler/plan/domain.h"
#include "compiler/plan/image.h"

namespace wl {

struct Dot {
  AtomId k_atom = -1;  // the elements of a word are neighbours along it
  int group = 1;       // elements of a word
  // Whether the elements are multiplied one by one instead: the left operand is packed as f32, and words of the right
  // one are taken apart.
  bool widened = false;
};

// How the contraction of a domain is computed with words; nullopt where it is not. On a machine without the instruction
// `dot`, words are multiplied only if the right operand has rows of them in memory, as weights in panels have: taking
// words apart in registers costs less than packing the operand in every call. `copied`: the image as which an operand
// is copied, if one is. Words are then made along its channels, and channels that fill most of a word are filled up
// with zeros. `widen`: the value of the choice; words are then only those of a right operand that has rows of words.
std::optional<Dot> dot_of(const Graph& group, const Domain& domain, const Machine& machine, bool widen,
                          const std::optional<Image>& copied = std::nullopt);

// Whether the right operand has rows of words in memory (words of neighbouring columns are neighbours), so that it need
// not be packed.
bool has_rows_of_words(const Domain& domain, const Dot& dot);
// Whether the elements of an operand's words are neighbours in memory, so that it need not be packed.
bool has_words(const Domain& domain, const Domain::Operand& operand, const Dot& dot);

}  // namespace wl

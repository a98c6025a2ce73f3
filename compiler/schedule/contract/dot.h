// Products of narrow elements, where the machine multiplies words of them (the instruction `dot`).
#pragma once

#include <optional>

#include "compiler/plan/domain.h"
#include "compiler/plan/image.h"

namespace wl {

struct Dot {
  AtomId k_atom = -1;  // the elements of a word are neighbours along it
  int group = 1;       // as many as these
  // The elements are multiplied one by one: the left operand is packed as f32, words of the right one are taken apart.
  bool widened = false;
};

// How the contraction of a domain is computed with words; nullopt where it is not. A machine without such an
// instruction multiplies words only if the right operand has rows of them, as weights in panels have: unpacking words
// in registers takes less than packing the operand in every call. `copied`: an operand is copied as an image, whose
// elements through one tap are words; channels that fill most of a word are then filled up with zeros.
// `widen`: as the choice says; words then are those of a right operand that has rows of them.
std::optional<Dot> dot_of(const Graph& group, const Domain& domain, const Machine& machine, bool widen,
                          const std::optional<Image>& copied = std::nullopt);

// Whether the right operand has rows of words in memory, so that it need not be packed.
bool has_rows_of_words(const Domain& domain, const Dot& dot);
// Whether the elements of an operand's words are neighbours in memory, so that it need not be packed.
bool has_words(const Domain& domain, const Domain::Operand& operand, const Dot& dot);

}  // namespace wl

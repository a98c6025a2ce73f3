// How a micro-kernel on a CPU reads the right operand of a contraction where it lies in memory, without a packed copy.
#pragma once

#include <optional>

#include "compiler/plan/domain.h"
#include "compiler/schedule/contract/dot.h"

namespace wl {

// Vectors across the columns of the widest micro-kernels.
inline constexpr int64_t kMostVectors = 4;

struct InPlace {
  Access access;          // to the input that varies along K
  bool computed = false;  // with elementwise work on what is read, done again in every tile of rows
};

// How the right operand of a domain's contraction is read in place; nullopt: it cannot be. It can be if it is an
// unchanged input, or if little elementwise work computes it from inputs whose columns are neighbours in memory, or
// that are the same for all columns. Examples are a weight of narrow elements that is widened, or scaled by column.
std::optional<InPlace> right_in_place(const Graph& group, const Domain& domain);

// Whether the right operand lies in memory in the order of packed panels: the columns of a row, at most `widest`, are
// neighbours, and the next row follows. Where products are of words (`dot`), a row consists of words.
bool is_in_panels(const Graph& group, const Domain& domain, const std::optional<Dot>& dot, int64_t widest);

}  // namespace wl

// How a micro-kernel on a CPU reads the right operand of a contraction in place, that is, without a packed copy.
#pragma once

#include <optional>

#include "compiler/domain/domain.h"
#include "compiler/schedule/contract/dot.h"

namespace wl {

// The number of vectors across the columns of the widest micro-kernel.
inline constexpr int64_t kMostVectors = 4;

struct InPlace {
  Access access;          // how the micro-kernel reads that input of the operand which varies along K
  bool computed = false;  // whether elementwise work follows the read; it is repeated for every tile of rows
};

// Returns how the right operand of a domain's contraction can be read in place; nullopt if it cannot. It must be an
// unchanged input, or be computed by little elementwise work from inputs whose columns are neighbours in memory, or
// from inputs that are the same for all columns. Examples are a weight whose narrow elements are widened, and a weight
// that is scaled by column.
std::optional<InPlace> right_in_place(const Graph& group, const Domain& domain);

// Whether the right operand is already stored as packed panels: the columns of a row, at most `widest`, are neighbours
// in memory, and the next row follows. If words are multiplied (`dot`), a row consists of words.
bool is_in_panels(const Graph& group, const Domain& domain, const std::optional<Dot>& dot, int64_t widest);

}  // namespace wl

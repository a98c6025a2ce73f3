// How a micro-kernel on a CPU reads the right operand of a contraction where it lies in memory, without a packed copy.
#pragma once

#include <optional>

#include "compiler/plan/domain.h"
#include "compiler/schedule/contract/dot.h"

namespace wl {

// Vectors across the columns of the widest micro-kernels.
inline constexpr int64_t kMostVectors = 4;

struct InPlace {
  Access access;          // of the input that moves along the depth
  bool computed = false;  // with elementwise work on what is read, which every tile of rows does again
};

// nullopt: the operand cannot be read in place. It can if it is an input as it is, or if little elementwise work makes
// it of inputs whose columns are neighbours in memory, or that are the same for all columns: a weight of narrow
// elements that is widened, or scaled by column.
std::optional<InPlace> right_in_place(const Graph& group, const Domain& domain);

// Whether the right operand has the order of packed panels in memory: the columns of a row, at most so many, are
// neighbours, and the next row follows. Where products are of words, a row is one of words.
bool is_in_panels(const Graph& group, const Domain& domain, const std::optional<Dot>& dot, int64_t widest);

}  // namespace wl

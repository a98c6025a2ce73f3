// Weights that products multiply with, in the order in which a micro-kernel reads them. Internal to fold_weights.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace wl {

// How a product reads a weight in panels: contract "mk,nk->mn" or "mk,kn->mn" as reshape(contract "mk,pkq->mpq"), and a
// convolution "khwij,nkij->nhw" as reshape(contract "khwij,pkijq->pqhw"). The q columns of a panel are neighbours in
// memory, and the rows of a panel follow each other. Products of words (dtype.h) read them
// as "mkj,pkqj->mpq": the j elements of a word are neighbours, and a row is one of words; products of one row do not.
struct WeightPanels {
  Shape split;                 // the shape of the weight once its columns are divided into panels
  std::vector<int64_t> order;  // the transposition that makes them panels: for each axis, its number in `split`
  std::string einsum;          // of the product that reads the panels
  Shape other;                 // the shape in which that product reads the other operand
};

// Returns how the operand `side` (0 or 1) of a product can be read in panels of so many columns, the first of `widths`
// that divide its own, where that is another order than its own. The columns are the last axis of the result that is
// this operand's alone; where no width of panels divides them, they are one panel. nullopt: the operand has no such
// columns, has fewer than a vector, is different for each of a batch of products, or is in panels already.
std::optional<WeightPanels> panels_of(const Graph& graph, const Node& product, int side,
                                      const std::vector<int64_t>& widths);

}  // namespace wl

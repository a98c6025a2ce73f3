// Puts weights that products multiply with into panels: blocks of columns in the order in which a micro-kernel reads
// them. Internal to fold_weights.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace wl {

// How a product reads a weight in panels. A contract "mk,nk->mn" or "mk,kn->mn" becomes reshape(contract
// "mk,pkq->mpq"), and a convolution "khwij,nkij->nhw" becomes reshape(contract "khwij,pkijq->pqhw"), where p numbers
// the panels and q the columns of a panel. The columns of a panel are neighbours in memory, and its rows follow each
// other. Where instructions multiply words (a word is a u32 of several narrow elements, dtype.h), the product becomes
// "mkj,pkqj->mpq" instead: the j elements of a word are neighbours, and a row holds words. Products with one row of
// results use no words.
struct WeightPanels {
  Shape split;                 // the shape of the weight once its columns are divided into panels
  std::vector<int64_t> order;  // the transposition that makes panels: for each axis, its number in `split`
  std::string einsum;          // einsum of the product that reads the panels
  Shape other;                 // the shape to which the product's other operand is reshaped
};

// Returns how the operand `side` (0 or 1) of a product can be read in panels. Its columns are the last axis of the
// result that only this operand has. A panel has as many columns as the first of `widths` that divides their number; if
// none does, all columns are one panel. Returns nullopt if the operand has no such columns or fewer than fill a vector,
// if it is different for each product of a batch, or if its elements are in the order of panels already.
std::optional<WeightPanels> panels_of(const Graph& graph, const Node& product, int side,
                                      const std::vector<int64_t>& widths);

}  // namespace wl

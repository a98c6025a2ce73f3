// Rearranges the weights of products into panels: blocks of columns, in the order in which a micro-kernel reads them.
// Only fold_weights() uses this header.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace wl {

// How a product reads a weight in panels. A contract "mk,nk->mn" or "mk,kn->mn" becomes reshape(contract
// "mk,pkq->mpq"), and a convolution "khwij,nkij->nhw" becomes reshape(contract "khwij,pkijq->pqhw"), where p numbers
// the panels and q the columns of a panel. A row of a panel is contiguous, and the rows of a panel follow each other in
// memory. Where instructions multiply words (a word is a u32 of several narrow elements, dtype.h), the product becomes
// "mkj,pkqj->mpq" instead: j numbers the elements of a word, which are contiguous, and a row consists of words.
// Products with one row of results use no words.
struct WeightPanels {
  Shape split;                 // the weight's shape after its columns have been divided into panels
  std::vector<int64_t> order;  // transposes `split` into panels: axis i of the panels is axis order[i] of `split`
  std::string einsum;          // einsum of the product that reads the panels
  Shape other;                 // the shape to which the product's other operand is reshaped
};

// Returns how the operand `side` (0 or 1) of a product can be read in panels. Its columns are the last axis of the
// result that only this operand has. A panel has as many columns as the first entry of `widths` that divides their
// number; if none does, all columns are one panel. Returns nullopt if the operand has no columns or fewer than fill a
// vector, if each product of a batch has its own operand, or if the operand's elements are in the order of panels
// already.
std::optional<WeightPanels> panels_of(const Graph& graph, const Node& product, int side,
                                      const std::vector<int64_t>& widths);

}  // namespace wl

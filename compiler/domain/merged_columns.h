// Merged columns: the last two column loops of a contraction as one loop. If a convolution is seen as a matrix product,
// its columns are the pixels of an image. Only its right operand, a window of the image, must be read in two loops,
// over the rows and the columns of the image; every other value can be accessed in one loop over all pixels. A packed
// copy of the right operand can be read in either way, so tiles extend over all pixels even if the image is narrow.
#pragma once

#include <optional>

#include "compiler/domain/domain.h"

namespace wl {

struct MergedColumns {
  // The original domain with the same atoms, except that `height` iterates over all pixels, `width` has extent 1, and n
  // ends with `height`. The accesses of the right operand are not valid.
  Domain domain;
  AtomId height = -1, width = -1;
};
// Returns nullopt if the group is not a contraction with two column loops. Returns nullopt as well if a store, or a
// value that an op after the contraction reads, has strides that do not allow one loop in place of the two.
std::optional<MergedColumns> merged_columns(const Domain& domain);

}  // namespace wl

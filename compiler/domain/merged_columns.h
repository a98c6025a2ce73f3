// Merged columns: the last two column loops of a contraction as one loop. The columns of a convolution, seen as a
// matrix product, are the pixels of an image. Its right operand, a window of the image, is read in two loops, over the
// rows and the columns of the image; every other value can be accessed in one loop over all pixels. A packed copy of
// the right operand can be read in either way, so tiles run over all pixels, however narrow the image is.
#pragma once

#include <optional>

#include "compiler/domain/domain.h"

namespace wl {

struct MergedColumns {
  // The original domain with the same atoms, but `height` counts pixels, `width` has extent 1, and n ends with
  // `height`. Its accesses of the right operand are not valid.
  Domain domain;
  AtomId height = -1, width = -1;
};
// Returns nullopt if the group is not a contraction with two column loops, or if a store, or a value that an op after
// the contraction reads, does not move along the two loops as along one.
std::optional<MergedColumns> merged_columns(const Domain& domain);

}  // namespace wl

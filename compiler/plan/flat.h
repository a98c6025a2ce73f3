// The columns of a convolution's product are the pixels of an image. Its right operand, a window of the image, needs
// rows and columns of the image as two loops; everything else sees the pixels as one loop. A packed operand can be read
// in either way, so tiles run over all pixels, however narrow the image is.
#pragma once

#include <optional>

#include "compiler/plan/domain.h"

namespace wl {

struct FlatColumns {
  // As the original, atom for atom, but `height` counts pixels, `width` has extent 1, and n ends with `height`. Not for
  // reading the right operand.
  Domain domain;
  AtomId height = -1, width = -1;
};
// nullopt when the group is no contraction, or something else also moves along the two in another way.
std::optional<FlatColumns> flat_columns(const Domain& domain);

}  // namespace wl

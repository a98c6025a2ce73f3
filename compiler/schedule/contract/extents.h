// Facts about a contraction on CPUs, for each way to compute it, from which the contraction's search space follows.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/domain/image.h"
#include "compiler/schedule/contract/dot.h"
#include "compiler/schedule/contract/tiles.h"

namespace wl {

struct Slides {
  Slide width, height;
};

// The facts for one way to compute the contraction: with or without exchanged rows and columns (`turned`, choice
// turn_tiles), and with or without `widen`.
struct Extents {
  bool turned = false, widened = false;
  bool panels = false;      // whether the right operand lies in memory in panels
  bool direct = false;      // whether the left operand is an unchanged input: it need not be packed
  bool in_place = false;    // whether the right operand may be read without a packed copy
  bool computed = false;    // whether elementwise work follows a read of the right operand in place
  int64_t right_size = 1;   // the bytes of an element of the right operand in memory
  int64_t packed_size = 1;  // the bytes of an element of a packed operand
  bool zeros = false;       // whether some taps read nothing but padding for a whole row of pixels
  bool image = false;       // whether the columns (if `turned`, the rows) are pixels of an image
  bool left_image = false;  // whether the left operand is a window on an image, and not `turned`
  // How the window slides over the image that kCopyRows copies, and over the one that kCopyWhole copies.
  std::optional<Slides> rows_once, once;
  std::optional<Dot> dot;  // how operands are read as words (u32 of several narrow elements); nullopt: they are not
  // With `dot`: whether the left operand, and the right one, has words in memory.
  bool left_words = true, right_words = true;
  bool left_narrow = false;        // whether elements of the left operand that are read in place must be widened
  std::optional<TileSteps> tiles;  // the steps along k, if tile registers can multiply the words
  bool left_tiles = false;         // whether tile registers can load the left operand without packing
  // Extents of the last row loop, of the row loop around it and of the last column loop; products of the extents of all
  // loops of K, of the batch loops and remaining row loops (`outer`), and of the remaining column loops.
  int64_t rows = 1, outer_rows = 1, columns = 1, depth = 1, outer = 1, outer_columns = 1;
};

// Returns the ways to compute a contraction: as it is and, if the left operand is stored in panels (so that vectors
// along its columns can be loaded), also with exchanged rows and columns (`turned`). Each way is listed once for every
// value that `widen` may have, the faster value first, and a `turned` way directly follows the same way without
// exchange.
std::vector<Extents> ways_of(const Graph& group, const Domain& domain, const Machine& machine);

}  // namespace wl

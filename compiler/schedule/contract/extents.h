// What the space of a contraction on CPUs needs to know of it, in each way to compute it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/plan/image.h"
#include "compiler/schedule/contract/dot.h"
#include "compiler/schedule/contract/tiles.h"

namespace wl {

struct Slides {
  Slide width, height;
};

// Of the contraction as it is, or turned, with one value of `widen`.
struct Extents {
  bool turned = false, widened = false;
  bool panels = false;                         // the right operand is in panels
  bool direct = false;                         // the left operand is read as it is
  bool in_place = false;                       // the right operand may be read where it lies
  bool computed = false;                       // and there is work on what is read
  int64_t right_size = 1;                      // bytes of an element of the right operand in memory
  int64_t packed_size = 1;                     // and of one that is packed
  bool zeros = false;                          // some rows of the image have taps that are outside of it
  bool image = false;                          // columns, or rows of a turned contraction, are pixels
  bool left_image = false;                     // the window is the left operand, and nothing is turned
  std::optional<Slides> rows_once, once;       // of a window that slides over an image; by kCopyRows and kCopyWhole
  std::optional<Dot> dot;                      // products are of words, or of their elements one by one
  bool left_words = true, right_words = true;  // with dot: need not be packed
  bool left_narrow = false;                    // elements of the left operand are widened wherever they are read
  std::optional<TileSteps> tiles;              // words may be multiplied in tile registers
  bool left_tiles = false;                     // and the left operand need not be packed for that
  int64_t rows = 1, outer_rows = 1, columns = 1, depth = 1, outer = 1, outer_columns = 1;
};

// Of the contraction as it is, and turned where the left operand is in panels, which columns of vectors can be read
// from; of either with each value that `widen` may have, the faster one first. A way that is turned follows the same
// way as it is.
std::vector<Extents> ways_of(const Graph& group, const Domain& domain, const Machine& machine);

}  // namespace wl

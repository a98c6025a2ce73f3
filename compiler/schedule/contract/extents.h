// Facts about a contraction on CPUs that its space of schedules depends on, for each way to compute it.
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

// The facts for one way to compute the contraction: as it is or turned (rows and columns exchanged), and `widen`.
struct Extents {
  bool turned = false, widened = false;
  bool panels = false;                         // the right operand lies in memory in panels
  bool direct = false;                         // the left operand is read as it is
  bool in_place = false;                       // the right operand may be read where it lies
  bool computed = false;                       // in_place, with elementwise work on what is read
  int64_t right_size = 1;                      // bytes of an element of the right operand in memory
  int64_t packed_size = 1;                     // bytes of an element of a packed operand
  bool zeros = false;                          // some rows of the image have taps that are outside of it
  bool image = false;                          // columns, or rows of a turned contraction, are pixels
  bool left_image = false;                     // a window on an image is the left operand, and nothing is turned
  std::optional<Slides> rows_once, once;       // how a window slides, if kCopyRows or kCopyWhole copies its image
  std::optional<Dot> dot;                      // products are of words, or of their elements one by one
  bool left_words = true, right_words = true;  // with dot: the operand need not be packed
  bool left_narrow = false;                    // elements of the left operand are widened wherever they are read
  std::optional<TileSteps> tiles;              // words may be multiplied in tile registers
  bool left_tiles = false;                     // the left operand need not be packed for tile registers
  int64_t rows = 1, outer_rows = 1, columns = 1, depth = 1, outer = 1, outer_columns = 1;
};

// The ways to compute a contraction: as it is, and turned where the left operand is in panels, which columns of vectors
// can be read from; each with every value that `widen` may have, the faster value first. A turned way follows the same
// way without turning.
std::vector<Extents> ways_of(const Graph& group, const Domain& domain, const Machine& machine);

}  // namespace wl

// Facts about a contraction on CPUs from which its space of schedules follows, for each way to compute it.
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

// The facts for one way to compute the contraction: as it is or turned (rows and columns exchanged, choice turn_tiles),
// and with or without `widen`.
struct Extents {
  bool turned = false, widened = false;
  bool panels = false;                         // the right operand lies in memory in panels
  bool direct = false;                         // the left operand is an unchanged input, so it need not be packed
  bool in_place = false;                       // the right operand may be read where it lies
  bool computed = false;                       // in_place, but the micro-kernel does elementwise work on what it reads
  int64_t right_size = 1;                      // bytes of an element of the right operand in memory
  int64_t packed_size = 1;                     // bytes of an element of a packed operand
  bool zeros = false;                          // some taps read only padding for a whole row of pixels
  bool image = false;                          // pixels of an image are the columns or, if turned, the rows
  bool left_image = false;                     // the left operand is a window on an image; nothing is turned
  std::optional<Slides> rows_once, once;       // how the window slides if kCopyRows or kCopyWhole copies its image
  std::optional<Dot> dot;                      // operands are multiplied as words, or as elements of words
  bool left_words = true, right_words = true;  // with `dot`: the operand's words lie in memory
  bool left_narrow = false;                    // reading an element of the left operand in place widens it
  std::optional<TileSteps> tiles;              // the steps along k if words may be multiplied in tile registers
  bool left_tiles = false;                     // tile registers can load the left operand from memory as it is
  // Extents of the last row loop, of the row loop around it and of the last column loop, and the products of all loops
  // of K, of the batch loops with the other row loops, and of the other column loops.
  int64_t rows = 1, outer_rows = 1, columns = 1, depth = 1, outer = 1, outer_columns = 1;
};

// Returns the ways to compute a contraction: as it is and, if the left operand lies in panels, so that vectors of
// columns can be read from it, turned; each with every value that `widen` may have, the faster value first. A turned
// way follows the same way without turning.
std::vector<Extents> ways_of(const Graph& group, const Domain& domain, const Machine& machine);

}  // namespace wl

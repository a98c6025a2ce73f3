// Recognises an operand of a contraction that is a window sliding over an image, as in a convolution. There is a loop
// over outputs and a reduced loop over *taps* (the positions in the window), and all addresses and guards of the
// operand depend on these as stride * output + dilation * tap. So the products read the same element several times,
// through different taps. The image is the operand without these repetitions. It is stored as *planes* of *positions*:
// position x of plane p has the element that output x reads through tap p, and output o reads tap t in plane t % planes
// at position o + t / planes * step. So neighbouring outputs read neighbouring elements for every tap, even if the
// stride is above 1.
#pragma once

#include <optional>

#include "compiler/domain/domain.h"

namespace wl {

// How a window slides along one loop: the loops over outputs and taps with their extents, and the image's planes,
// positions and step.
struct Slide {
  // The loops over outputs and over taps. tap -1: the operand does not slide along the loop over outputs.
  AtomId output = -1, tap = -1;
  int64_t outputs = 1, taps = 1;
  int64_t planes = 1, step = 0, positions = 1;
  // Returns by how many positions the taps of the last output extend beyond the outputs.
  int64_t halo() const { return positions - outputs; }
};

struct Image {
  // A domain with the atoms of the original one, except that the atom `output` of a slide iterates over positions, and
  // its atom `tap` over planes. It is only valid for reading this operand. Guards exclude elements that no output
  // reads.
  Domain domain;
  int operand = 0;      // which operand of the contraction is the sliding window: 0 or 1
  Slide width, height;  // slides along the loops of width and height; height.output -1: there is no height
  // The reduced atom, other than a tap, along which the image is contiguous in memory; -1: there is none.
  AtomId channel = -1;
  bool is_tap(AtomId atom) const { return atom == width.tap || atom == height.tap; }
};
// Returns the image of the operand that varies along the columns, n; nullopt if that operand is not a sliding window.
// If `along_rows` is set, the operand slides along the last two atoms of n (width and height). Otherwise it slides
// along the height alone, the last but one atom of n. The image then has a copy of its rows for each tap along the
// width, and these rows are no longer than the rows of outputs.
std::optional<Image> column_image(const Domain& domain, bool along_rows);

// Returns the image of the contraction's operand that varies along the rows, m, and slides along the last two atoms
// of m. This is column_image() of the domain with m and n exchanged.
std::optional<Image> row_image(const Domain& domain, bool along_rows);

// Returns the guard that says which rows of the image are padding: where it does not hold, all elements of the row are
// zero. It depends only on the height's outputs and taps. Returns nullopt if no tap lies outside of the image, or if
// elements outside are not known to be zero.
std::optional<Guard> zeros_around(const Domain& domain, const Image& image);

}  // namespace wl

// An operand of a contraction that is a window sliding over an image, whatever the op was called: for a loop over
// outputs and a reduced loop over *taps* (the positions in the window), all addresses and guards behind the operand
// move along stride * output + dilation * tap. So the products read the same element several times, through different
// taps. The image is the operand without these repetitions, stored as *planes* of *positions*: element x of plane p is
// the element that output x reads through tap p, and output o finds tap t in plane t % planes at position o + t /
// planes * step. So neighbouring outputs read neighbouring elements for every tap, for strides above 1 too.
#pragma once

#include <optional>

#include "compiler/domain/domain.h"

namespace wl {

// How a window slides along one loop.
struct Slide {
  AtomId output = -1, tap = -1;  // tap -1: the operand does not slide along this loop
  int64_t outputs = 1, taps = 1;
  int64_t planes = 1, step = 0, positions = 1;
  // Returns how many positions the taps reach beyond the outputs.
  int64_t halo() const { return positions - outputs; }
};

struct Image {
  // The original domain with the same atoms, but the atom `output` of a slide counts positions, and its `tap` counts
  // planes. It is valid only for reading this operand. Guards exclude elements that no output reads through any tap.
  Domain domain;
  int operand = 0;      // which operand of the contraction is the window
  Slide width, height;  // height.output -1: there is no such loop
  // The reduced atom that is not a tap and along which the image is contiguous in memory; -1: there is none.
  AtomId channel = -1;
  bool is_tap(AtomId atom) const { return atom == width.tap || atom == height.tap; }
};
// Returns the image of the operand that moves along the columns, n. With `along_rows` it slides along the last two
// atoms of n (width and height). Without, it slides along the last but one alone (height): each tap along a row of the
// image then has a copy of its own, whose rows have no halo. nullopt: the operand is not a sliding window.
std::optional<Image> column_image(const Domain& domain, bool along_rows);

// Returns the image of the other operand, which slides along the last two atoms of m: column_image() of the domain with
// m and n exchanged.
std::optional<Image> row_image(const Domain& domain, bool along_rows);

// Returns the guard that tells which rows of the image are padding: it moves only along the height's outputs and taps,
// and where it does not hold, all elements of a row are zero. nullopt: no tap reaches outside of the image, or the
// elements outside are not known to be zero.
std::optional<Guard> zeros_around(const Domain& domain, const Image& image);

}  // namespace wl

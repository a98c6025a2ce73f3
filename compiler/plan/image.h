// An operand of a contraction that is a window sliding over an image, whatever the op was called: for a loop over
// outputs and a reduced loop over taps, all addresses and guards behind the operand move along stride * output +
// dilation * tap. The products then meet the same elements again through other taps. The image is the operand without
// these repetitions, as *planes* of *positions*: element x of plane p is what output x reads through tap p, and output
// o finds tap t in plane t % planes at position o + t / planes * step. So neighbouring outputs are neighbours for every
// tap, with strides too.
#pragma once

#include <optional>

#include "compiler/plan/domain.h"

namespace wl {

struct Slide {
  AtomId output = -1, tap = -1;  // tap -1: the operand does not slide along this loop
  int64_t outputs = 1, taps = 1;
  int64_t planes = 1, step = 0, positions = 1;
  // How many positions beyond the outputs taps reach.
  int64_t halo() const { return positions - outputs; }
};

struct Image {
  // As the original, atom for atom, but `output` of a slide counts positions and `tap` planes. For reading this operand
  // alone: what no output reads through any tap is guarded.
  Domain domain;
  int operand = 0;      // of the contraction
  Slide width, height;  // height.output -1: there is no such loop
  // The reduced atom that is no tap and along which the image is contiguous in memory; -1: there is none.
  AtomId channel = -1;
  bool is_tap(AtomId atom) const { return atom == width.tap || atom == height.tap; }
};
// Of the operand that is contiguous along the columns, sliding along the last two atoms of n or, without `along_rows`,
// along the last but one alone: taps along a row of the image then have a copy each, whose rows have no halo.
std::optional<Image> column_image(const Domain& domain, bool along_rows);

// Of the other operand, sliding along the last two atoms of m, in the same way.
std::optional<Image> row_image(const Domain& domain, bool along_rows);

// Where the image is zero for all elements of a row: the guard, which moves along the rows of outputs and their taps
// alone, that holds inside of the image. nullopt: there are no such taps, or what is outside is not known to be zero.
std::optional<Guard> zeros_around(const Domain& domain, const Image& image);

}  // namespace wl

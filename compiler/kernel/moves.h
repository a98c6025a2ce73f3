// Where the elements of one layout lie in another. Both layouts are linear over F2, and so is the map that leads from a
// position of the second to the position of the first that holds the same element: each bit of the one stands for some
// bits of the other, and the bits that several stand for are added up.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/kernel/layout.h"

namespace wl {

// A position in bits: from bit 0 on the thread's number in its team (lanes low, waves above), from kRegisterBit on the
// thread's registers, in the order of Registers::bits.
inline constexpr int kRegisterBit = 20;

// The registers of a layout in bits: first the bits of an element's number in its vector, then those of register
// repeats.
struct Registers {
  struct Bit {
    int axis = -1;   // the axis whose repeats it counts; -1: it counts elements of the vector
    int number = 0;  // of the bit among those that count the same
  };
  std::vector<Bit> bits;
  std::vector<int> counted;    // for each axis, how many of the bits count its repeats
  std::vector<int64_t> outer;  // for each axis, the outermost repeats, which are not counted in bits

  // repeats: the repeats, one for each axis, of the register with the bits `of`, within these outermost repeats.
  // element: the number of the element in its vector.
  std::vector<int64_t> repeats(uint64_t of, const std::vector<int64_t>& outermost) const;
  int64_t element(uint64_t of) const;
};

inline constexpr int kMostCoordinateBits = 40;

struct Moves {
  Registers from, to;
  uint64_t held = 0;                // bits of a thread's number on which its elements of `from` depend
  std::vector<uint64_t> threads;    // for each bit of a thread's number in `to`, bits of a position in `from`
  std::vector<uint64_t> registers;  // for each register bit of `to`, bits of a position in `from`
};

// The moves between two layouts of one shape, for which Layout::check holds, for a team of `team` threads of which
// `wave` run together (both powers of two). Over all axes there may be no more than kMostCoordinateBits, of each axis
// the larger number of the two layouts. Axes that one layout counts by bits and the other by outermost repeats are
// counted by bits in both, as far as the longer of them goes; the outermost repeats that are left are the same in both,
// except that one may have more beyond the shape.
Moves moves_between(const Layout& from, const Layout& to, int team, int wave);

// The sum over F2 of the entries of `listed` whose bits are set in `number`; bits beyond the list add nothing.
uint64_t listed_sum(const std::vector<uint64_t>& listed, uint64_t number);

// Whether no element moves to another wave of the team.
bool within_waves(const Moves& moves, int wave);

}  // namespace wl

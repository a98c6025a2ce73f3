// Where the elements of one layout lie in another. Both are linear over F2, and so is what leads from one to the other:
// each bit of a position of the second stands for some bits of a position of the first, and those of several bits are
// added up.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/kernel/layout.h"

namespace wl {

// A position in bits: the thread's number in its team (lanes low, waves above), and from kRegisterBit on its registers,
// counted as Registers does.
inline constexpr int kRegisterBit = 20;

// The registers of a layout in bits: first those of an element's place in its vector, then those of register repeats.
struct Registers {
  struct Bit {
    int axis = -1;   // whose repeats it counts; -1: the place in the vector
    int number = 0;  // of the bit there
  };
  std::vector<Bit> bits;
  std::vector<int> counted;    // for each axis, how many bits of its repeats are among them
  std::vector<int64_t> outer;  // for each axis, how often all of that repeats

  // The repeats of the register of these bits, in this outermost repeat of each axis; and the place in its vector.
  std::vector<int64_t> repeats(uint64_t of, const std::vector<int64_t>& outermost) const;
  int64_t element(uint64_t of) const;
};

inline constexpr int kMostCoordinateBits = 40;

struct Moves {
  Registers from, to;
  uint64_t held = 0;                // bits of a thread's number that change what it holds of `from`
  std::vector<uint64_t> threads;    // for each bit of a thread's number in `to`, bits of a position in `from`
  std::vector<uint64_t> registers;  // for each register bit of `to`, the same
};

// Layouts of one shape, for which Layout::check holds, for a team of `team` threads of which `wave` run together
// (powers of two). No more than kMostCoordinateBits of all axes, of each the more of the two. Axes that one of them
// counts by bits and the other by outermost repeats are counted by bits in both, as far as the longer of them goes;
// outermost repeats are then the same in both, except that one may have more beyond the shape.
Moves moves_between(const Layout& from, const Layout& to, int team, int wave);

// What the bits of a number add up to over F2, of what is listed for each bit; bits that are not listed add nothing.
uint64_t listed_sum(const std::vector<uint64_t>& listed, uint64_t number);

// No element moves to another wave of the team.
bool within_waves(const Moves& moves, int wave);

}  // namespace wl

// How elements move from one layout of a tile to another. Both layouts are linear over F2, and so is the map from a
// position in the second layout to the position in the first that holds the same element: each bit of a position in the
// second stands for a set of bits of a position in the first, and the sets are XORed.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/kernel/layout.h"

namespace wl {

// A position as a bit vector: the low bits are the thread's number in its team (lanes low, waves above), and from
// kRegisterBit on follow the bits of the thread's registers, in the order of Registers::bits.
inline constexpr int kRegisterBit = 20;

// The bits that number the registers of a layout: first the bits of an element's index in its vector, then those of
// register repeats.
struct Registers {
  struct Bit {
    int axis = -1;   // the axis whose repeats the bit counts; -1: it counts elements of the vector
    int number = 0;  // index of the bit among those with the same `axis`
  };
  std::vector<Bit> bits;
  std::vector<int> counted;    // for each axis, how many entries of `bits` count its repeats
  std::vector<int64_t> outer;  // for each axis, the outermost repeats, which are not counted in bits

  // Both functions are about the register with the bits `of`. repeats: its repeat number along each axis; `outermost`
  // gives the outermost repeats. element: the index of the register's element in its vector.
  std::vector<int64_t> repeats(uint64_t of, const std::vector<int64_t>& outermost) const;
  int64_t element(uint64_t of) const;
};

inline constexpr int kMostCoordinateBits = 40;

struct Moves {
  Registers from, to;
  uint64_t held = 0;              // the bits of a thread's number that decide which elements of `from` the thread holds
  std::vector<uint64_t> threads;  // for each thread bit of `to`: the bits of a `from` position that it stands for
  std::vector<uint64_t> registers;  // for each register bit of `to`: the bits of a `from` position that it stands for
};

// Returns the moves between two layouts of the same shape, both valid (Layout::check), for a team of `team` threads of
// which `wave` form a wave (both powers of two). If one layout has fewer coordinate bits along an axis than the other,
// its outermost repeats become further bits, so that both have the same number of bits. These numbers of all axes may
// sum up to at most kMostCoordinateBits. The outermost repeats that remain are the same in both layouts, except that
// one may have more beyond the shape.
Moves moves_between(const Layout& from, const Layout& to, int team, int wave);

// Returns the XOR of the entries of `listed` whose bits are set in `number`; bits beyond the end of the list are
// ignored.
uint64_t listed_sum(const std::vector<uint64_t>& listed, uint64_t number);

// Whether every element moves only within its wave, and none to another wave.
bool within_waves(const Moves& moves, int wave);

}  // namespace wl

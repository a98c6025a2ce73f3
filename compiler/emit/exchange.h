// How the lanes of a wave exchange the elements of a tile, so that each lane then has the elements of another layout.
// In every round each lane gives one register and takes the register that some lane gives. Which register a lane gives,
// from which lane it takes, and into which register it puts the value are linear functions over F2 of the lane's
// number. There are as many rounds as a lane has registers of the result, or more if one lane must give more registers.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/kernel/moves.h"

namespace wl {

// In round k, thread t (its number in the team: lane bits, then wave bits) gives its register give(t) ^ give_round(k)
// and takes from the lane lane(t) ^ lane_round(k) of its wave. The value belongs into register put(t) ^ k of the
// result; if that number has more bits than the result's registers, the thread does not use the value of this round.
// Each function is a list with one entry for each bit of t or k; its value is the XOR of the entries whose bits are
// set.
struct Exchange {
  std::vector<uint64_t> give, give_round;  // registers of the argument
  std::vector<uint64_t> lane, lane_round;
  std::vector<uint64_t> put;  // registers of the result
  // Whether lane(t) is the thread's own lane for every thread t.
  bool own_lane(int lane_bits) const;
};

// The exchange for moves (compiler/kernel/moves.h) that stay within waves of 2^lane_bits lanes each.
Exchange exchange_of(const Moves& moves, int lane_bits);

}  // namespace wl

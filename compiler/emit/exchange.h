// How the lanes of a wave exchange the elements of a tile, so that each lane then has the elements that another layout
// gives it. In every round each lane gives one register and takes the register that some lane gives. Three functions of
// the lane's number are linear over F2: which register it gives, from which lane it takes, and into which register it
// puts the value. There are as many rounds as a lane has registers of the result, or more if one lane must give more
// registers.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/kernel/moves.h"

namespace wl {

// In round k, thread t gives its register give(t) ^ give_round(k) and takes from lane lane(t) ^ lane_round(k) of its
// wave. Here t is the thread's number in its team (lane bits, then wave bits). The value belongs into register put(t) ^
// k of the result; if the result has no register of this number, the thread does not use the value. Each function is a
// list with one entry for each bit of t or k; its value is the XOR of the entries whose bits are set.
struct Exchange {
  std::vector<uint64_t> give, give_round;  // which register of the argument a thread gives
  std::vector<uint64_t> lane, lane_round;
  std::vector<uint64_t> put;  // which register of the result a value belongs into
  // Whether every thread t takes from its own lane in round 0, because lane(t) is that lane.
  bool own_lane(int lane_bits) const;
};

// Returns the exchange for moves (compiler/kernel/moves.h) that stay within waves of 2^lane_bits lanes each.
Exchange exchange_of(const Moves& moves, int lane_bits);

}  // namespace wl

// How the lanes of a wave exchange the elements of a tile so that each has those of another layout. In every round each
// lane gives one register and takes one of another lane; which register is given, from which lane it is taken and where
// it is put may depend on the lane, over F2. There are as many rounds as a lane has registers of the result, unless one
// lane must give more than that.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/kernel/moves.h"

namespace wl {

// Of the thread whose number has the bits t (lanes and waves), in the round with the bits k: it gives register give(t)
// ^ give_round(k), takes from the lane lane(t) ^ lane_round(k) of its wave, and has then what belongs into its register
// put(t) ^ k, in the register bits of the result; where that is beyond them, it is not this lane's turn. Each of these
// is the XOR of what is listed for the bits that are set.
struct Exchange {
  std::vector<uint64_t> give, give_round;  // registers of the argument
  std::vector<uint64_t> lane, lane_round;
  std::vector<uint64_t> put;  // registers of the result
  // Every thread takes from its own lane, apart from lane_round.
  bool own_lane(int lane_bits) const;
};

// For moves that stay within waves, of 2^lane_bits lanes each.
Exchange exchange_of(const Moves& moves, int lane_bits);

}  // namespace wl

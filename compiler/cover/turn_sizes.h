// How much of a group a block takes that walks a reduced axis in turns (carried.h).
#pragma once

#include <cstdint>
#include <vector>

namespace wl {

// Lengths of the turns along an axis of `extent` elements, best first: each at most a usual one, and so that the last
// turn has nearly as many. Only those that divide the axis, where there are any; none where the axis is too short.
std::vector<int64_t> turn_lengths(int64_t extent);

// Numbers of rows of a block, of `extent` rows, best first. They divide `extent` and are multiples of `least`, which
// divides it too: the usual ones, where they do; else all of few rows, or the divisors that fill most of their vectors
// and are near the usual ones.
std::vector<int64_t> turn_rows(int64_t extent, int64_t least);

}  // namespace wl

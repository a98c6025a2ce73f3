// Sizes to try for blocks that walk a reduced axis in turns (iterations over parts of the axis, carried.h).
#pragma once

#include <cstdint>
#include <vector>

namespace wl {

// The lengths to try for turns along an axis of `extent` elements, best first. Each is at most one of the usual
// lengths, and such that the last turn has nearly as many elements as the others. Where some of them divide the axis,
// only those are returned; for an axis too short for two turns, none is.
std::vector<int64_t> turn_lengths(int64_t extent);

// The numbers of rows of a block to try where there are `extent` rows in all, best first. Each divides `extent` and is
// a multiple of `least`, which divides `extent` too. At most 64 rows are one block. Otherwise the result is those of
// the usual numbers that fit, or, if none does, the divisors that fill most of the lanes of their vectors and are near
// 128.
std::vector<int64_t> turn_rows(int64_t extent, int64_t least);

}  // namespace wl

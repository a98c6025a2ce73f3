// Sizes to try for blocks that walk a reduced axis in turns (iterations over parts of the axis, carried.h).
#pragma once

#include <cstdint>
#include <vector>

namespace wl {

// Returns the lengths to try for turns (iterations) along an axis of `extent` elements, best first. Each is a usual
// length or, if that does not divide the axis, the smaller length with which the same number of turns have nearly
// equal lengths. If some lengths divide the axis, only those are returned. If the axis is too short for two turns, the
// result is empty.
std::vector<int64_t> turn_lengths(int64_t extent);

// Returns the numbers of rows of a block to try if there are `extent` rows in all, best first. Each divides `extent`
// and is a multiple of `least`, which must divide `extent`. At most 64 rows are one block. For more rows, the result
// has the usual numbers that fit or, if none fits, divisors of `extent` that leave few lanes of vectors empty and are
// near 128.
std::vector<int64_t> turn_rows(int64_t extent, int64_t least);

}  // namespace wl

// Orders of rows for nests that read some values again in every iteration of an outer loop.
//
// Register rows are for column reductions with reads that stay the same along an outer loop: an involution, for
// example, reads the same weights for all channels of a group. Neighbours along that loop become rows of one tile.
// These reads are then made once for all rows of the tile, and guards that stay the same are evaluated once.
//
// Cache blocks are for maps whose outer loop reads the same tables in every iteration, as rotary embeddings do for all
// heads, if the tables are too large for a cache. The rows within that loop are divided into blocks, and all iterations
// of the loop walk one block before the next block begins.
#pragma once

#include "compiler/domain/domain.h"
#include "compiler/schedule/space.h"

namespace wl {

// Returns the loop along which neighbours become rows of one tile; -1 if the group is no column reduction, or if every
// loop changes all reads and all their guards.
AtomId register_rows_atom(const Domain& domain);
// Adds the axis register_rows if register_rows_atom() finds a loop. Its values are 1 and divisors of the loop's extent.
void add_register_rows(Space& space, const Domain& domain);
// Whether a tile with the register rows of this schedule fits into the vector registers.
bool fits_registers(const Schedule& schedule, const Machine& machine);

// Returns the loop of a map whose iterations walk cache blocks; -1 if there is none. All iterations of this loop read
// the same values, and these take more than half of the L2 cache. Of several such loops, the one whose values have
// most bytes is returned. If there is such a loop and `bytes` is not null, *bytes becomes the size of these values.
AtomId cache_block_atom(const Graph& group, const Domain& domain, const Machine& machine, int64_t* bytes = nullptr);
// The number of rows in one iteration of the loop over `atom`, where a row is a tile of `tile` elements.
int64_t rows_within(const Domain& domain, AtomId atom, int64_t tile);
// Adds the axis cache_block_rows. Its values are the number of rows in a cache block; 0: there are no cache blocks.
void add_cache_block_rows(Space& space);
// Whether a schedule has no cache blocks, or has cache blocks that divide the rows of one iteration of the loop
// `blocked`.
bool divides_cache_blocks(const Domain& domain, AtomId blocked, const Schedule& schedule);

}  // namespace wl

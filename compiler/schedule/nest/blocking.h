// Orders of rows for nests that read some values again in every iteration of an outer loop. Register rows are for
// column reductions whose reads stay the same along an outer loop: an involution, for example, reads the same weights
// for all channels of a group. Neighbours along that loop become rows of one tile. The values are then read once for
// all of these rows, and conditions that stay the same are evaluated once. Cache blocks are for maps whose outer loop
// reads the same tables in every iteration, as rotary embeddings do for all heads, where no cache holds the tables. The
// rows within that loop are divided into blocks, and all iterations of the loop walk one block before the next block
// begins.
#pragma once

#include "compiler/plan/domain.h"
#include "compiler/schedule/space.h"

namespace wl {

// The loop that the rows of a tile are neighbours along; -1 where the group is no column reduction, or where all reads
// and their conditions move along every loop.
AtomId register_rows_atom(const Domain& domain);
// Adds the axis register_rows where there is such a loop. Its values are 1 and divisors of the loop's extent.
void add_register_rows(Space& space, const Domain& domain);
// Whether a tile of register rows fits into the vector registers under this schedule.
bool fits_registers(const Schedule& schedule, const Machine& machine);

// The loop of a map whose iterations walk cache blocks; -1: there is none. If there is one and `bytes` is not null,
// *bytes becomes the size of the values that every iteration of that loop reads again.
AtomId cache_block_atom(const Graph& group, const Domain& domain, const Machine& machine, int64_t* bytes = nullptr);
// How many rows one iteration of that loop has, where a row is a tile of `tile` elements.
int64_t rows_within(const Domain& domain, AtomId atom, int64_t tile);
// Adds the axis cache_block_rows: the rows of a block; 0 means no blocks.
void add_cache_block_rows(Space& space);
// Whether a schedule has no cache blocks, or its blocks divide the rows of one iteration of the loop `blocked`.
bool divides_cache_blocks(const Domain& domain, AtomId blocked, const Schedule& schedule);

}  // namespace wl

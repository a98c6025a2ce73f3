// Orders of rows for nests that read some values again in every iteration of an outer loop.
// Register rows: in a column reduction whose reads stay the same along an outer loop, as an involution reads the same
// weights for all channels of a group, neighbours along that loop are rows of one tile. The values are then read once
// for all rows, and conditions that stay the same are evaluated once.
// Cache blocks: in a map whose outer loop reads the same tables in every iteration, as rotary embeddings do for all
// heads, and where no cache holds the tables, the rows within that loop are divided into blocks. All iterations of the
// loop walk one block before the next block begins.
#pragma once

#include "compiler/plan/domain.h"
#include "compiler/schedule/space.h"

namespace wl {

// The loop that tiles of several rows run along; -1 where all reads move along every loop.
AtomId register_rows_atom(const Domain& domain);
// Adds the axis register_rows where there is such a loop: 1, and divisors of its extent.
void add_register_rows(Space& space, const Domain& domain);
// Whether a tile of the schedule fits into the registers.
bool fits_registers(const Schedule& schedule, const Machine& machine);

// The loop of a map whose iterations walk cache blocks; -1: none. `bytes`: the size of what every iteration reads.
AtomId cache_block_atom(const Graph& group, const Domain& domain, const Machine& machine, int64_t* bytes = nullptr);
// Rows of one iteration of that loop, each a tile of so many elements.
int64_t rows_within(const Domain& domain, AtomId atom, int64_t tile);
// Adds the axis cache_block_rows: rows of a block, 0 for no blocks.
void add_cache_block_rows(Space& space);
// Whether the blocks of a schedule divide the rows of the loop.
bool divides_cache_blocks(const Domain& domain, AtomId blocked, const Schedule& schedule);

}  // namespace wl

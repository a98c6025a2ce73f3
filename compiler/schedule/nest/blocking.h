// How a nest is walked where something that it reads stays the same along an outer loop.
// Tall tiles: in a column reduction, as the weights of an involution stay for the channels of a group, neighbours along
// that loop are rows of one tile. What stays is then read once for all of them, and so are conditions worked out once.
// Bands: in a map, as the tables of a rotary embedding stay for all heads, and are more than a cache holds, a band of
// the rows within that loop is walked for all turns of it before the next band.
#pragma once

#include "compiler/plan/domain.h"
#include "compiler/schedule/space.h"

namespace wl {

// The loop that tiles of several rows run along; -1 where nothing stays.
AtomId register_rows_atom(const Domain& domain);
// Adds the axis `height`: 1, and divisors of that loop's extent. Nothing without such a loop.
void add_register_rows(Space& space, const Domain& domain);
// Whether the registers hold a tile of the schedule.
bool fits_registers(const Schedule& schedule, const Machine& machine);

// The loop of a map that turns around bands; -1: none. `bytes`: what stays for each turn.
AtomId cache_block_atom(const Graph& group, const Domain& domain, const Machine& machine, int64_t* bytes = nullptr);
// Rows of one turn, of tiles of so many elements.
int64_t rows_within(const Domain& domain, AtomId atom, int64_t tile);
// Adds the axis `band`: rows of a band, 0 for all; and whether what a schedule says of it comes out even.
void add_cache_block_rows(Space& space);
bool divides_cache_blocks(const Domain& domain, AtomId blocked, const Schedule& schedule);

}  // namespace wl

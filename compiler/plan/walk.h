// Tall tiles: where a column reduction reads something that stays the same along an outer loop, as the weights of an
// involution do for the channels of a group, neighbours along that loop are rows of one tile. What stays is then read
// once for all of them, and so are conditions worked out once.
#pragma once

#include "compiler/plan/domain.h"
#include "compiler/plan/space.h"

namespace wl {

// The loop that tiles of several rows run along; -1 where nothing stays.
AtomId tall_atom(const Domain& domain);
// Adds the axis `height`: 1, and divisors of that loop's extent. Nothing without such a loop.
void add_height(Space& space, const Domain& domain);
// Whether the registers hold a tile of the schedule.
bool fits_registers(const Schedule& schedule, const Machine& machine);

}  // namespace wl

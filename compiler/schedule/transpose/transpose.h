// Maps in which an input is contiguous along another atom (loop of the group) than the output. Square blocks of vectors
// are read along the input's atom, transposed in registers, and written along the output's atom. A block of the launch
// owns a range of tiles of tile_columns x tile_rows elements, and walks each tile in squares whose side is one vector.
// With the choice `staged`, a tile is computed in scratch, and then written to memory in whole rows, while inputs of a
// later tile may be prefetched. This reached 0.76 to 0.81 of the speed of a copy; to compute whole rows of a transposed
// operand instead reached 0.62 to 0.70.
#pragma once

#include "compiler/schedule/axes.h"
#include "compiler/schedule/tile_expr.h"

namespace wl {

// Whether a group is lowered as a transpose on a CPU. Vectors must have several lanes, the extents of both atoms must
// be multiples of the number of lanes, and every output must be computed or be a plain copy of an input. Other maps
// are lowered as loops with strided loads.
bool transposes(const Domain& domain, const Machine& machine);
// Returns the extent of a tile along a loop of `extent` elements: the largest number of whole vectors that divides the
// loop and has at most `wanted` elements, but at least one vector.
int64_t transposed_tile(int64_t extent, int64_t wanted, int64_t lanes);
Space space_transpose(const Graph& group, const Domain& domain, const Machine& machine);
absl::StatusOr<Kernel> lower_transpose(const Graph& group, const Domain& domain, const Schedule& schedule,
                                       const Machine& machine);

// Lowers transposes for GPUs: squares of kStagedSide x kStagedSide elements go through shared memory, and a team has
// kStagedSide threads. Returns an error if the schedule's teams have other sizes or cannot share a square evenly.
absl::StatusOr<Kernel> lower_gpu_transpose(const Graph& group, const Domain& domain, const Schedule& schedule,
                                           const Machine& machine);

}  // namespace wl

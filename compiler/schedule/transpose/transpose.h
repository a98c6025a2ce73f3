// Maps in which an input is contiguous along another atom than the output: square blocks of vectors are read along the
// input's atom, transposed in registers, and written along the output's. A block of the launch owns a range of tiles of
// tile_columns x tile_rows elements, walked in square steps of one vector; or it is staged: computed in scratch, and
// written in whole rows while the next tile's inputs are prefetched, so that memory is either read or written
// (measured: 0.76 to 0.81 of the speed of a copy; computing whole rows of a transposed operand gave 0.62 to 0.70).
#pragma once

#include "compiler/schedule/axes.h"
#include "compiler/schedule/tile_expr.h"

namespace wl {

// Whether every extent divides into whole vectors; otherwise the map is lowered as loops with strided loads.
bool transposes(const Domain& domain, const Machine& machine);
Space space_transpose(const Graph& group, const Domain& domain, const Machine& machine);
absl::StatusOr<Kernel> lower_transpose(const Graph& group, const Domain& domain, const Schedule& schedule,
                                       const Machine& machine);

// The same on GPUs: squares of kStagedSide go through shared memory, with teams of as many threads.
absl::StatusOr<Kernel> lower_gpu_transpose(const Graph& group, const Domain& domain, const Schedule& schedule,
                                           const Machine& machine);

}  // namespace wl

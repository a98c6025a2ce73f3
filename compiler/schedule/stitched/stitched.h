// Stitched groups, whose stages (loop nests) a block runs one after the other on its share of the group
// (domain/stitch.h): the search space, and the kernel. Every stage is lowered as a kernel of its own, for one block's
// share, and these kernels are joined to one. The inputs and outputs of a stage are buffers of the whole group, shifted
// by the block's position; intermediate values lie in scratch; the blocks of a stage's kernel become iterations of a
// loop.
#pragma once

#include "compiler/domain/stitch.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/space.h"

namespace wl {

// Returns the search space of one stage.
Space stage_space(const Stage& stage, const Machine& machine);
// The schedule that stage number `stage` has under a schedule of the whole group. `space`: the stage's space; `teams`:
// whether the kernel is for a GPU.
Schedule stage_schedule(const Space& space, size_t stage, const Schedule& whole, bool teams);
inline constexpr int64_t kInShared = 0, kInRegisters = 1;  // values of the choice kTurnValues
// Returns the axes that together name one of the ways to stitch a group (Stitch::choices), without values, except that
// the first level of every value is scratch, which older plans mean. The level of value i is the choice kLevel of part
// i, and is called "v0.level" for i = 0.
std::vector<Axis> naming_axes(const Stitch& stitch);
// Returns the value that one of these axes has for a way to stitch the group.
int64_t naming_value(const Stitched& stitched, const Axis& axis);
// Returns the way to stitch the group that a schedule names; null if no way has these values.
const Stitched* named_choice(const Stitch& stitch, const Schedule& schedule);
Space space_stitched(const Domain& domain, const Machine& machine);

// Returns the kernel, which is not verified yet, or an error if the schedule is illegal or a block needs too much
// shared memory.
absl::StatusOr<Kernel> lower_stitched(const Graph& group, const Domain& domain, const Schedule& schedule,
                                      const Machine& machine);

// Return the search space and the verified kernel of a group of one connected graph, stitched or not.
// space_of_connected() returns Unimplemented if no schedule is legal.
absl::StatusOr<Space> space_of_connected(const Graph& group, const Domain& domain, const Machine& machine);
absl::StatusOr<Kernel> lower_connected(const Graph& group, const Domain& domain, const Schedule& schedule,
                                       const Machine& machine);

}  // namespace wl

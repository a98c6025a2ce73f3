// Stitched groups (plan/stitch.h): what can be chosen, and the kernel. Every stage is lowered as a kernel of its own,
// for one block's share, and the kernels become one. The inputs and outputs of a stage are those of the whole, moved by
// the block's place; intermediate values lie in scratch; the blocks of a stage are iterations of a loop.
#pragma once

#include "compiler/kernel/kernel.h"
#include "compiler/plan/stitch.h"
#include "compiler/schedule/space.h"

namespace wl {

// What can be chosen for a stage.
Space stage_space(const Stage& stage, const Machine& machine);
// Stage `stage`'s own schedule within one of the whole; `space` is the stage's, `teams`: of a GPU.
Schedule stage_schedule(const Space& space, size_t stage, const Schedule& whole, bool teams);
// The choices that say how a block divides the group, and the one of `stitch` that a schedule names; null: none.
inline constexpr Choice kNaming[] = {kBlockRows, kTurnLength, kTurnValues};
inline constexpr int64_t kInShared = 0, kInRegisters = 1;  // values of kTurnValues
int64_t naming_value(const Stitched& stitched, Choice choice);
const Stitched* named_choice(const Stitch& stitch, const Schedule& schedule);
Space space_stitched(const Domain& domain, const Machine& machine);

absl::StatusOr<Kernel> lower_stitched(const Graph& group, const Domain& domain, const Schedule& schedule,
                                      const Machine& machine);

// Groups of one connected graph: one loop nest, or stitched.
absl::StatusOr<Space> space_of_connected(const Graph& group, const Domain& domain, const Machine& machine);
absl::StatusOr<Kernel> lower_connected(const Graph& group, const Domain& domain, const Schedule& schedule,
                                       const Machine& machine);

}  // namespace wl

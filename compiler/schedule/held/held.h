// Stages of a stitched group whose values stay in registers from one stage to the next. A block of a GPU that walks a
// reduced axis in turns (plan/stitch.h) computes all values of a turn, and of what follows the turns, in the layout of
// a matrix instruction's sums: its waves divide the rows among themselves, each has all columns of its rows. What is
// reduced over columns is combined within a thread and among the lanes of a wave, and sums are multiplied again where
// they are, since the words of a factor are neighbours of a row. This is the register form of T. Dao,
// "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning" (ICLR 2024), for any group that
// has turns.
//
// Every stage is lowered by itself, as others are, and stores what later stages read; the pass of keep.h then takes
// stores and loads of the same layout out.
#pragma once

#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/plan/stitch.h"
#include "compiler/schedule/contract/contract.h"

namespace wl {

// The loops of a stage that tiles run along; -1: none. A contraction sums over `columns` of its operand that has rows.
struct HeldStage {
  AtomId rows = -1, columns = -1;
  int operand = -1;  // of a contraction, that has the rows; it may be in registers
};

// By stage, from the first of a turn on.
using HeldStages = std::vector<HeldStage>;

// The loops of the stages that are held. InvalidArgument where rows and columns cannot be told apart, or where a stage
// has other loops.
absl::StatusOr<HeldStages> held_stages(const Stitched& choice);

// How the waves of a block of `rows` rows hold values, for `threads` threads; the operand is left to each contraction.
// InvalidArgument where no matrix instruction of the machine multiplies sums where they are.
absl::StatusOr<GpuHeld> held_by(const Stitched& choice, const HeldStages& stages, int64_t threads,
                                const Machine& machine);

// The space of every stage that is held: the threads of the block alone, those for which all stages can be lowered.
Space held_space(const Stitched& choice, const Machine& machine);

// The kernel of one stage.
absl::StatusOr<Kernel> lower_held(const Stage& stage, const HeldStage& loops, GpuHeld how, const Machine& machine);

// Of lower_held: a stage without a contraction.
absl::StatusOr<Kernel> lower_held_nest(const Graph& group, const Domain& domain, const HeldStage& loops,
                                       const GpuHeld& how, const Machine& machine);

}  // namespace wl

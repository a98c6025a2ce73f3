// Stages of a stitched group whose values are resident: they stay in registers from one stage to the next. A thread
// block that walks a reduced axis in turns, each of which takes a part of the axis (domain/stitch.h), computes all
// values of a turn, and of the stages after the turns, in the layout of a matrix instruction's sums: its waves divide
// the rows, and each wave has all columns of its rows. A reduction over columns combines values within a thread and
// among the lanes of a wave. Sums become factors of another product without leaving their registers, since the words of
// a factor are neighbours in a row. This is the register form of T. Dao, "FlashAttention-2: Faster Attention with
// Better Parallelism and Work Partitioning" (ICLR 2024), for any group that has turns.
//
// Every stage is lowered by itself, as other stages are, and stores what later stages read. The pass of registers.h
// then removes the stores and loads that have the same layout.
#pragma once

#include <vector>

#include "compiler/domain/stitch.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/contract/contract.h"

namespace wl {

// The loops of a stage that the axes of its tiles run along; -1: there is none. In a contraction they are the rows and
// columns of the sums, and one operand varies along the rows.
struct ResidentStage {
  AtomId rows = -1, columns = -1;
  int operand = -1;  // for a contraction: number of the operand with the rows, which may be in registers
};

// One entry for each resident stage: all stages from the first stage of a turn on.
using ResidentStages = std::vector<ResidentStage>;

// Returns the loops of the resident stages. InvalidArgument if rows and columns cannot be told apart, or if a stage
// has further loops.
absl::StatusOr<ResidentStages> resident_stages(const Stitched& choice);

// Returns how the waves of a block of choice.rows rows and `threads` threads hold values. GpuResident::operand is not
// set, because it differs between contractions. InvalidArgument if no matrix instruction of the machine can multiply
// sums in the registers that hold them, or if a thread has too few registers.
absl::StatusOr<GpuResident> resident_layout(const Stitched& choice, const ResidentStages& stages, int64_t threads,
                                            const Machine& machine);

// The space of each resident stage. Open are the number of threads of the block (`team`), with the values for which all
// stages can be lowered (if no value allows that, its only value is 0, with which no stage can be lowered), and, where
// every operand of a turn can be copied, whether waves do nothing but that, and whether they copy boxes.
Space resident_space(const Stitched& choice, const Machine& machine);

// The kernel of one resident stage, for the machine that stage_machine() returns.
absl::StatusOr<Kernel> lower_resident(const Stage& stage, const ResidentStage& loops, GpuResident how,
                                      const Machine& machine);

// Does the work of lower_resident() for a stage without a contraction.
absl::StatusOr<Kernel> lower_resident_nest(const Graph& group, const Domain& domain, const ResidentStage& loops,
                                           const GpuResident& how, const Machine& machine);

}  // namespace wl

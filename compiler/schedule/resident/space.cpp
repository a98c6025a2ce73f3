#include "compiler/schedule/axes.h"
#include "compiler/schedule/resident/resident.h"

namespace wl {
namespace {

constexpr int64_t kAlignment = 1024;  // alignment of buffers in shared memory, in bytes

// Whether blocks of `threads` threads are possible: all resident stages can be lowered for them, and the operands of
// one turn (iteration along the reduced axis) fit into a block's shared memory beside the values that are not
// resident.
bool can_be_resident(const Stitched& choice, const ResidentStages& stages, int64_t threads, const Machine& machine) {
  const absl::StatusOr<GpuResident> how = resident_layout(choice, stages, threads, machine);
  if (!how.ok()) return false;
  int64_t shared = 0;
  for (const StitchKept& kept : choice.kept)
    if (kept.counts_along >= 0 || (!kept.start && kept.first < choice.turns.first)) shared += kept.bytes() + kAlignment;
  for (size_t k = 0; k < stages.size(); ++k) {
    const Stage& stage = choice.stages[choice.turns.first + k];
    const absl::StatusOr<Kernel> kernel = lower_resident(stage, stages[k], *how, stage_machine(machine, stage));
    if (!kernel.ok()) return false;
    if (choice.turns.first + k < choice.turns.last) shared += kernel->scratch_bytes();
  }
  return shared <= machine.target->gpu.block_shared;
}

}  // namespace

Space resident_space(const Stitched& choice, const Machine& machine) {
  Space space;
  space.kind = "held";
  space.axes = {{kTeam, {}}, {kTeams, {1}}};
  space.seeds = {{0, 0}};
  if (!choice.turns.resident) return space;
  const absl::StatusOr<ResidentStages> stages = resident_stages(choice);
  for (int64_t threads = machine.target->gpu.wave; threads <= machine.target->gpu.block_threads; threads *= 2)
    if (stages.ok() && can_be_resident(choice, *stages, threads, machine)) space.axes[0].values.push_back(threads);
  if (space.axes[0].values.empty()) space.axes[0].values = {0};
  return space;
}

}  // namespace wl

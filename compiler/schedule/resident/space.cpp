#include "compiler/domain/reads.h"
#include "compiler/schedule/axes.h"
#include "compiler/schedule/resident/registers.h"
#include "compiler/schedule/resident/resident.h"

namespace wl {
namespace {

constexpr int64_t kCopiers = 4;       // waves that only copy: as many as compute
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

// How waves that do nothing else could copy all that the products of a turn multiply, besides what is resident.
enum class Alongside { kNo, kVectors, kBoxes };

// The loop over turns must have a known length, and copies must fill every operand's buffers.
Alongside alongside(const Stitched& choice, const ResidentStages& stages, int64_t threads, const Machine& machine) {
  const Stitched::Turns& turns = choice.turns;
  if ((machine.target->features & kPhases) == 0 || turns.visited.axis >= 0 || turns.count < 2) return Alongside::kNo;
  const absl::StatusOr<GpuResident> how = resident_layout(choice, stages, threads, machine);
  if (!how.ok()) return Alongside::kNo;
  bool in_boxes = true;
  for (size_t k = turns.first; k < turns.last; ++k) {
    const Stage& stage = choice.stages[k];
    if (stage.domain.contract < 0) continue;
    const int other = 1 - stages[k - turns.first].operand;
    const DType dtype = stage.graph.nodes[stage.graph.nodes[stage.domain.contract].operands[other]].dtype;
    if (copied_operand(stage.graph, stage.domain, other, dtype) == nullptr) return Alongside::kNo;
    const absl::StatusOr<Kernel> kernel =
        lower_resident(stage, stages[k - turns.first], *how, stage_machine(machine, stage));
    if (!kernel.ok()) return Alongside::kNo;
    const OperandBuffers operands = operand_buffers(*kernel, kernel->body);
    if (operands.multiplied.empty() || operands.multiplied != operands.copied) return Alongside::kNo;
    in_boxes = in_boxes && operands.multiplied == operands.in_boxes;
  }
  return in_boxes ? Alongside::kBoxes : Alongside::kVectors;
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
  const Gpu& gpu = machine.target->gpu;
  const int64_t threads = kCopiers * gpu.wave;
  if (!stages.ok() || !has_value(space.axes[0], threads)) return space;
  const Alongside how = alongside(choice, *stages, threads, machine);
  if (how == Alongside::kNo) return space;
  // Copying waves have the layouts of the computing ones, so there are as many of them. So many threads must still be
  // resident as often as min_blocks says.
  space.axes.emplace_back(kMinBlocks, info(kMinBlocks).values);
  space.axes.emplace_back(kCopyingWaves, std::vector<int64_t>{0, kCopiers});
  space.axes.emplace_back(kTma, how == Alongside::kBoxes ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0});
  space.seeds = {{0, 0, 0, 0, 0}};
  space.legal = [threads, gpu](const Schedule& s) {
    if (s[kCopyingWaves] == 0) return s[kTma] == 0;
    return s[kTeam] == threads && may_reside(s[kMinBlocks], 2 * threads, gpu);
  };
  return space;
}

}  // namespace wl

#include "compiler/schedule/nest/row_parts.h"

#include <algorithm>

#include "compiler/base/records.h"
#include "compiler/domain/phases.h"

namespace wl {
namespace {

// The most blocks that share a row; each of them loads the partial results of all of them.
constexpr int64_t kMostParts = 256;
constexpr int64_t kMostRowCounters = kCounterBytes / 4;
// A reduction of fewer than this many times Machine::part_elements elements takes less time than a second pass.
constexpr int64_t kWorthSharing = 16;

}  // namespace

int64_t share_of(int64_t extent, int64_t parts, int64_t step) {
  const int64_t each = (extent + parts - 1) / parts;
  return (each + step - 1) / step * step;
}

bool shares_out(int64_t extent, int64_t parts, int64_t step) {
  const int64_t share = share_of(extent, parts, step);
  return share > 0 && (extent + share - 1) / share == parts;
}

void add_parts(Space& space, const Domain& domain, const Machine& machine, int64_t blocks, int64_t wanted) {
  const AtomId atom = shared_atom(domain);
  const int64_t reduced = extent_of(domain, domain.reduced);
  if (atom < 0 || reduced < kWorthSharing * machine.part_elements) return;
  Axis axis(kReductionBlocks, {1});
  for (int64_t parts = 2; parts <= std::min(kMostParts, domain.atoms[atom].extent); parts *= 2)
    if (blocks * parts / 2 < wanted && reduced / parts >= machine.part_elements) axis.values.push_back(parts);
  if (axis.values.size() > 1) space.axes.push_back(std::move(axis));
}

int64_t parts_for(const Space& space, int64_t blocks, int64_t wanted) {
  const Axis* axis = axis_of(space.axes, kReductionBlocks);
  if (axis == nullptr) return 1;
  for (int64_t parts : axis->values)
    if (blocks * parts >= wanted) return parts;
  return axis->values.back();
}

void add_last(Space& space, const Graph& group, const Domain& domain, int64_t blocks) {
  if (axis_of(space.axes, kReductionBlocks) != nullptr && blocks <= kMostRowCounters &&
      row_phases(group, domain).count == 1)
    space.axes.push_back({kLastBlockCombines, {0, 1}});
}

void add_cluster(Space& space, const Machine& machine) {
  if (axis_of(space.axes, kReductionBlocks) != nullptr && (machine.target->features & kClusters) != 0)
    space.axes.push_back({kCluster, {0, 1}});
}

bool may_join(const Schedule& schedule) {
  if (schedule[kLastBlockCombines] != 0 && (schedule[kReductionBlocks] == 1 || schedule[kCluster] != 0)) return false;
  if (schedule[kCluster] == 0) return true;
  return schedule[kReductionBlocks] > 1 && schedule[kReductionBlocks] <= kMostCluster && schedule[kMinBlocks] == 0;
}

}  // namespace wl

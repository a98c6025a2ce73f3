// Tells which values of a choice give the same kernel of a CPU contraction: those under which its loops are divided in
// the same way, and the same operands are packed.
#include <array>
#include <map>
#include <memory>

#include "compiler/schedule/contract/cpu/product.h"

namespace wl {
namespace {

// The choices on which CpuLoops depend, besides pack_a.
constexpr std::array kVariantChoices = {kTurnTiles, kCopyImage, kWiden, kMatrix, kPackB};
using Variant = std::array<int64_t, kVariantChoices.size()>;
using Variants = std::map<Variant, CpuLoops>;

Variant variant_of(const Schedule& schedule) {
  Variant out;
  for (size_t i = 0; i < out.size(); ++i) out[i] = schedule[kVariantChoices[i]];
  return out;
}

// Returns the loops under every combination of values that the space has of kVariantChoices.
Variants variants_of(const Space& space, const Graph& group, const Domain& domain, const Machine& machine) {
  Schedule none;
  for (const Choice choice : {kPackA, kSkipPadding, kMr, kNv}) none.set(choice, 0);
  std::vector<Schedule> schedules = {none};
  for (const Choice choice : kVariantChoices) {
    const Axis* const axis = axis_of(space.axes, choice);
    if (axis == nullptr) continue;
    std::vector<Schedule> longer;
    for (const Schedule& shorter : schedules)
      for (const int64_t value : axis->values) {
        longer.push_back(shorter);
        longer.back().set(choice, value);
      }
    schedules = std::move(longer);
  }
  Variants out;
  for (const Schedule& schedule : schedules)
    if (const CpuProduct product(group, domain, schedule, machine); product.check(schedule).ok())
      out.emplace(variant_of(schedule), product.loops());
  return out;
}

}  // namespace

void add_split_effects(Space& space, const Graph& group, const Domain& domain, const Machine& machine) {
  const auto variants = std::make_shared<const Variants>(variants_of(space, group, domain, machine));
  for (const Choice choice : {kMr, kNv, kKc, kNc, kPackA, kPackB, kRowTasks, kColumnTasks})
    space.add_effect(choice, [variants, choice](const Schedule& s, int64_t value) -> int64_t {
      Schedule with = s;
      with.set(choice, value);
      const auto at = variants->find(variant_of(with));
      if (at == variants->end()) return value;
      const CpuLoops& loops = at->second;
      const absl::StatusOr<CpuSplit> split = split_of(loops, with);
      if (!split.ok()) return value;
      return static_cast<int64_t>(absl::HashOf(*split, loops.packs_left || with[kPackA] != 0, loops.packs_right));
    });
}

}  // namespace wl

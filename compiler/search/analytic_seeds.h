// First proposals by a model instead of a rule of thumb. A space's own seeds (plan/) know no cost; where a model can
// price a schedule without running it, a walk through the space from these seeds finds what it likes best, and the
// seeds become the best of each kind of schedule: different kinds teach more than neighbours of the first. To add a
// model: a row of kSeedModels.
#pragma once

#include <span>
#include <string_view>

#include "compiler/schedule/space.h"

namespace wl {

struct SeedModel {
  std::string_view name;
  std::string_view says;
  // Whether it prices schedules of this group for this machine.
  bool (*applies)(const Domain& domain, const Machine& machine, const Space& space);
  // Replaces space.seeds; at least one of them stays.
  void (*order)(const Graph& group, const Domain& domain, const Machine& machine, Space& space);
};
std::span<const SeedModel> seed_models();  // kSeedModels: ranker, cpu_cost, pipeline

// Orders the seeds by the first model that applies and is not named in `without`; by none the space keeps its own.
void order_seeds(const Graph& group, const Domain& domain, const Machine& machine, Space& space,
                 std::span<const std::string_view> without = {});

}  // namespace wl

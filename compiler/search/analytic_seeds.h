// Seeds by a cost model. The seeds of a space follow rules of thumb. Where a model can estimate the time of a schedule,
// a walk through the space from these seeds finds the schedules that the model expects to be fastest. The new seeds are
// the best of each kind of schedule, since trials of different kinds say more than trials of neighbours. A new model is
// a row of kSeedModels.
#pragma once

#include <span>
#include <string_view>

#include "compiler/schedule/space.h"

namespace wl {

struct SeedModel {
  std::string_view name;
  std::string_view says;
  // Whether the model can estimate schedules of this group for this machine.
  bool (*applies)(const Domain& domain, const Machine& machine, const Space& space);
  // Replaces space.seeds; at least one of them stays.
  void (*order)(const Graph& group, const Domain& domain, const Machine& machine, Space& space);
};
std::span<const SeedModel> seed_models();  // kSeedModels: ranker, cpu_cost, pipeline

// Replaces the seeds by the first model that applies and is not named in `without`; without one the space keeps its
// own.
void order_seeds(const Graph& group, const Domain& domain, const Machine& machine, Space& space,
                 std::span<const std::string_view> without = {});

}  // namespace wl

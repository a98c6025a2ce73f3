// Seeds that a cost model chooses. The seeds of a space are the points that a search tries first; at first they follow
// rules of thumb. If a cost model can estimate the time of a schedule, a coordinate descent from these seeds finds the
// schedules that the model expects to be fastest. The new seeds are the best schedule of each kind (kind_of()), since a
// search learns more from trials of different kinds than from trials of neighbours. To add a model, add a row to
// kSeedModels.
#pragma once

#include <span>
#include <string_view>

#include "compiler/schedule/space.h"

namespace wl {

struct SeedModel {
  std::string_view name;
  std::string_view says;
  // Whether the model can estimate schedules of the group for the machine.
  bool (*applies)(const Domain& domain, const Machine& machine, const Space& space);
  // Replaces space.seeds by the model's seeds. At least one of the former seeds stays.
  void (*order)(const Graph& group, const Domain& domain, const Machine& machine, Space& space);
};
std::span<const SeedModel> seed_models();  // returns the rows of kSeedModels: ranker, cpu_cost, pipeline, nest

// Replaces space.seeds by those of the first model that applies and is not named in `without`. If no model applies, the
// space keeps its seeds.
void order_seeds(const Graph& group, const Domain& domain, const Machine& machine, Space& space,
                 std::span<const std::string_view> without = {});

}  // namespace wl

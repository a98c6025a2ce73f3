#include "bench/device/random_groups.h"

#include "compiler/cover/cover.h"
#include "compiler/ir/text.h"
#include "tests/unit/ir/random_graph.h"

namespace wl {

absl::StatusOr<std::vector<DeviceWorkload>> random_groups(uint64_t first, uint64_t count, const Machine& machine) {
  std::vector<DeviceWorkload> out;
  for (uint64_t seed = first; seed - first < count; ++seed) {
    const Graph graph =
        prune(random_graph(seed, {.nodes = 14, .largest = 5000, .f32_only = seed % 4 == 0, .zero_extents = false}));
    WL_ASSIGN_OR_RETURN(const Cover cover, cover_greedy(graph, machine));
    for (size_t i = 0; i < cover.groups.size(); ++i) {
      DeviceWorkload workload;
      workload.name = cat(kRandomGroup, "_", seed, "_", i);
      workload.op = kRandomGroup;
      workload.graph = print(extract(graph, cover.groups[i]));
      out.push_back(std::move(workload));
    }
  }
  return out;
}

}  // namespace wl

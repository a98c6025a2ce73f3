// Contractions of machines with lanes. tile_rows x tile_columns: a block's tile, rows_each x columns_each: a thread's,
// which says how many threads there are. k_step: of K at a time through shared memory. vector: neighbouring elements of
// a thread. stages 2: the next step is fetched while one is computed. async: operands that are inputs as they are go to
// shared memory without registers, up to `stages` - 1 steps ahead. unroll: outer products side by side.
#include <algorithm>
#include <bit>

#include "compiler/plan/reads.h"
#include "compiler/schedule/axes.h"
#include "compiler/schedule/contract/contract.h"

namespace wl {
namespace {

constexpr int64_t kMostSeeds = 6;
constexpr int64_t kOtherRegisters = 40;  // addresses, loop counters, what the compiler keeps in flight

int64_t at_least(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
}

// Time of the whole in arbitrary units: waves of blocks, each as long as its arithmetic or what it reads.
double cost_of(const Schedule& s, const Machine& machine, int64_t rows, int64_t columns, int64_t outer, int64_t words) {
  const Gpu& gpu = machine.target->gpu;
  const int64_t tile_rows = s["tile_rows"], tile_columns = s["tile_columns"];
  const int64_t blocks = ((rows + tile_rows - 1) / tile_rows) * ((columns + tile_columns - 1) / tile_columns) * outer;
  const int64_t threads = (tile_rows / s["rows_each"]) * (tile_columns / s["columns_each"]);
  const int64_t together =
      std::max<int64_t>(1, std::min<int64_t>({gpu.unit_blocks, gpu.unit_threads / threads,
                                              gpu.unit_registers / (threads * contract_registers(s, words)),
                                              gpu.unit_shared / std::max<int64_t>(1, contract_shared(s, 4 * words))}));
  const int64_t units = std::max(1, gpu.units);
  const int64_t waves = (blocks + units - 1) / units;  // of one block a unit
  const auto rows_each = static_cast<double>(s["rows_each"]), columns_each = static_cast<double>(s["columns_each"]);
  // For each outer product: multiplications, and what is read for it from shared memory and from beyond.
  const double products = static_cast<double>(tile_rows) * static_cast<double>(tile_columns);
  const double near = products * (1 / rows_each + 1 / columns_each);
  const double far = static_cast<double>(tile_rows + tile_columns) * 8;
  // Few threads on a unit do not hide what they wait for.
  const int64_t running = std::min(together, (blocks + units - 1) / units) * threads;
  const double hidden = std::min(1.0, static_cast<double>(running) / 256);
  return static_cast<double>(waves) * (products + near + far) / hidden * (s["stages"] > 1 ? 1 : 1.2);
}

}  // namespace

int64_t contract_registers(const Schedule& s, int64_t words) {
  const int64_t rows = s["rows_each"], columns = s["columns_each"];
  const int64_t threads = (s["tile_rows"] / rows) * (s["tile_columns"] / columns);
  const int64_t fetched = ((s["tile_rows"] + s["tile_columns"]) * s["k_step"] + threads - 1) / threads;
  return (rows * columns + 2 * (rows + columns) + fetched) * words + kOtherRegisters;
}

int64_t contract_shared(const Schedule& s, int64_t bytes) {
  return s["stages"] * s["k_step"] * (s["tile_rows"] + s["tile_columns"] + 2 * s["vector"]) * bytes + 128;
}

Space space_team_contract(const Graph& group, const Domain& domain, const Machine& machine) {
  const Gpu gpu = machine.target->gpu;
  const int64_t rows = domain.m.empty() ? 1 : domain.atoms[domain.m.back()].extent;
  const int64_t columns = domain.n.empty() ? 1 : domain.atoms[domain.n.back()].extent;
  int64_t outer = extent_of(domain, domain.batch) * extent_of(domain, domain.m) * extent_of(domain, domain.n);
  outer /= std::max<int64_t>(1, rows * columns);
  int64_t depth = 1;  // of the longest loop of K
  for (AtomId atom : domain.reduced) depth = std::max(depth, domain.atoms[atom].extent);
  const int64_t bytes = std::max(4, size_of(group.nodes[domain.contract].dtype));
  const int64_t most_rows = std::max<int64_t>(16, at_least(rows));
  const int64_t most_columns = std::max<int64_t>(16, at_least(columns));
  const bool copies =
      (gpu.features & kAsyncCopy) != 0 && (copies_operand(group, domain, 0) || copies_operand(group, domain, 1));
  Space space;
  space.axes = {
      {"tile_rows", {}},
      {"tile_columns", {}},
      axis_of("k_step", {8, 16, 32, 4}, [&](int64_t k) { return k <= at_least(depth); }),
      axis_of("rows_each", {8, 4, 2, 1, 16}, [&](int64_t r) { return r == 8 || r <= most_rows; }),
      axis_of("columns_each", {8, 4, 2, 16}, [&](int64_t c) { return c == 8 || c <= most_columns; }),
      axis_of("vector", {4, 8, 2}),
      axis_of("stages", {2, 1, 3, 4}, [&](int64_t stages) { return stages <= 2 || copies; }),
      axis_of("unroll", {8, 4, 2}),
      blocks_axis(),
      axis_of("async", {0, 1}, [&](int64_t async) { return async == 0 || copies; }),
  };
  for (int64_t tile : {128, 64, 32, 16, 8, 256}) {
    if (tile <= most_rows) space.axes[0].values.push_back(tile);
    if (tile <= most_columns) space.axes[1].values.push_back(tile);
  }
  space.legal = [gpu, bytes](const Schedule& s) {
    const int64_t rows_each = s["rows_each"], columns_each = s["columns_each"], vector = s["vector"];
    if (s["async"] == 0 ? s["stages"] > 2 : s["stages"] < 2) return false;
    if (rows_each > s["tile_rows"] || columns_each > s["tile_columns"] || columns_each % vector != 0) return false;
    const int64_t threads = (s["tile_rows"] / rows_each) * (s["tile_columns"] / columns_each);
    if (threads < gpu.wave || threads > gpu.block_threads || s["unroll"] > s["k_step"]) return false;
    if (contract_shared(s, bytes) > gpu.block_shared || !may_reside(s["blocks"], threads, gpu)) return false;
    // 8 x 16 accumulators are as many as leave room for what is fetched.
    const int64_t registers = contract_registers(s, bytes / 4);
    return registers <= std::min(gpu.lane_registers, 232) && registers * threads <= gpu.unit_registers;
  };
  std::vector<std::pair<double, Point>> ranked;
  for (int64_t tile_rows : space.axes[0].values)
    for (int64_t tile_columns : space.axes[1].values)
      for (int64_t rows_each : {8, 4, 2, 1})
        for (int64_t columns_each : {8, 4})
          for (int64_t k_step : {8, 16}) {
            Point point = point_of(space, {{"tile_rows", tile_rows},
                                           {"tile_columns", tile_columns},
                                           {"rows_each", rows_each},
                                           {"columns_each", columns_each},
                                           {"k_step", k_step}});
            if (point.empty() || !space.is_legal(point)) continue;
            const double cost = cost_of(space.schedule(point), machine, rows, columns, outer, bytes / 4);
            ranked.emplace_back(cost, std::move(point));
          }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < ranked.size() && i < kMostSeeds; ++i) space.seeds.push_back(std::move(ranked[i].second));
  for (const int64_t stages : {3, 4}) {
    if (!copies || space.seeds.empty()) break;
    Schedule with = space.schedule(space.seeds[0]);
    with.set("async", 1);
    with.set("stages", stages);
    with.set("blocks", 1);  // else the compiler saves registers, and spills
    space.seeds.push_back(point_of(space, with.knobs()));
  }
  return space;
}

}  // namespace wl

// The space of contractions on GPUs: a block has a tile of tile_rows x tile_columns, each of its threads thread_rows x
// thread_columns of it, so that the four say how many threads there are.
#include <algorithm>
#include <bit>

#include "compiler/plan/reads.h"
#include "compiler/schedule/axes.h"
#include "compiler/schedule/contract/contract.h"

namespace wl {
namespace {

constexpr int64_t kMostSeeds = 6;
constexpr int64_t kOtherRegisters = 40;  // addresses, loop counters, loads in flight

int64_t at_least(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
}

// Extents of a block's tile, the first one first.
std::vector<int64_t> up_to(int64_t most) {
  std::vector<int64_t> tiles;
  for (const int64_t tile : {128, 64, 32, 16, 8, 256})
    if (tile <= most) tiles.push_back(tile);
  return tiles;
}

// Estimated time in arbitrary units: rounds of resident blocks, each as long as its arithmetic and reads take.
double cost_of(const Schedule& s, const Machine& machine, int64_t rows, int64_t columns, int64_t outer, int64_t words) {
  const Gpu& gpu = machine.target->gpu;
  const int64_t tile_rows = s[kTileRows], tile_columns = s[kTileColumns];
  const int64_t blocks = ((rows + tile_rows - 1) / tile_rows) * ((columns + tile_columns - 1) / tile_columns) * outer;
  const int64_t threads = (tile_rows / s[kThreadRows]) * (tile_columns / s[kThreadColumns]);
  const int64_t together =
      std::max<int64_t>(1, std::min<int64_t>({gpu.unit_blocks, gpu.unit_threads / threads,
                                              gpu.unit_registers / (threads * contract_registers(s, words)),
                                              gpu.unit_shared / std::max<int64_t>(1, contract_shared(s, 4 * words))}));
  const int64_t units = std::max(1, gpu.units);
  const int64_t waves = (blocks + units - 1) / units;  // rounds of one block on each unit
  const auto rows_each = static_cast<double>(s[kThreadRows]), columns_each = static_cast<double>(s[kThreadColumns]);
  // For each outer product: multiplications, reads from shared memory, and reads from device memory.
  const double products = static_cast<double>(tile_rows) * static_cast<double>(tile_columns);
  const double near = products * (1 / rows_each + 1 / columns_each);
  const double far = static_cast<double>(tile_rows + tile_columns) * 8;
  // Few threads on a unit do not hide memory latency.
  const int64_t running = std::min(together, (blocks + units - 1) / units) * threads;
  const double hidden = std::min(1.0, static_cast<double>(running) / 256);
  return static_cast<double>(waves) * (products + near + far) / hidden * (s[kStages] > 1 ? 1 : 1.2);
}

}  // namespace

int64_t contract_registers(const Schedule& s, int64_t words) {
  const int64_t rows = s[kThreadRows], columns = s[kThreadColumns];
  const int64_t threads = (s[kTileRows] / rows) * (s[kTileColumns] / columns);
  const int64_t fetched = ((s[kTileRows] + s[kTileColumns]) * s[kStepK] + threads - 1) / threads;
  return (rows * columns + 2 * (rows + columns) + fetched) * words + kOtherRegisters;
}

int64_t contract_shared(const Schedule& s, int64_t bytes) {
  return s[kStages] * s[kStepK] * (s[kTileRows] + s[kTileColumns] + 2 * s[kVector]) * bytes + 128;
}

Space space_gpu_contract(const Graph& group, const Domain& domain, const Machine& machine) {
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
  space.kind = "contract";
  space.axes = {
      {kTileRows, up_to(most_rows)},
      {kTileColumns, up_to(most_columns)},
      axis(kStepK, {8, 16, 32, 4}, [&](int64_t k) { return k <= at_least(depth); }),
      axis(kThreadRows, {8, 4, 2, 1, 16}, [&](int64_t r) { return r == 8 || r <= most_rows; }),
      axis(kThreadColumns, {8, 4, 2, 16}, [&](int64_t c) { return c == 8 || c <= most_columns; }),
      axis(kVector, {4, 8, 2}),
      axis(kStages, {2, 1, 3, 4}, [&](int64_t stages) { return stages <= 2 || copies; }),
      axis(kUnrollK, {8, 4, 2}),
      axis(kAsyncCopies, {0, 1}, [&](int64_t async) { return async == 0 || copies; }),
  };
  add_listed_axes(space, machine);
  space.legal = [gpu, bytes](const Schedule& s) {
    const int64_t rows_each = s[kThreadRows], columns_each = s[kThreadColumns], vector = s[kVector];
    if (s[kAsyncCopies] == 0 ? s[kStages] > 2 : s[kStages] < 2) return false;
    if (rows_each > s[kTileRows] || columns_each > s[kTileColumns] || columns_each % vector != 0) return false;
    const int64_t threads = (s[kTileRows] / rows_each) * (s[kTileColumns] / columns_each);
    if (threads < gpu.wave || threads > gpu.block_threads || s[kUnrollK] > s[kStepK]) return false;
    if (contract_shared(s, bytes) > gpu.block_shared || !may_reside(s[kMinBlocks], threads, gpu)) return false;
    // With 8 x 16 accumulators the registers also hold what is loaded for the next step; with more they do not.
    const int64_t registers = contract_registers(s, bytes / 4);
    const int64_t taken = (gpu.features & kEarlyLoads) != 0 ? registers * 3 / 2 : registers;
    return registers <= std::min(gpu.lane_registers, 232) && taken * threads <= gpu.unit_registers;
  };
  std::vector<std::pair<double, Point>> ranked;
  for (int64_t tile_rows : values_of(space, kTileRows))
    for (int64_t tile_columns : values_of(space, kTileColumns))
      for (int64_t rows_each : {8, 4, 2, 1})
        for (int64_t columns_each : {8, 4})
          for (int64_t k_step : {8, 16}) {
            Point point = point_of(space, {{kTileRows, tile_rows},
                                           {kTileColumns, tile_columns},
                                           {kThreadRows, rows_each},
                                           {kThreadColumns, columns_each},
                                           {kStepK, k_step}});
            if (point.empty() || !space.is_legal(point)) continue;
            const double cost = cost_of(space.schedule(point), machine, rows, columns, outer, bytes / 4);
            ranked.emplace_back(cost, std::move(point));
          }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (size_t i = 0; i < ranked.size() && i < kMostSeeds; ++i) space.seeds.push_back(std::move(ranked[i].second));
  for (const int64_t stages : {3, 4}) {
    if (!copies || space.seeds.empty()) break;
    Schedule with = space.schedule(space.seeds[0]);
    with.set(kAsyncCopies, 1);
    with.set(kStages, stages);
    with.set(kMinBlocks, 1);  // without a bound the compiler limits registers further, and spills
    space.seeds.push_back(point_of(space, with));
  }
  return space;
}

}  // namespace wl

// The search space of contractions on GPUs. A block computes a tile of tile_rows x tile_columns (times the choices of
// runs and planes), and each thread of the block thread_rows x thread_columns of it, so these choices determine the
// number of threads. With a matrix instruction they also determine the tile of a wave.
#include <algorithm>
#include <bit>
#include <memory>

#include "compiler/kernel/shared_factors.h"
#include "compiler/schedule/axes.h"
#include "compiler/schedule/contract/counted.h"
#include "compiler/schedule/contract/gpu_product.h"

namespace wl {
namespace {

constexpr size_t kMostSeeds = 6, kMatrixSeeds = 3;
constexpr int64_t kMatrixStep = 128;     // the bytes along K in one step of seeds with matrix instructions
constexpr int64_t kOtherRegisters = 40;  // the registers of a thread for addresses, loop counters and loads in flight
// The most blocks that share K, and the most iterations of one outer loop that a tile extends over.
constexpr int64_t kMostParts = 32, kMostSteps = 32;
constexpr int64_t kMostLastParts = 8;  // the most blocks that share K if only the tiles of a last round are shared
// The work for one element of K, as a multiple of the work for one element of a plain reduction.
constexpr int64_t kPartProducts = 8;

// Returns the least power of two that is at least n.
int64_t at_least(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
}

// Returns the values of tile_rows or tile_columns up to `most`, in the order of the axis.
std::vector<int64_t> up_to(int64_t most) {
  std::vector<int64_t> tiles;
  for (const int64_t tile : {128, 64, 32, 16, 8, 256})
    if (tile <= most) tiles.push_back(tile);
  return tiles;
}

// Returns the values of a choice of runs or planes, which says over how many iterations of a loop around the last loop
// a tile extends. `last`, `around`: the extents of both loops. If large tiles divide the last loop, 1 is the only
// value, because no tile is then partly empty.
std::vector<int64_t> steps_around(int64_t last, int64_t around) {
  std::vector<int64_t> steps = {1};
  if (last % kLargeTile == 0) return steps;
  for (int64_t n = 2; n <= std::min(kMostSteps, at_least(around)); n *= 2) steps.push_back(n);
  return steps;
}

// Returns, for each extent that a tile may have along the rows (or columns), those choices of this extent that need the
// fewest tiles to cover all rows (or columns).
std::vector<Chosen> fullest(const Space& space, const std::array<int64_t, 3>& extents,
                            const std::array<Choice, 3>& choices) {
  std::array<std::vector<int64_t>, 3> values;
  for (size_t i = 0; i < choices.size(); ++i) {
    const Axis* const axis = axis_of(space.axes, choices[i]);
    values[i] = axis == nullptr ? std::vector<int64_t>{1} : axis->values;
  }
  // For each extent of a tile: the least number of tiles that cover everything, and the choices that give this number.
  std::map<int64_t, std::pair<int64_t, Chosen>> best;
  std::vector<int64_t> order;
  for (const int64_t last : values[0])
    for (const int64_t around : values[1])
      for (const int64_t outer : values[2]) {
        Schedule s;
        Chosen chosen;
        for (const auto& [choice, value] : Chosen{{choices[0], last}, {choices[1], around}, {choices[2], outer}}) {
          s.set(choice, value);
          if (axis_of(space.axes, choice) != nullptr) chosen.emplace_back(choice, value);
        }
        const int64_t extent = tile_of(s, choices), tiles = tiles_along(s, extents, choices);
        if (extent < kLeastTile || extent > kMostTile) continue;
        const auto [known, is_new] = best.try_emplace(extent, tiles, chosen);
        if (is_new) order.push_back(extent);
        if (tiles < known->second.first) known->second = {tiles, chosen};
      }
  std::vector<Chosen> out;
  for (const int64_t extent : order) out.push_back(best.at(extent).second);
  return out;
}

// Returns the estimated time in arbitrary units: the number of rounds of the grid, with one block on each
// multiprocessor, times the arithmetic and reads of a block. Occupancy enters as the share of memory latency that the
// running threads hide.
double cost_of(const Schedule& s, const Machine& machine, const GpuProduct& product) {
  const Gpu& gpu = machine.target->gpu;
  const int64_t tile_rows = rows_of_tile(s), tile_columns = columns_of_tile(s);
  const int64_t parts = s[kReductionBlocks], blocks = product.tiles(s) * parts;
  const int64_t threads = contract_threads(s);
  const int64_t together = std::max<int64_t>(
      1, std::min<int64_t>({gpu.unit_blocks, gpu.unit_threads / threads,
                            gpu.unit_registers / (threads * contract_registers(s, product.bytes / 4)),
                            gpu.unit_shared / std::max<int64_t>(1, contract_shared(s, product.bytes))}));
  const int64_t units = std::max(1, gpu.units);
  const int64_t waves = (blocks + units - 1) / units;  // the rounds of the grid, with one block per multiprocessor
  const auto rows_each = static_cast<double>(s[kThreadRows]), columns_each = static_cast<double>(s[kThreadColumns]);
  // Costs per outer product (one k of a tile): multiplications, reads from shared memory, reads from device memory.
  double products = static_cast<double>(tile_rows) * static_cast<double>(tile_columns);
  double near = products * (1 / rows_each + 1 / columns_each);
  double far = static_cast<double>(tile_rows + tile_columns) * 8;
  if (const std::optional<MatrixOp> matrix = matrix_of(s)) {
    const MatrixInfo& row = info(*matrix);
    near = static_cast<double>(threads * matrix_words(*matrix, s[kThreadRows], s[kThreadColumns])) /
           static_cast<double>(row.k) * 4;  // four times as many lanes multiply per cycle as load
    far *= static_cast<double>(size_of(row.left)) / static_cast<double>(product.bytes);
    products /= matrix_rate(*matrix, *machine.target);
  }
  // Fewer than 256 threads on a multiprocessor cannot hide memory latency.
  const int64_t running = std::min(together, (blocks + units - 1) / units) * threads;
  const double hidden = std::min(1.0, static_cast<double>(running) / 256);
  // Each part's sums are written to the workspace once, and one block reads the sums of all parts.
  const double joined =
      parts == 1 ? 0
                 : static_cast<double>(tile_rows * tile_columns * (parts + 1) * 8) / static_cast<double>(product.depth);
  return static_cast<double>(waves) * ((products + near + far) / static_cast<double>(parts) + joined) / hidden *
         (s[kStages] > 1 ? 1 : 1.2);
}
// Returns the value of raster_rows (the tiles of rows that neighbouring blocks cover) with which the blocks that run at
// once read the least in all, because their tiles together form about a square.
int64_t raster_of(const Schedule& s, const Machine& machine, const GpuProduct& product,
                  const std::vector<int64_t>& values) {
  const int64_t all = std::max(1, machine.multiprocessors()) * std::max<int64_t>(1, s[kMinBlocks]);
  const int64_t at_once = s[kTilesByDie] != 0 ? quotient_up(all, machine.dies()) : all;
  const int64_t row_tiles = product.last_row_tiles(s), column_tiles = product.column_tiles(s);
  int64_t best = 1, least = 0;
  for (const int64_t rows : values) {
    if (row_tiles % rows != 0) continue;
    const int64_t columns = std::min(column_tiles, quotient_up(at_once, rows));
    const int64_t read = rows * quotient_up(at_once, rows * columns) * rows_of_tile(s) + columns * columns_of_tile(s);
    if (least == 0 || read < least) best = rows;
    if (best == rows) least = read;
  }
  return best;
}

// Adds seeds: the `most` legal points of least cost_of() among the points that have the values `choices`, a k_step from
// `steps` and a thread_columns from `widths`. The tile of a block and thread_rows may have any values.
void add_ranked(Space& space, const Machine& machine, const GpuProduct& product, size_t most, const Chosen& choices,
                const std::vector<int64_t>& steps, const std::vector<int64_t>& widths) {
  std::vector<std::pair<double, Point>> ranked;
  const std::vector<Chosen> columns = fullest(space, product.columns, kColumnLoops);
  const Axis* const shared = axis_of(space.axes, kReductionBlocks);
  const auto rank = [&](const Chosen& chosen) {
    Point point = point_of(space, chosen);
    if (point.empty() || !space.legal(space.schedule(point))) return;
    point = space.settled(std::move(point));
    const double cost = cost_of(space.schedule(point), machine, product);
    ranked.emplace_back(cost, std::move(point));
  };
  for (const Chosen& of_rows : fullest(space, product.rows, kRowLoops))
    for (const Chosen& of_columns : columns)
      for (int64_t rows_each : {8, 4, 2, 1})
        for (int64_t columns_each : widths)
          for (int64_t k_step : steps) {
            Chosen chosen = choices;
            for (const Chosen& more :
                 {of_rows, of_columns,
                  Chosen{{kThreadRows, rows_each}, {kThreadColumns, columns_each}, {kStepK, k_step}}})
              chosen.insert(chosen.end(), more.begin(), more.end());
            if (shared == nullptr) rank(chosen);
            for (const int64_t blocks : shared == nullptr ? std::vector<int64_t>() : shared->values) {
              chosen.emplace_back(kReductionBlocks, blocks);
              rank(chosen);
              chosen.pop_back();
            }
          }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const Axis* const raster = axis_of(space.axes, kRasterRows);
  for (size_t i = 0; i < ranked.size() && i < most; ++i) {
    Point& point = ranked[i].second;
    if (raster != nullptr)
      set_choice(space, point, kRasterRows, raster_of(space.schedule(point), machine, product, raster->values));
    space.seeds.push_back(std::move(point));
  }
}

void add_matrix_seeds(Space& space, const Machine& machine, const GpuProduct& product, MatrixOp matrix) {
  Chosen choices = {{kMatrix, 1 + static_cast<int64_t>(matrix)}, {kVector, widest_vector(matrix)}};
  if (product.copies_matrix) {
    choices.emplace_back(kAsyncCopies, 1);
    choices.emplace_back(kStages, 3);
  }
  if (multiplies_in_memory(matrix)) {
    const int64_t step = shared_row_elements(info(matrix).left);
    // Persistent blocks with copying waves multiply fastest on an H200 (bench/README.md).
    const auto add_copying = [&](int64_t persistent) {
      if (axis_of(space.axes, kCopyingWaves) == nullptr) return;
      Chosen with = choices;
      with.insert(with.end(), {{kMinBlocks, 1}, {kStages, 4}, {kCopyingWaves, 4}});
      if (axis_of(space.axes, kTma) != nullptr) with.emplace_back(kTma, persistent);
      if (persistent != 0 || axis_of(space.axes, kPersistent) != nullptr) with.emplace_back(kPersistent, persistent);
      add_ranked(space, machine, product, 1, with, {step}, {64, 32, 16});
    };
    if (!product.few_tiles) add_copying(1);
    // Without copying waves, only a block's own copies overlap with its products, so a second block on the same
    // multiprocessor shortens the time.
    for (const int64_t blocks : {2, 1}) {
      Chosen with = choices;
      with.emplace_back(kMinBlocks, blocks);
      add_ranked(space, machine, product, kMatrixSeeds, with, {step}, {64, 32, 16});
    }
    if (product.few_tiles) add_copying(1);
    add_copying(0);
    return;
  }
  choices.emplace_back(kMinBlocks, 1);
  const int64_t step = std::min(kMatrixStep / size_of(info(matrix).left), at_least(product.depth));
  // An H200 multiplies faster if the next fragments are loaded while the previous ones are multiplied
  // (bench/README.md). If registers are scarce, however, the compiler may spill, so these seeds come second.
  for (const int64_t sets : {1, 2}) {
    Chosen with = choices;
    with.emplace_back(kRegisterStages, sets);
    if (step >= sets * info(matrix).k)
      add_ranked(space, machine, product, kMatrixSeeds, with, {step, step / 2}, {8, 16, 4, 2});
  }
}

// Adds the effects of choices that the lowering obeys only in part, or not at all.
void add_effects(Space& space, const Machine& machine, const std::shared_ptr<const GpuProduct>& product) {
  const auto steps = [product](const Schedule& s) { return product->steps(s); };
  // With a matrix instruction, vectors are those in which the operands are brought to shared memory.
  space.add_effect(kVector, [product](const Schedule& s, int64_t vector) {
    if (!matrix_of(s)) return vector;
    const std::array<GpuSide, 2>& sides = product->sides_of(s[kMatrix], vector);
    const std::array<bool, 2> copied = product->copies_sides(s, vector);
    int64_t effect = sides[0].k;
    for (const size_t i : {0, 1}) {
      const int64_t width = s[i == 0 ? kTileRows : kTileColumns];
      const bool wide = copied[i] ? sides[i].along_k == sides[i].k_inner && sides[i].copies_vectors(width)
                                  : sides[i].aligned && (sides[i].along_k ? s[kStepK] : width) >= vector;
      effect = effect * 2 * kMatrixVector + (wide ? vector : 1);
    }
    return effect;
  });
  space.add_effect(kUnrollK, [product](const Schedule& s, int64_t unroll) -> int64_t {
    if (matrix_of(s)) return 0;
    const int64_t loop = product->step_loop(s), whole = loop / s[kStepK], left = loop % s[kStepK];
    const auto together = [unroll](int64_t depth) { return depth % unroll == 0 ? unroll : int64_t{1}; };
    return (whole > 0 ? together(s[kStepK]) : 0) * kMostLanesStep * 2 + (left > 0 ? together(left) : 0);
  });
  space.add_effect(kAsyncCopies, [product](const Schedule& s, int64_t async) -> int64_t {
    const std::array<bool, 2> copied = product->copies_sides(s, s[kVector]);
    return async != 0 && (copied[0] || copied[1]);
  });
  space.add_effect(
      kStages, [steps](const Schedule& s, int64_t stages) { return std::max<int64_t>(1, std::min(stages, steps(s))); });
  // Where only the tiles of a last round are shared, the blocks have all steps of the tiles before.
  space.add_effect(kRegisterStages, [steps](const Schedule& s, int64_t sets) {
    return steps(s) * (s[kPersistent] > 0 ? s[kReductionBlocks] : 1) > 1 ? sets : 1;
  });
  space.add_effect(kCopyingWaves,
                   [product](const Schedule& s, int64_t waves) { return product->copies_alongside(s) ? waves : 0; });
  space.add_effect(kTma, [](const Schedule& s, int64_t boxes) { return s[kCopyingWaves] > 0 ? boxes : 0; });
  add_residency_effect(space, machine, [wave = machine.target->gpu.wave](const Schedule& s) {
    return contract_threads(s) + s[kCopyingWaves] * wave;
  });
}

void add_lanes_seeds(Space& space, const Machine& machine, const GpuProduct& product) {
  const size_t first = space.seeds.size();
  add_ranked(space, machine, product, kMostSeeds, {}, {8, 16}, {8, 4});
  for (const int64_t stages : {3, 4}) {
    if (!product.copies || space.seeds.size() == first) break;
    Schedule with = space.schedule(space.seeds[first]);
    with.set(kAsyncCopies, 1);
    with.set(kStages, stages);
    // without min_blocks=1 the compiler allows a thread fewer registers and spills values to memory
    with.set(kMinBlocks, 1);
    space.seeds.push_back(point_of(space, with));
  }
}

}  // namespace

int64_t contract_registers(const Schedule& s, int64_t words) {
  const int64_t rows = s[kThreadRows], columns = s[kThreadColumns], threads = contract_threads(s);
  const int64_t fetched = ((rows_of_tile(s) + columns_of_tile(s)) * s[kStepK] + threads - 1) / threads;
  if (const std::optional<MatrixOp> matrix = matrix_of(s)) {
    const int64_t read = multiplies_in_memory(*matrix) ? 0 : s[kRegisterStages] * matrix_words(*matrix, rows, columns);
    return rows * columns + read + (s[kAsyncCopies] != 0 ? 0 : fetched) + kOtherRegisters;
  }
  return (rows * columns + 2 * (rows + columns) + fetched) * words + kOtherRegisters;
}

int64_t contract_shared(const Schedule& s, int64_t bytes) {
  // Besides the factors: two buffers of phases for copying waves, and a flag for blocks that share a tile, of 64 bytes
  // each.
  const int64_t beside = s[kCopyingWaves] > 0 && s[kReductionBlocks] > 1 ? 192 : 128;
  if (const std::optional<MatrixOp> matrix = matrix_of(s)) return matrix_shared(*matrix, s) + beside;
  return s[kStages] * s[kStepK] * (rows_of_tile(s) + columns_of_tile(s) + 2 * s[kVector]) * bytes + beside;
}

Space space_gpu_contract(const Graph& group, const Domain& domain, const Machine& machine) {
  const std::vector<MatrixOp> matrices = matrices_for(group, domain, machine);
  const bool matrix = !matrices.empty();
  const int64_t bytes = matrix ? size_of(info(matrices[0]).left) : 4;
  const bool in_memory = matrix && multiplies_in_memory(matrices[0]);
  const GpuProduct product = gpu_product_of(group, domain, machine, matrices);
  const int64_t most_rows = std::max<int64_t>(16, at_least(product.rows[0]));
  const int64_t most_columns = std::max<int64_t>(16, at_least(product.columns[0]));
  const bool copies = product.copies || product.copies_matrix;
  Space space;
  space.kind = "contract";
  space.axes = {
      {kTileRows, up_to(most_rows)},
      {kTileColumns, up_to(most_columns)},
      axis(kStepK, {8, 16, 32, 4, 64, 128},
           [&](int64_t k) { return k <= at_least(product.depth) && k <= (matrix ? 128 / bytes : kMostLanesStep); }),
      axis(kThreadRows, {8, 4, 2, 1, 16}, [&](int64_t r) { return r == 8 || r <= most_rows; }),
      axis(kThreadColumns, {8, 4, 2, 16, 32, 64},
           [&](int64_t c) { return c == 8 || (c <= most_columns && (in_memory || c <= 16)); }),
      {kVector, matrix ? std::vector<int64_t>{16 / bytes, 8 / bytes, 4 / bytes} : std::vector<int64_t>{4, 8, 2}},
      axis(kStages, {2, 1, 3, 4, 5}, [&](int64_t stages) { return stages <= 2 || copies; }),
      axis(kUnrollK, {8, 4, 2}),
      axis(kAsyncCopies, {0, 1}, [&](int64_t async) { return async == 0 || copies; }),
      {kRegisterStages, {1, 2}},
  };
  Axis parts(kReductionBlocks, {1});
  for (int64_t n = 2; n <= kMostParts && product.all_depth / n * kPartProducts >= machine.part_elements; n *= 2)
    parts.values.push_back(n);
  const Schedule largest = large_tile();
  const bool many = product.tiles(largest) > machine.multiprocessors();
  if (!product.few_tiles) std::erase_if(parts.values, [](int64_t n) { return n > kMostLastParts; });
  if (parts.values.size() > 1 && (product.few_tiles || many) && may_share_k(group, domain))
    space.axes.push_back(std::move(parts));
  if (many && product.last_row_tiles(largest) > 1 && product.column_tiles(largest) > 1)
    space.axes.emplace_back(kRasterRows, std::vector<int64_t>{1, 2, 4, 8, 16});
  for (const auto& [extents, choices] :
       {std::pair{&product.rows, &kRowLoops}, std::pair{&product.columns, &kColumnLoops}})
    for (size_t i = 1; i < choices->size(); ++i)
      if (std::vector<int64_t> values = steps_around((*extents)[0], (*extents)[i]); values.size() > 1)
        space.axes.emplace_back((*choices)[i], std::move(values));
  // A tile may have fewer neighbouring rows than a vector has elements, because rows may be loaded along K.
  if (axis_of(space.axes, kRowRuns) != nullptr)
    for (const int64_t rows : {4, 2, 1}) space.axes[0].values.push_back(rows);
  if (matrix) {
    std::vector<int64_t> values = {kNoMatrix};
    for (const MatrixOp one : matrices) values.push_back(1 + static_cast<int64_t>(one));
    space.axes.emplace_back(kMatrix, std::move(values));
  }
  if (many) space.axes.emplace_back(kPersistent, std::vector<int64_t>{0, 1});
  if (machine.dies() > 1 && product.tiles(largest) >= 2 * machine.dies())
    space.axes.emplace_back(kTilesByDie, std::vector<int64_t>{1, 0});
  if (product.copies_both && (machine.target->features & kPhases) != 0)
    space.axes.emplace_back(kCopyingWaves, std::vector<int64_t>{0, 4, 1, 2});
  if (product.boxes && in_memory && (machine.target->features & kPhases) != 0)
    space.axes.emplace_back(kTma, std::vector<int64_t>{0, 1});
  add_listed_axes(space, machine);
  const auto facts = std::make_shared<const GpuProduct>(product);
  space.legal = [machine, facts](const Schedule& s) { return is_legal_on_gpu(s, machine, *facts); };
  add_effects(space, machine, facts);
  for (const MatrixOp one : matrices) add_matrix_seeds(space, machine, product, one);
  add_lanes_seeds(space, machine, product);
  return space;
}

}  // namespace wl

#include "compiler/model/pipeline.h"

#include <algorithm>
#include <cmath>

#include "compiler/domain/reads.h"
#include "compiler/model/rates.h"
#include "compiler/schedule/contract/contract.h"
#include "compiler/target/matrix.h"

namespace wl {
namespace {

// Times in ns from a warp's load from device memory, the L2 or shared memory to its first value, if no other load is
// under way, and the time of a barrier. For all GPU targets, vendors' documents agree with them within a factor of 1.5.
constexpr double kMemoryNs = 450, kL2Ns = 180, kSharedNs = 18, kBarrierNs = 20;
constexpr double kSharedBytesPerNs = 200;  // rate of a multiprocessor's shared memory: 128 bytes per clock cycle
// The time in ns from a block's last store of its partial sums to another block's first load of them: fences, two
// barriers and a counter. Two blocks that share a tile of 64 x 64 took 10 us longer on an H200
// (docs/design/gpu-products.md#split-k).
constexpr double kJoinNs = 3000;
// Number of warp schedulers of a multiprocessor; the warps of one scheduler hide each other's latency.
constexpr double kIssuers = 4;
// Cycles that a warp takes to order an asynchronous copy for each of its lanes, with the address, and the bytes of the
// largest such copy of a lane. On an H200, a step that one warp copied took 20 cycles for each of its orders.
constexpr double kCopyCycles = 18, kCopyBytes = 16;

// Numbers of different row tiles (of the left operand) and column tiles (of the right operand) that `blocks`
// neighbouring blocks read in all.
struct Met {
  double rows = 1, columns = 1;
};
Met tiles_met(double blocks, double raster, double column_tiles) {
  const double columns = std::min(column_tiles, std::ceil(blocks / raster));
  return {raster * std::ceil(blocks / (raster * column_tiles)), columns};
}

// The time in ns for which a block waits for the tiles of one step along K if no other block shares its multiprocessor.
struct Loads {
  // Transfer times of a step's tiles: from the L2, from the cache behind the L2s of several dies, and from memory.
  double l2 = 0, cache = 0, memory = 0;
  double ns = 0;  // time until all bytes of a step have arrived
};

// All tiles of a step pass through the L2. `wave` blocks run at the same time; a tile that several of them read comes
// from memory only once. On a GPU of several dies, each die that reads the tile takes it once from the cache between
// memory and the dies' L2s.
Loads loads_of(const Schedule& s, const ProductExtents& product, const Machine& machine, double bytes, double wave) {
  const Rates rates = rates_of(machine);
  const double units = std::max(1, machine.multiprocessors());
  const auto tile_rows = static_cast<double>(rows_of_tile(s)), tile_columns = static_cast<double>(columns_of_tile(s));
  const auto step = static_cast<double>(s[kStepK]);
  const auto column_tiles = static_cast<double>(product.loops.column_tiles(s));
  const double column_bytes = step * tile_columns * bytes, row_bytes = step * tile_rows * bytes;
  const auto raster = static_cast<double>(s[kRasterRows]), dies = static_cast<double>(machine.dies());
  const Met met = tiles_met(wave, raster, column_tiles);
  const Met on_die = s[kTilesByDie] != 0 ? tiles_met(std::ceil(wave / dies), raster, column_tiles)
                                         : Met{std::ceil(met.rows / std::min(dies, raster)),
                                               std::ceil(met.columns / std::max(1.0, dies / raster))};
  // Elements that blocks read again in later steps (as overlapping windows do) are still in a cache if they fit.
  const double rows_new = met.rows * tile_rows * product.fresh_rows,
               columns_new = met.columns * tile_columns * product.fresh_columns;
  const bool fits = (rows_new + columns_new) * product.depth * bytes <= rates.far_bytes;
  const double new_bytes =
      step * bytes * (fits ? rows_new + columns_new : met.rows * tile_rows + met.columns * tile_columns);
  Loads out;
  out.memory = new_bytes / wave / (rates.memory_bytes_per_ns / units);
  if (dies > 1)
    out.cache =
        (on_die.rows * row_bytes + on_die.columns * column_bytes) / (wave / dies) / (rates.near_bytes_per_ns / units);
  out.l2 = (row_bytes + column_bytes) / (rates.die_bytes_per_ns / units);
  out.ns = std::max({out.memory + kMemoryNs, out.cache + kMemoryNs, out.l2 + kL2Ns});
  return out;
}

// A step along K of a block whose tiles have arrived in shared memory.
struct Step {
  double products_ns = 0;  // time for multiplying
  double shared_ns = 0;    // time for reading shared memory
  double ns = 0;           // time of the whole step
  // Time that ordering the asynchronous copies of a later step takes, if copying waves of their own do that.
  double orders_ns = 0;
};

// The bytes of the elements of both factors in shared memory.
double factor_bytes(const Schedule& s, const ProductExtents& product) {
  const std::optional<MatrixOp> matrix = matrix_of(s);
  return static_cast<double>(matrix ? size_of(info(*matrix).left) : product.bytes);
}

// `beside`: how many blocks share the multiprocessor.
Step step_of(const Schedule& s, const ProductExtents& product, const Machine& machine, double beside) {
  const Gpu& gpu = machine.target->gpu;
  const Arithmetic& arithmetic = machine.target->arithmetic;
  const std::optional<MatrixOp> matrix = matrix_of(s);
  const double slots_per_ns = rates_of(machine).slots_per_ns / std::max(1, machine.multiprocessors());
  const auto tile_rows = static_cast<double>(rows_of_tile(s)), tile_columns = static_cast<double>(columns_of_tile(s));
  const auto step = static_cast<double>(s[kStepK]), threads = static_cast<double>(contract_threads(s));
  const double bytes = factor_bytes(s, product), warps = threads / gpu.wave;
  const double fma_per_ns =
      slots_per_ns * (matrix ? matrix_rate(*matrix, *machine.target)
                             : arithmetic.multiply_adds(product.dtype, product.dtype, product.dtype));
  const double compute_ns = tile_rows * tile_columns / fma_per_ns;  // ns of a block's products for one element along K
  // Bytes that are read from shared memory for one element of the depth (the reduced axis). Without matrix
  // instructions, lanes that read the same word are served together.
  const double shared_bytes =
      threads * (matrix ? 4 * static_cast<double>(matrix_words(*matrix, s[kThreadRows], s[kThreadColumns])) /
                              static_cast<double>(info(*matrix).k)
                        : static_cast<double>(s[kThreadRows] + s[kThreadColumns]) * bytes / 2);
  Step out;
  out.products_ns = step * compute_ns;
  out.shared_ns = step * shared_bytes / kSharedBytesPerNs;
  const double hiding = std::max(1.0, warps / kIssuers);  // warps of one scheduler
  if (matrix && multiplies_in_memory(*matrix)) {
    // The warps read the left factor of a step into registers first, which only other blocks hide; the instructions
    // read the right one themselves.
    const WaveTile group = wave_tile(*matrix, s[kThreadRows], s[kThreadColumns]);
    const double left_bytes = step * tile_rows * tile_columns / static_cast<double>(group.columns) * bytes;
    out.ns = out.products_ns + left_bytes / kSharedBytesPerNs / beside;
  } else {
    const double unrolled = matrix || s[kUnrollK] > 1 || s[kRegisterStages] > 1 ? 2 : 1;
    const double at_once = matrix ? static_cast<double>(info(*matrix).k) : 1;  // elements along K that one read covers
    out.ns = pipelined_ns(kSharedNs + at_once * shared_bytes / kSharedBytesPerNs, at_once * compute_ns, step / at_once,
                          unrolled, hiding);
  }
  out.ns = std::max(out.ns, out.shared_ns) + kBarrierNs / beside;
  // With one register stage, a step's first reads from shared memory are issued only after the barrier, so nothing
  // hides their latency.
  if (s[kRegisterStages] == 1) out.ns += kSharedNs / (beside * hiding);
  const double step_bytes = step * (tile_rows + tile_columns) * bytes;
  if (s[kAsyncCopies] == 0) out.ns += step_bytes / kSharedBytesPerNs;  // lanes that compute also copy the tiles
  // One thread orders the copy of a whole box. All lanes of the warps that copy order other asynchronous copies; where
  // these are the warps that compute, only other blocks hide that.
  if (s[kAsyncCopies] == 0 || s[kTma] != 0) return out;
  const double orders_ns = step_bytes / kCopyBytes * kCopyCycles * kIssuers / slots_per_ns;
  if (s[kCopyingWaves] > 0)
    out.orders_ns = orders_ns / static_cast<double>(s[kCopyingWaves]);
  else
    out.ns += orders_ns / warps / beside;
  return out;
}

// Returns the number of elements that an operand of the contraction has in memory, divided by the number of elements
// that the loops read of it; at most 1. It is below 1 where windows overlap.
double fresh_share(const Graph& group, const Domain& domain, int position) {
  double most = 0;
  for (const Access& access : reads_of(domain, domain.contract, position)) {
    double read = 1;
    for (AtomId atom = 0; atom < static_cast<AtomId>(domain.atoms.size()); ++atom)
      if (access.moves_along(atom)) read *= static_cast<double>(domain.atoms[atom].extent);
    most = std::max(most, static_cast<double>(elements(group.nodes[access.input].shape)) / read);
  }
  return most > 0 ? std::min(1.0, most) : 1;
}

}  // namespace

double pipelined_ns(double load_ns, double use_ns, double turns, double stages, double beside) {
  const double ahead = std::max(1.0, stages * beside);
  if (load_ns <= (ahead - 1) * use_ns) return use_ns * turns;
  return (load_ns + use_ns) * turns / ahead;
}

ProductExtents product_extents(const Graph& group, const Domain& domain) {
  ProductExtents product;
  product.loops = product_loops(domain);
  product.depth = static_cast<double>(extent_of(domain, domain.reduced));
  product.dtype = group.nodes[domain.contract].dtype;
  const int right = domain.right_operand();
  product.fresh_rows = fresh_share(group, domain, 1 - right);
  product.fresh_columns = fresh_share(group, domain, right);
  product.bytes = std::max(4, size_of(product.dtype));
  return product;
}

double gpu_contract_ns(const Schedule& schedule, const ProductExtents& product, const Machine& machine) {
  return gpu_contract_time(schedule, product, machine).ns;
}

GpuContractTime gpu_contract_time(const Schedule& s, const ProductExtents& product, const Machine& machine) {
  const Gpu& gpu = machine.target->gpu;
  const Rates rates = rates_of(machine);
  const double units = std::max(1, machine.multiprocessors());
  const auto tile_rows = static_cast<double>(rows_of_tile(s)), tile_columns = static_cast<double>(columns_of_tile(s));
  const auto step = static_cast<double>(s[kStepK]);
  const double bytes = factor_bytes(s, product);
  const int64_t threads = contract_threads(s), in_block = threads + s[kCopyingWaves] * gpu.wave;
  const SharedRound shared_round = wl::shared_round(s, product.loops.tiles(s), machine);
  const bool persistent = s[kPersistent] > 0;
  const double parts = persistent ? 1 : static_cast<double>(s[kReductionBlocks]);
  const double blocks = static_cast<double>(product.loops.tiles(s) - shared_round.tiles) * parts;
  const int64_t fit = std::max<int64_t>(
      1, std::min<int64_t>({gpu.unit_blocks, gpu.unit_threads / in_block,
                            gpu.unit_registers / (in_block * contract_registers(s, product.bytes / 4)),
                            gpu.unit_shared / contract_shared(s, product.bytes)}));
  const double beside = persistent ? static_cast<double>(std::min(fit, std::max<int64_t>(1, s[kMinBlocks])))
                                   : std::clamp(std::ceil(blocks / units), 1.0, static_cast<double>(fit));
  const double wave = std::min(blocks, units * beside), waves = std::ceil(blocks / (units * beside));

  // The times below are for one block alone on a multiprocessor; `beside` blocks that share it take longer.
  const Step use = step_of(s, product, machine, beside);
  const Loads loads = loads_of(s, product, machine, bytes, wave);
  const double turns = std::ceil(product.depth / step / parts);
  const double stored = tile_rows * tile_columns * bytes / (rates.memory_bytes_per_ns / units);
  // If `shared` blocks compute a tile together, each of them writes its partial sums, and one of them reads all sums.
  const auto joined = [&](double tiles, double shared) {
    const double sums = tile_rows * tile_columns * 4;
    return shared == 1 ? 0 : kJoinNs + sums * (1 + shared) / (rates.home_of(tiles * shared * sums) / units);
  };
  const auto loop = [&](double steps) {
    return beside * std::max(pipelined_ns(loads.ns, use.ns, steps, static_cast<double>(s[kStages]), beside),
                             steps * std::max({loads.memory, loads.cache, loads.l2, use.ns, use.orders_ns}));
  };
  double rest = 0;
  if (shared_round.tiles > 0) {
    const auto shared = static_cast<double>(shared_round.parts);
    const auto left = static_cast<double>(shared_round.tiles);
    rest = std::ceil(left * shared / (units * beside)) *
           (loads.ns + loop(std::ceil(turns / shared)) + beside * (stored + joined(left, shared)));
  }
  // In a persistent kernel, copying waves load a block's next tile while the other waves still compute, so the block
  // waits only for the loads of its first tile.
  const double begins = persistent && s[kCopyingWaves] > 0 ? 1 : waves;
  return {rates.launch_us * 1000 + begins * loads.ns +
              waves * (loop(turns) + beside * (stored / parts + joined(blocks / parts, parts))) + rest,
          use.products_ns,
          use.shared_ns,
          loads.l2,
          loads.cache,
          loads.memory,
          use.ns,
          turns,
          beside,
          waves};
}

}  // namespace wl

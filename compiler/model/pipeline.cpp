#include "compiler/model/pipeline.h"

#include <algorithm>
#include <cmath>

#include "compiler/model/rates.h"
#include "compiler/schedule/contract/contract.h"

namespace wl {
namespace {

// From the request of a warp to its first value, nothing else under way; vendors' documents agree within a factor of
// 1.5 for the targets of the table.
constexpr double kMemoryNs = 450, kL2Ns = 180, kSharedNs = 18, kBarrierNs = 20;
constexpr double kSharedBytesPerNs = 200;  // of a multiprocessor: 128 bytes a clock
constexpr double kIssuers = 4;             // of a multiprocessor: warps on one of them hide each other's latency

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
  const std::optional<MatrixOp> matrix = matrix_of(s);
  const auto step = static_cast<double>(s[kStepK]);
  const auto bytes = static_cast<double>(matrix ? size_of(info(*matrix).left) : product.bytes);
  const int64_t threads = contract_threads(s), in_block = threads + s[kCopyingWaves] * gpu.wave;
  const auto row_tiles = static_cast<double>(product.loops.row_tiles(s)),
             column_tiles = static_cast<double>(product.loops.column_tiles(s));
  const auto parts = static_cast<double>(s[kReductionBlocks]);
  const double blocks = row_tiles * column_tiles * static_cast<double>(product.loops.outer) * parts;
  const int64_t fit = std::max<int64_t>(
      1, std::min<int64_t>({gpu.unit_blocks, gpu.unit_threads / in_block,
                            gpu.unit_registers / (in_block * contract_registers(s, product.bytes / 4)),
                            gpu.unit_shared / contract_shared(s, product.bytes)}));
  const double beside = std::clamp(std::ceil(blocks / units), 1.0, static_cast<double>(fit));
  const double wave = std::min(blocks, units * beside), waves = std::ceil(blocks / (units * beside));

  // Every amount is of one block that has a multiprocessor alone; `beside` of them take turns.
  const Arithmetic& arithmetic = machine.target->arithmetic;
  const double fma_per_ns = rates.slots_per_ns / units *
                            (matrix ? matrix_rate(*matrix, *machine.target)
                                    : arithmetic.multiply_adds(product.dtype, product.dtype, product.dtype));
  const double compute_ns = tile_rows * tile_columns / fma_per_ns;  // of one element of the depth
  const double warps = static_cast<double>(threads) / gpu.wave;
  // Of one element of the depth. Without matrices, lanes that ask for the same are served together.
  const double shared_bytes =
      static_cast<double>(threads) *
      (matrix ? 4 * static_cast<double>(matrix_words(*matrix, s[kThreadRows], s[kThreadColumns])) /
                    static_cast<double>(info(*matrix).k)
              : static_cast<double>(s[kThreadRows] + s[kThreadColumns]) * bytes / 2);
  const double unrolled = matrix || s[kUnrollK] > 1 || s[kRegisterStages] > 1 ? 2 : 1;
  double use_ns = pipelined_ns(kSharedNs + shared_bytes / kSharedBytesPerNs, compute_ns, step, unrolled,
                               std::max(1.0, warps / kIssuers));
  use_ns = std::max(use_ns, step * shared_bytes / kSharedBytesPerNs) + kBarrierNs / beside;
  // Without reads carried over from the step before, the first ones wait behind the barrier.
  if (s[kRegisterStages] == 1) use_ns += kSharedNs / (beside * std::max(1.0, warps / kIssuers));
  const double tile_bytes = step * (tile_rows + tile_columns) * bytes;
  if (s[kAsyncCopies] == 0) use_ns += tile_bytes / kSharedBytesPerNs;  // the lanes that compute write them there

  // A step's tiles come from the L2, and from memory what no other block of the wave reads as well.
  const double columns_met = std::min(column_tiles, wave), rows_met = std::ceil(wave / column_tiles);
  const double fresh = step * (rows_met * tile_rows + columns_met * tile_columns) * bytes / wave;
  const double from_memory = fresh / (rates.memory_bytes_per_ns / units),
               from_l2 = tile_bytes / (rates.near_bytes_per_ns / units);
  const double load_ns = std::max(from_memory + kMemoryNs, from_l2 + kL2Ns);
  const double turns = std::ceil(product.depth / step / parts);
  // Blocks that share a tile write their sums, and one of them reads all.
  const double sums = parts == 1 ? 0 : tile_rows * tile_columns * 4 * (1 + 1 / parts + 1);
  const double stored = (tile_rows * tile_columns * bytes / parts + sums) / (rates.memory_bytes_per_ns / units);

  const double loop = beside * pipelined_ns(load_ns, use_ns, turns, static_cast<double>(s[kStages]), beside);
  const double least = beside * turns * std::max({from_memory, from_l2, use_ns});
  // Waves that copy are ahead of the others from one tile of a block to the next.
  const double begins = s[kPersistent] > 0 && s[kCopyingWaves] > 0 ? 1 : waves;
  return {rates.launch_us * 1000 + begins * load_ns + waves * (std::max(loop, least) + beside * stored),
          step * compute_ns,
          step * shared_bytes / kSharedBytesPerNs,
          from_l2,
          from_memory,
          use_ns,
          turns,
          beside,
          waves};
}

}  // namespace wl

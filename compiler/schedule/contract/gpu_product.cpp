#include "compiler/schedule/contract/gpu_product.h"

#include <algorithm>

#include "compiler/base/log2.h"
#include "compiler/domain/reads.h"
#include "compiler/kernel/shared_factors.h"
#include "compiler/schedule/axes.h"
#include "compiler/schedule/contract/counted.h"

namespace wl {
namespace {

// Whether K divides into `parts` parts, all with the same number of whole steps. `loop`: the extent of the loop that
// is divided into steps of `step` elements. `depth`: the number of elements of K in all its loops.
bool divides(int64_t parts, int64_t step, int64_t loop, int64_t depth) {
  return loop % step == 0 && depth / step % parts == 0;
}

bool legal_on_lanes(const Schedule& s) {
  if (s[kThreadRows] > rows_of_tile(s) || s[kThreadColumns] > columns_of_tile(s) || s[kThreadColumns] % s[kVector] != 0)
    return false;
  return s[kStepK] <= kMostLanesStep && s[kUnrollK] <= s[kStepK];
}

// Whether waves that compute whole fragments form a grid over the tile.
bool legal_with(MatrixOp matrix, const Schedule& s) {
  const MatrixInfo& row = info(matrix);
  const WaveTile wave = wave_tile(matrix, s[kThreadRows], s[kThreadColumns]);
  if (wave.rows > rows_of_tile(s) || wave.columns > columns_of_tile(s) || wave.rows % row.m != 0 ||
      wave.columns % row.n != 0)
    return false;
  if (multiplies_in_memory(matrix))
    return s[kStepK] == shared_row_elements(row.left) && s[kVector] == widest_vector(matrix) &&
           s[kRegisterStages] == 1 && wave.columns >= kSharedFactorColumns / 4;
  return s[kStepK] % row.k == 0 && s[kStepK] / row.k >= s[kRegisterStages];
}

// Whether blocks may share tiles as the schedule says. The parts must have equally many steps, and there must be a
// counter of 4 bytes in the workspace for each shared tile. Persistent blocks share only the tiles of the last round,
// all of whose parts must run at once.
bool legal_shares(const Schedule& s, const Machine& machine, const GpuProduct& product) {
  const int64_t parts = s[kReductionBlocks];
  if (parts == 1) return true;
  if (!divides(parts, s[kStepK], product.step_loop(s), product.all_depth)) return false;
  if (s[kPersistent] == 0) return product.few_tiles && product.tiles(s) <= kCounterBytes / 4;
  const SharedRound shared = shared_round(s, product.tiles(s), machine);
  const int64_t blocks = blocks_at_once(s, machine);
  return shared.tiles > 0 && shared.tiles * parts <= blocks && blocks % parts == 0 &&
         blocks / parts <= kCounterBytes / 4;
}

}  // namespace

const std::array<GpuSide, 2>& GpuProduct::sides_of(int64_t matrix, int64_t vector) const {
  const auto at = std::find_if(sides.begin(), sides.end(), [&](const Sides& each) { return each.matrix == matrix; });
  WL_CHECK(at != sides.end(), "no sides for matrix instruction ", matrix);
  return at->of[static_cast<size_t>(log2_floor(vector))];
}

int64_t GpuProduct::step_loop(const Schedule& s) const {
  return sides[0].of[static_cast<size_t>(log2_floor(s[kVector]))][0].depth;
}

int64_t GpuProduct::steps(const Schedule& s) const {
  const int64_t loop = step_loop(s);
  return all_depth / loop * (loop / s[kStepK]) / s[kReductionBlocks];
}

std::array<bool, 2> GpuProduct::copies_sides(const Schedule& s, int64_t vector) const {
  if (s[kAsyncCopies] == 0 || std::min(s[kStages], steps(s)) < 2) return {false, false};
  const std::array<GpuSide, 2>& of = sides_of(s[kMatrix], vector);
  return {of[0].copies(s[kTileRows]), of[1].copies(s[kTileColumns])};
}

bool GpuProduct::copies_alongside(const Schedule& s) const {
  const std::array<bool, 2> copied = copies_sides(s, s[kVector]);
  return matrix_of(s) && copied[0] && copied[1] && step_loop(s) % s[kStepK] == 0 && s[kRegisterStages] == 1 &&
         (s[kPersistent] > 0 || s[kReductionBlocks] == 1) && (all_depth > step_loop(s) || counts_all);
}

bool GpuSide::copies_vectors(int64_t width) const {
  return in_vectors && (along_k || (width >= vector && (extent % width == 0 || extent % vector == 0)));
}

bool GpuSide::copies(int64_t width) const {
  return copied && (size_of(dtype) >= 4 || (along_k == k_inner && copies_vectors(width)));
}

void analyse_side(const Graph& group, const Domain& domain, AtomId k, int64_t vector, std::optional<MatrixOp> matrix,
                  GpuSide& side) {
  const std::vector<Access> reads = reads_of(domain, domain.contract, side.position);
  side.k = k;
  side.depth = k < 0 ? 1 : domain.atoms[k].extent;
  side.vector = vector;
  side.extent = side.atom < 0 ? 1 : domain.atoms[side.atom].extent;
  int along = 0;
  for (const Access& access : reads) {
    if (k >= 0 && access.strides[k] == 1 && side.depth > 1) ++along;
    if (side.extent > 1 && access.strides[side.atom] == 1) --along;
  }
  side.along_k = along > 0;
  const AtomId fast = side.along_k ? k : side.atom;
  side.aligned = aligned_along(domain, reads, fast, vector);
  // Rows that run across k hold no whole words, unless one element fills a word. Words can still be read from them if
  // elements have 16 bits and either a wave holds whole blocks of words, whose elements its lanes exchange, or the
  // instruction reads shared memory itself.
  const auto words_across = [&] {
    const Fragments& one = fragments_of(*matrix);
    const Layout& words = side.position == domain.right_operand() ? one.b : one.a;
    return elements_of_word(side.dtype) == 1 ||
           (size_of(side.dtype) == 2 && (multiplies_in_memory(*matrix) || holds_blocks(words)));
  };
  side.k_inner = matrix && (side.along_k || !words_across());
  const Access* const access = copied_operand(group, domain, side.position, side.dtype);
  side.copied = access != nullptr;
  side.in_vectors = access != nullptr && fast >= 0 && side.aligned && access->strides[fast] == 1 &&
                    std::all_of(access->guards.begin(), access->guards.end(),
                                [fast](const Guard& guard) { return guard.strides[fast] == 0; });
}

Schedule large_tile() {
  Schedule tile;
  tile.set(kTileRows, kLargeTile);
  tile.set(kTileColumns, kLargeTile);
  return tile;
}

GpuProduct gpu_product_of(const Graph& group, const Domain& domain, const Machine& machine,
                          const std::vector<MatrixOp>& matrices) {
  GpuProduct out;
  static_cast<ProductLoops&>(out) = product_loops(domain);
  const DType lanes = lanes_dtype(group, domain);
  out.bytes = std::max(4, size_of(lanes));
  out.all_depth = extent_of(domain, domain.reduced);
  out.few_tiles = out.tiles(large_tile()) < machine.target->gpu.units;
  out.counts_all = counted_products(group, domain).empty();
  std::vector<std::optional<MatrixOp>> ways = {std::nullopt};
  ways.insert(ways.end(), matrices.begin(), matrices.end());
  for (const std::optional<MatrixOp>& matrix : ways) {
    GpuProduct::Sides& sides = out.sides.emplace_back();
    sides.matrix = matrix ? 1 + static_cast<int64_t>(*matrix) : kNoMatrix;
    for (size_t i = 0; i < kVectors; ++i)
      for (const bool columns : {false, true}) {
        GpuSide& side = sides.of[i][columns ? 1 : 0];
        const std::vector<AtomId>& atoms = columns ? domain.n : domain.m;
        const int64_t vector = int64_t{1} << i;
        side.position = columns ? domain.right_operand() : 1 - domain.right_operand();
        side.dtype = matrix ? (columns ? info(*matrix).right : info(*matrix).left) : lanes;
        side.atom = atoms.empty() ? -1 : atoms.back();
        analyse_side(group, domain, step_loop(domain, vector), vector, matrix, side);
      }
  }
  if ((machine.target->features & kAsyncCopy) != 0) {
    const auto& [rows, columns] = out.sides_of(kNoMatrix, 1);
    out.copies = size_of(lanes) >= 4 && (rows.copied || columns.copied);
    if (!matrices.empty()) {
      const auto& [left, right] = out.sides_of(out.sides[1].matrix, 1);
      out.copies_matrix = left.copied || right.copied;
      out.copies_both = left.copied && right.copied;
    }
  }
  out.boxes = out.copies_both && (is_matrix_of(group, domain, 0) || is_matrix_of(group, domain, 1));
  return out;
}

bool is_matrix_of(const Graph& group, const Domain& domain, int side) {
  const auto alone = [](const std::vector<AtomId>& atoms) { return atoms.size() <= 1; };
  if (!alone(domain.m) || !alone(domain.n) || domain.reduced.size() != 1 || extent_of(domain, domain.batch) != 1)
    return false;
  const DType dtype = group.nodes[group.nodes[domain.contract].operands[side]].dtype;
  const Access* const access = copied_operand(group, domain, side, dtype);
  if (access == nullptr || !access->guards.empty() || access->offset != 0) return false;
  int64_t pitch = 0;
  bool contiguous = false;
  for (const std::vector<AtomId>* atoms : {&domain.m, &domain.n, &domain.reduced})
    for (const AtomId atom : *atoms) {
      contiguous = contiguous || access->strides[atom] == 1;
      pitch = std::max(pitch, access->strides[atom]);
    }
  return contiguous && pitch > 1 && pitch * size_of(dtype) % kMatrixVector == 0;
}

bool may_share_k(const Graph& group, const Domain& domain) {
  return !domain.reduced.empty() && counted_products(group, domain).empty();
}

bool is_legal_on_gpu(const Schedule& s, const Machine& machine, const GpuProduct& product) {
  const Gpu& gpu = machine.target->gpu;
  const bool early = (machine.target->features & kEarlyLoads) != 0;
  const std::optional<MatrixOp> chosen = matrix_of(s);
  if (rows_of_tile(s) > kMostTile || rows_of_tile(s) < kLeastTile || columns_of_tile(s) > kMostTile) return false;
  // A vector along a row must not extend over several ranges of columns.
  if (columns_of_tile(s) > s[kTileColumns] && s[kTileColumns] < s[kVector]) return false;
  if (!(chosen ? legal_with(*chosen, s) : legal_on_lanes(s))) return false;
  const bool async = s[kAsyncCopies] != 0;
  if (async ? s[kStages] < 2 : s[kStages] > 2) return false;
  if (s[kPersistent] > 0 && (s[kMinBlocks] == 0 || product.tiles(s) <= blocks_at_once(s, machine))) return false;
  if (!legal_shares(s, machine, product)) return false;
  if (s[kRasterRows] > 1 && (product.last_row_tiles(s) % s[kRasterRows] != 0 || product.raster_columns(s) == 1))
    return false;
  if (s[kCopyingWaves] > 0 && (!product.copies_alongside(s) || product.depth < 2 * s[kStepK])) return false;
  if (s[kTma] > 0 && (s[kCopyingWaves] == 0 || !chosen || !multiplies_in_memory(*chosen) || !product.boxes))
    return false;
  const int64_t computing = contract_threads(s), threads = computing + s[kCopyingWaves] * gpu.wave;
  if (computing < gpu.wave || s[kCopyingWaves] * gpu.wave > computing || threads > gpu.block_threads) return false;
  if (contract_shared(s, product.bytes) > gpu.block_shared || !may_reside(s[kMinBlocks], threads, gpu)) return false;
  // 232 registers hold the 8 x 16 accumulators of a thread and its loads for the next step; larger register tiles would
  // leave no room for these loads.
  const int64_t registers = contract_registers(s, product.bytes / 4);
  const int64_t taken = early ? registers * 3 / 2 : registers;
  if (registers > std::min(gpu.lane_registers, 232) || taken * threads > gpu.unit_registers) return false;
  // min_blocks blocks must fit on a multiprocessor together in two cases: if tiles are large, because blocks would
  // otherwise spill registers or not run at once, and if blocks are persistent, because some would otherwise wait for
  // others to end.
  const bool large = chosen && multiplies_in_memory(*chosen);
  if (large && s[kMinBlocks] * taken * threads > gpu.unit_registers) return false;
  return (!large && s[kPersistent] == 0) || s[kMinBlocks] * contract_shared(s, product.bytes) <= gpu.unit_shared;
}

bool divides_k(const Graph& group, const Domain& domain, const Schedule& schedule) {
  const int64_t parts = schedule[kReductionBlocks];
  if (parts == 1) return true;
  return may_share_k(group, domain) &&
         divides(parts, schedule[kStepK], domain.atoms[step_loop(domain, schedule[kVector])].extent,
                 extent_of(domain, domain.reduced));
}

}  // namespace wl

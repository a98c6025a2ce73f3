// Contractions on GPUs by matrix instructions: which instructions are offered, the grid of waves, and the products.
#include <algorithm>

#include "compiler/base/log2.h"
#include "compiler/kernel/shared_factors.h"
#include "compiler/schedule/contract/contract.h"
#include "compiler/schedule/contract/gpu.h"

namespace wl {
namespace {

// The bytes that pad a row in shared memory, so that neighbouring rows begin at different banks.
constexpr int64_t kBankRow = 16;
// The bytes that pad a row in shared memory if a wave reads four rows of eight words at once.
constexpr int64_t kBankWords = 32;
constexpr int64_t kShortestRun = 8;  // the fewest neighbouring columns of a tile: the least value of tile_columns

}  // namespace

std::optional<MatrixOp> matrix_of(const Schedule& schedule) {
  const int64_t value = schedule[kMatrix];
  return value == kNoMatrix ? std::nullopt : std::optional(matrices()[static_cast<size_t>(value - 1)].op);
}

std::vector<MatrixOp> matrices_for(const Graph& group, const Domain& domain, const Machine& machine) {
  const Node& product = group.nodes[domain.contract];
  const auto dtype = [&](int side) { return group.nodes[product.operands[side]].dtype; };
  const int right = domain.right_operand();
  if (dtype(0) == DType::f32 && !product.tf32) return {};
  const ProductLoops loops = product_loops(domain);
  // A tile may extend along the outer loops too, but has at least kShortestRun (8) neighbouring columns along the last
  // one.
  const auto all = [](const std::array<int64_t, 3>& extents) { return extents[0] * extents[1] * extents[2]; };
  std::vector<MatrixOp> out = matrices_for(dtype(1 - right), dtype(right), machine.target->features);
  std::erase_if(out, [&](MatrixOp op) {
    const MatrixInfo& row = info(op);
    const int64_t k =
        multiplies_in_memory(op) ? shared_row_elements(row.left) : row.k;  // the elements of K in the shortest step
    return is_float(product.dtype) != is_float(row.sum) || 2 * all(loops.rows) <= row.m ||
           2 * all(loops.columns) <= row.n || 2 * loops.columns[0] <= std::min(row.n, kShortestRun) ||
           2 * loops.depth <= k;
  });
  return out;
}

int64_t widest_vector(MatrixOp matrix) {
  return kMatrixVector / size_of(info(matrix).left);
}

double matrix_rate(MatrixOp matrix, const Target& target) {
  const MatrixInfo& row = info(matrix);
  const double rate = target.arithmetic.matrices(row.left, row.right);
  // If the target has groups of waves that multiply together, its rate of matrix instructions is that of such groups. A
  // single wave reaches three fifths of that rate (measured on an H200: bench/README.md).
  const bool slower = (target.features & kWaveGroups) != 0 && !multiplies_in_memory(matrix);
  // If the target has instructions of twice the depth, the other instructions have half the rate.
  const bool shallow = (target.features & kMfmaDeep) != 0 && row.feature != kMfmaDeep;
  return shallow ? 0.5 * rate : slower ? 0.6 * rate : rate;
}

WaveTile wave_tile(MatrixOp matrix, int64_t thread_rows, int64_t thread_columns) {
  const Layout& sums = fragments_of(matrix).c;
  const auto lanes_along = [&](int axis) { return sums.shape[axis] / sums.repeats(axis); };
  return {thread_rows * lanes_along(0), thread_columns * lanes_along(1) / sums.lanes()};
}

int64_t matrix_words(MatrixOp matrix, int64_t thread_rows, int64_t thread_columns) {
  const Fragments& one = fragments_of(matrix);
  const WaveTile wave = wave_tile(matrix, thread_rows, thread_columns);
  if (multiplies_in_memory(matrix)) {
    const MatrixInfo& row = info(matrix);
    const int64_t columns = std::min(wave.columns, kSharedFactorColumns);
    const int64_t calls = wave.rows / row.m * (wave.columns / columns), threads = one.c.count('l') * one.c.count('u');
    return calls * (row.m + columns) * row.k / elements_of_word(row.left) / threads;
  }
  return wave.rows / one.c.shape[0] * one.a.count('r') + wave.columns / one.c.shape[1] * one.b.count('r');
}

int64_t matrix_pitch(MatrixOp matrix, int64_t extent, bool along_k) {
  if (multiplies_in_memory(matrix)) return extent;
  const DType dtype = info(matrix).left;
  return extent + (along_k || elements_of_word(dtype) > 1 ? kBankRow : kBankWords) / size_of(dtype);
}

int64_t matrix_shared(MatrixOp matrix, const Schedule& s) {
  const auto size = [&](int64_t tile) {
    // The elements of K in one step. In shared memory either these or the tile's rows or columns are innermost. The
    // size returned is that of the larger of both layouts.
    const int64_t step = s[kStepK];
    return std::max(tile * matrix_pitch(matrix, step, true), step * matrix_pitch(matrix, tile, false));
  };
  return s[kStages] * (size(rows_of_tile(s)) + size(columns_of_tile(s))) * size_of(info(matrix).left);
}

DType lanes_dtype(const Graph& group, const Domain& domain) {
  const DType dtype = group.nodes[domain.contract].dtype;
  return is_float(dtype) && size_of(dtype) < 4 ? DType::f32 : dtype;
}

absl::Status GpuContract::choose_waves() {
  const WaveTile wave = wave_tile(*matrix_, rows_each_, columns_each_);
  const MatrixInfo& row = info(*matrix_);
  const int64_t down = rows_.tile / wave.rows, across = columns_.tile / wave.columns;
  const int own = log2_floor(fragments_of(*matrix_).c.count('u'));  // log2 of how many waves multiply together
  const int64_t count = (down * across * machine_.target->gpu.wave) << own;
  if (count == 0 || count > machine_.target->gpu.block_threads || wave.rows % row.m != 0 || wave.columns % row.n != 0 ||
      step_ % row.k != 0)
    return invalid("a tile of ", rows_.tile, " x ", columns_.tile, " in pieces of ", rows_each_, " x ", columns_each_,
                   " and steps of ", step_, " does not divide into fragments of ", row.name);
  set_threads(count);
  Repeats rows{log2_floor(wave.rows / row.m)}, columns{log2_floor(wave.columns / row.n)};
  for (int bit = 0; bit < log2_floor(across); ++bit) columns.waves.push_back(own + bit);
  for (int bit = 0; bit < log2_floor(down); ++bit) rows.waves.push_back(own + log2_floor(across) + bit);
  // Factors that stay in shared memory are multiplied for a whole step at once.
  const Repeats along_k{multiplies_in_memory(*matrix_) ? log2_floor(step_ / row.k) : 0};
  const Fragments& one = fragments_of(*matrix_);
  fragments_ = {repeated(one.a, {rows, along_k}), repeated(one.b, {columns, along_k}),
                repeated(one.c, {rows, columns})};
  return absl::OkStatus();
}

TileId GpuContract::cut_off(const Side& side, TileId tile, const Affine& first) {
  Instr count;
  count.op = InstrOp::kIota;
  count.result = out_.like(tile, DType::i32);
  count.axis = side.along_k ? out_.kernel().tiles[tile].layout.rank() - 1 : 0;
  count.slice.offset = first;
  Instr map;
  const DType dtype = out_.kernel().tiles[tile].dtype;
  const int k = push_arg(map, count.result, DType::i32);
  const int end = push_constant(map, static_cast<double>(k_extent_), DType::i32);
  const int inside = push_op(map, Op::lt, DType::b1, {k, end});
  const int value = push_arg(map, tile, dtype), zero = push_constant(map, 0, dtype);
  push_op(map, Op::select, dtype, {inside, value, zero});
  map.op = InstrOp::kMap;
  map.result = out_.like(tile, dtype);
  const TileId result = map.result;
  out_.push(std::move(count));
  out_.push(std::move(map));
  return result;
}

TileId GpuContract::load_factor(const Side& side, int64_t k) {
  const TileId tile = out_.tile({DType::u32, &side == &rows_ ? fragments_.a : fragments_.b, {}});
  if (is_resident(side)) {
    out_.push(pack_instr(tile, side.dtype, resident_tile_, 1 - resident_->rows_axis, k));
    return tile;
  }
  const int64_t own = side.k_inner ? side.pitch : 1, next = side.k_inner ? 1 : side.pitch;
  Slice from;
  from.buffer = side.buffer;
  from.offset = fixed(k * next);
  from.strides = {own, elements_of_word(side.dtype) * next};
  out_.push(side.k_inner || elements_of_word(side.dtype) == 1
                ? words_instr(tile, side.dtype, std::move(from))
                : words_across_instr(tile, side.dtype, std::move(from), next));
  return tile;
}

void GpuContract::multiply_matrices(int64_t depth) {
  const bool in_memory = multiplies_in_memory(*matrix_);
  for (int64_t k = 0; k < depth; k += in_memory ? step_ : info(*matrix_).k) {
    const TileId a = load_factor(rows_, k), b = load_factor(columns_, k);
    out_.push(mma_instr(accumulator_, *matrix_, a, b));
    if (in_memory) out_.push(mma_wait_instr());
  }
}

}  // namespace wl

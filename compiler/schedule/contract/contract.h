// Contractions with elementwise work on their operands and results. What can be chosen, and the kernel, for CPUs and
// GPUs.
#pragma once

#include <array>
#include <optional>

#include "compiler/kernel/kernel.h"
#include "compiler/plan/domain.h"
#include "compiler/schedule/space.h"

namespace wl {

Space space_contract(const Graph& group, const Domain& domain, const Machine& machine);
// On GPUs: a block owns a tile of rows x columns, and each thread a register tile of it.
Space space_gpu_contract(const Graph& group, const Domain& domain, const Machine& machine);
// Whether K is as many equal numbers of whole steps as the schedule has reduction_blocks, and every product counts.
bool divides_k(const Graph& group, const Domain& domain, const Schedule& schedule);
// The rows and the columns of a tile of such a contraction, and the threads of its block.
int64_t rows_of_tile(const Schedule& schedule);
int64_t columns_of_tile(const Schedule& schedule);
int64_t contract_threads(const Schedule& schedule);
// The choices that say how far a tile goes along the last loop of the rows, or columns, and along those around it.
inline constexpr std::array<Choice, 3> kRowLoops = {kTileRows, kRowRuns, kRowPlanes};
inline constexpr std::array<Choice, 3> kColumnLoops = {kTileColumns, kColumnRuns, kColumnPlanes};
// The extent of a tile of such choices, and how many tiles there are along loops of such extents.
int64_t tile_of(const Schedule& schedule, const std::array<Choice, 3>& choices);
int64_t tiles_along(const Schedule& schedule, const std::array<int64_t, 3>& extents,
                    const std::array<Choice, 3>& choices);
// Extents of such a contraction: along these loops of the rows and of the columns; what is left beside them; and the
// longest loop of K.
struct ProductLoops {
  std::array<int64_t, 3> rows = {1, 1, 1}, columns = {1, 1, 1};
  int64_t outer = 1, depth = 1;
  // Tiles of a schedule.
  int64_t row_tiles(const Schedule& schedule) const;
  int64_t column_tiles(const Schedule& schedule) const;
  // Tiles along the last loop of rows, of which neighbouring blocks may have several.
  int64_t last_row_tiles(const Schedule& schedule) const;
  int64_t tiles(const Schedule& schedule) const { return row_tiles(schedule) * column_tiles(schedule) * outer; }
};
ProductLoops product_loops(const Domain& domain);
// The loop of K that GPUs go along in steps: that which loads of so many elements are contiguous along, or the longest;
// the others are around it. -1: there is none.
AtomId step_loop(const Domain& domain, int64_t vector);
// Blocks that run at once, by a schedule's min_blocks; 0 where that is left to the compiler.
int64_t blocks_at_once(const Schedule& schedule, const Machine& machine);
// Of persistent blocks: the tiles of the last round, each of which so many blocks share; none where all blocks have as
// many or each tile has one block.
struct SharedRound {
  int64_t tiles = 0, parts = 1;
};
SharedRound shared_round(const Schedule& schedule, int64_t tiles, const Machine& machine);
// Of such a contraction: 32-bit registers of a thread that computes with elements of so many words, and bytes of shared
// memory of a block, whose elements have so many bytes unless a matrix instruction says otherwise.
int64_t contract_registers(const Schedule& schedule, int64_t words);
int64_t contract_shared(const Schedule& schedule, int64_t bytes);
// The matrix instruction that a schedule has; nullopt: none.
std::optional<MatrixOp> matrix_of(const Schedule& schedule);
// Those that may multiply the operands of a contraction on a machine, the fastest first, but for those of which half of
// every fragment would be empty.
std::vector<MatrixOp> matrices_for(const Graph& group, const Domain& domain, const Machine& machine);
// Multiply-adds of an instruction for each of f32 on lanes.
double matrix_rate(MatrixOp matrix, const Target& target);
// Rows and columns of the tile of a wave, or of a group of waves that multiply together, whose threads have so many
// each (thread_rows, thread_columns).
struct WaveTile {
  int64_t rows = 1, columns = 1;
};
WaveTile wave_tile(MatrixOp matrix, int64_t thread_rows, int64_t thread_columns);
// Words of both factors that such a thread loads for one step of the instruction along k, or its part of what the
// instruction itself reads of shared memory.
int64_t matrix_words(MatrixOp matrix, int64_t thread_rows, int64_t thread_columns);
// Elements from one row to the next in shared memory, of rows with so many. Eight rows of 16 bytes, which the lanes of
// a wave load words of a fragment from, then have no bank in common: rows are 16 bytes times an odd number apart.
int64_t matrix_pitch(MatrixOp matrix, int64_t extent, bool along_k);
// Bytes of shared memory that the slots of both operands take at most.
int64_t matrix_shared(MatrixOp matrix, const Schedule& schedule);
// The dtype in which a contraction on lanes multiplies and adds, and holds its operands in shared memory.
DType lanes_dtype(const Graph& group, const Domain& domain);

// How a contraction is computed by a block that keeps values in registers (compiler/schedule/held/held.h).
struct GpuHeld {
  MatrixOp matrix = {};
  int rows_axis = 0;  // of the tiles of sums
  int operand = 0;    // that has the rows, and is held
  int waves = 1;      // that divide the rows
};
// The layout of such a block's sums with so many rows and columns. InvalidArgument where they are no whole fragments.
absl::StatusOr<Layout> held_layout(const GpuHeld& held, int64_t rows, int64_t columns);
// The layout of the words of its operand with rows for one step of the instruction along k.
Layout held_words(const GpuHeld& held, int64_t rows);
// Such a contraction; outputs are stored in that layout.
absl::StatusOr<Kernel> lower_gpu_held(const Graph& group, const Domain& domain, const Machine& machine,
                                      const GpuHeld& held);

absl::StatusOr<Kernel> lower_contract(const Graph& group, const Domain& domain, const Schedule& schedule,
                                      const Machine& machine);
absl::StatusOr<Kernel> lower_gpu_contract(const Graph& group, const Domain& domain, const Schedule& schedule,
                                          const Machine& machine);

}  // namespace wl

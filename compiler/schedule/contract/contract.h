// The space of schedules of a contraction, with elementwise work on its operands and its result, and the kernel of one
// schedule, for CPUs and for GPUs. K stands for the reduced loops of a contraction.
#pragma once

#include <array>
#include <optional>

#include "compiler/kernel/kernel.h"
#include "compiler/plan/domain.h"
#include "compiler/schedule/space.h"

namespace wl {

Space space_contract(const Graph& group, const Domain& domain, const Machine& machine);
// The space on GPUs: a thread block owns a tile of rows x columns of the result, and each of its threads a register
// tile of it.
Space space_gpu_contract(const Graph& group, const Domain& domain, const Machine& machine);
// Whether K can be divided into `reduction_blocks` parts of equally many whole steps, and every product counts
// (compiler/plan/masks.h). True where the schedule has one part.
bool divides_k(const Graph& group, const Domain& domain, const Schedule& schedule);
// The rows and the columns of a block's tile in a GPU contraction, and the threads of the block that compute.
int64_t rows_of_tile(const Schedule& schedule);
int64_t columns_of_tile(const Schedule& schedule);
int64_t contract_threads(const Schedule& schedule);
// The choices that say how far a tile extends along the loops of the rows, or of the columns: along the innermost loop,
// along the loop around it, and along the loop around that one.
inline constexpr std::array<Choice, 3> kRowLoops = {kTileRows, kRowRuns, kRowPlanes};
inline constexpr std::array<Choice, 3> kColumnLoops = {kTileColumns, kColumnRuns, kColumnPlanes};
// The extent of a tile under three such choices, and the number of tiles along loops of these extents, innermost first.
int64_t tile_of(const Schedule& schedule, const std::array<Choice, 3>& choices);
int64_t tiles_along(const Schedule& schedule, const std::array<int64_t, 3>& extents,
                    const std::array<Choice, 3>& choices);
// The extents of a GPU contraction: those of the last three loops of the rows and of the columns, innermost first; the
// product of all other loops that are not reduced (`outer`); and the longest loop of K (`depth`).
struct ProductLoops {
  std::array<int64_t, 3> rows = {1, 1, 1}, columns = {1, 1, 1};
  int64_t outer = 1, depth = 1;
  // The numbers of tiles under a schedule.
  int64_t row_tiles(const Schedule& schedule) const;
  int64_t column_tiles(const Schedule& schedule) const;
  // The tiles along the innermost loop of the rows; neighbouring blocks may have several of these (choice raster_rows).
  int64_t last_row_tiles(const Schedule& schedule) const;
  int64_t tiles(const Schedule& schedule) const { return row_tiles(schedule) * column_tiles(schedule) * outer; }
};
ProductLoops product_loops(const Domain& domain);
// The loop of K that a GPU kernel walks in steps; the other loops of K are around it. It is a loop of at least `vector`
// elements that operands are contiguous along or, where there is none, the longest loop. -1: K has no loops.
AtomId step_loop(const Domain& domain, int64_t vector);
// The thread blocks that run at once: min_blocks on each multiprocessor; 0 where the schedule leaves the number to the
// compiler.
int64_t blocks_at_once(const Schedule& schedule, const Machine& machine);
// With persistent blocks: the number of tiles in the last round, and the number of blocks that share each of them
// (`parts`). There are no such tiles where all blocks have equally many tiles, or where each tile has one block.
struct SharedRound {
  int64_t tiles = 0, parts = 1;
};
SharedRound shared_round(const Schedule& schedule, int64_t tiles, const Machine& machine);
// For a GPU contraction: the estimated 32-bit registers of a thread whose elements have `words` words each, and the
// bytes of shared memory of a block whose elements have `bytes` bytes each. With a matrix instruction, the size of
// elements follows from the instruction.
int64_t contract_registers(const Schedule& schedule, int64_t words);
int64_t contract_shared(const Schedule& schedule, int64_t bytes);
// The matrix instruction that a schedule chooses; nullopt: it chooses none.
std::optional<MatrixOp> matrix_of(const Schedule& schedule);
// The matrix instructions that can multiply the operands of a contraction on a machine, the fastest first. Instructions
// of which half of every fragment (a wave's part of a matrix) or more would be empty are left out.
std::vector<MatrixOp> matrices_for(const Graph& group, const Domain& domain, const Machine& machine);
// The multiply-adds of a matrix instruction for each one of f32 on lanes, that is, without matrix instructions.
double matrix_rate(MatrixOp matrix, const Target& target);
// The rows and columns of the tile of a wave, or of a group of waves that multiply together, each of whose threads has
// thread_rows x thread_columns sums.
struct WaveTile {
  int64_t rows = 1, columns = 1;
};
WaveTile wave_tile(MatrixOp matrix, int64_t thread_rows, int64_t thread_columns);
// The words of both factors that a thread of such a wave loads for one step of the instruction along k. Where the
// instruction itself reads shared memory, they are the thread's share of the words that it reads.
int64_t matrix_words(MatrixOp matrix, int64_t thread_rows, int64_t thread_columns);
// The elements from one row to the next in shared memory, for rows of `extent` elements. Padding of 16 bytes lets the
// lanes of a wave load words of a fragment from eight rows of 16 bytes without a common bank; rows across k of 4-byte
// elements have 32, since four rows of eight words are read at once. Rows of instructions that multiply in memory have
// none.
int64_t matrix_pitch(MatrixOp matrix, int64_t extent, bool along_k);
// The most bytes of shared memory that the buffers of both operands take, in all pipeline stages.
int64_t matrix_shared(MatrixOp matrix, const Schedule& schedule);
// The dtype in which a contraction on lanes (without matrix instructions) multiplies and adds, and in which it stores
// its operands in shared memory.
DType lanes_dtype(const Graph& group, const Domain& domain);

// How a contraction is computed by a block whose values are held: they stay in registers
// (compiler/schedule/held/held.h).
struct GpuHeld {
  MatrixOp matrix = {};
  int rows_axis = 0;  // axis of the tiles of sums that is the rows
  int operand = 0;    // number of the operand that has the rows and is held
  int waves = 1;      // waves that divide the rows among themselves
};
// The layout of such a block's sums of `rows` x `columns`. InvalidArgument where the waves do not divide them into
// whole fragments.
absl::StatusOr<Layout> held_layout(const GpuHeld& held, int64_t rows, int64_t columns);
// The layout of the words of the held operand, which has `rows` rows, for one step of the instruction along k.
Layout held_words(const GpuHeld& held, int64_t rows);
// The kernel of such a contraction; its outputs are stored in the layout of held_layout().
absl::StatusOr<Kernel> lower_gpu_held(const Graph& group, const Domain& domain, const Machine& machine,
                                      const GpuHeld& held);

absl::StatusOr<Kernel> lower_contract(const Graph& group, const Domain& domain, const Schedule& schedule,
                                      const Machine& machine);
absl::StatusOr<Kernel> lower_gpu_contract(const Graph& group, const Domain& domain, const Schedule& schedule,
                                          const Machine& machine);

}  // namespace wl

// Contractions with elementwise work on their operands and results, on CPUs and GPUs: their spaces of schedules, and
// the lowering of one schedule to a kernel. m, n and K are the loops of a contraction's rows, columns and reduction.
#pragma once

#include <array>
#include <optional>

#include "compiler/domain/domain.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/space.h"

namespace wl {

Space space_contract(const Graph& group, const Domain& domain, const Machine& machine);
// The search space on GPUs: a thread block computes a tile of rows x columns of the result, and each thread of the
// block computes a part of the tile in registers.
Space space_gpu_contract(const Graph& group, const Domain& domain, const Machine& machine);
// Whether several blocks can share the reduction over K as the schedule says: K divides into `reduction_blocks` parts
// with equal numbers of whole steps, and no mask leaves out products (compiler/domain/masks.h). Always true for one
// part.
bool divides_k(const Graph& group, const Domain& domain, const Schedule& schedule);
// Return, for a GPU contraction, the number of rows and the number of columns of the tile that a block computes, and
// the number of the block's threads that compute (threads of copying waves are not counted).
int64_t rows_of_tile(const Schedule& schedule);
int64_t columns_of_tile(const Schedule& schedule);
int64_t contract_threads(const Schedule& schedule);
// The choices that say how far a tile extends along the loops of the rows, or of the columns: along the innermost loop,
// along the loop around it, and along the loop around that one.
inline constexpr std::array<Choice, 3> kRowLoops = {kTileRows, kRowRuns, kRowPlanes};
inline constexpr std::array<Choice, 3> kColumnLoops = {kTileColumns, kColumnRuns, kColumnPlanes};
// tile_of: the number of rows or columns of a tile, which is determined by three choices such as kRowLoops.
// tiles_along: the number of such tiles along three loops with the given extents, innermost first.
int64_t tile_of(const Schedule& schedule, const std::array<Choice, 3>& choices);
int64_t tiles_along(const Schedule& schedule, const std::array<int64_t, 3>& extents,
                    const std::array<Choice, 3>& choices);
// The extents of a GPU contraction: those of the last three loops of the rows and of the columns, innermost first; the
// product of all other loops that are not reduced (`outer`); and that of the longest loop of K (`depth`).
struct ProductLoops {
  std::array<int64_t, 3> rows = {1, 1, 1}, columns = {1, 1, 1};
  int64_t outer = 1, depth = 1;
  // Return the number of tiles along the rows, or along the columns, under a schedule.
  int64_t row_tiles(const Schedule& schedule) const;
  int64_t column_tiles(const Schedule& schedule) const;
  // The number of tiles along the innermost loop of the rows, which raster_rows must divide; and the number of tiles of
  // columns that blocks walk before the next raster_rows tiles of rows. Loops of which a tile has one iteration run
  // around all of these.
  int64_t last_row_tiles(const Schedule& schedule) const;
  int64_t raster_columns(const Schedule& schedule) const;
  int64_t tiles(const Schedule& schedule) const { return row_tiles(schedule) * column_tiles(schedule) * outer; }
};
ProductLoops product_loops(const Domain& domain);
// Returns the loop of K that a GPU kernel divides into steps; the other loops of K run around it. It is the loop of at
// least `vector` elements along which the most reads of operands are contiguous or, if there is none, the longest loop.
// Returns -1 if K has no loops.
AtomId step_loop(const Domain& domain, int64_t vector);
// Returns how many thread blocks run at once on the GPU: min_blocks on each multiprocessor. Returns 0 if the schedule
// leaves it to the compiler how many fit.
int64_t blocks_at_once(const Schedule& schedule, const Machine& machine);
// The last round of persistent blocks (which compute tile after tile), if it has fewer tiles than there are blocks: the
// number of its tiles, each of which `parts` blocks share. `tiles` is 0 if blocks are not persistent, if all blocks
// have equally many tiles, or if one block computes each tile.
struct SharedRound {
  int64_t tiles = 0, parts = 1;
};
SharedRound shared_round(const Schedule& schedule, int64_t tiles, const Machine& machine);
// Estimates for a GPU contraction: the 32-bit registers of a thread whose elements take `words` registers each, and the
// bytes of shared memory of a block whose elements take `bytes` bytes each. A schedule with a matrix instruction
// ignores both arguments: the instruction determines the size of elements.
int64_t contract_registers(const Schedule& schedule, int64_t words);
int64_t contract_shared(const Schedule& schedule, int64_t bytes);
// The matrix instruction that a schedule chooses; nullopt if it chooses none.
std::optional<MatrixOp> matrix_of(const Schedule& schedule);
// The matrix instructions that can multiply the operands of a contraction on a machine, the fastest first. An
// instruction is left out if the contraction's rows, columns or depth fill at most half of its fragment (a wave's part
// of a matrix). Operands of f32 have none unless the graph allows TF32.
std::vector<MatrixOp> matrices_for(const Graph& group, const Domain& domain, const Machine& machine);
// The elements of a vector of 16 bytes, the widest in which a factor of a matrix instruction is brought to shared
// memory.
int64_t widest_vector(MatrixOp matrix);
// The rate of multiply-adds of a matrix instruction, as a multiple of the rate at which lanes do f32 multiply-adds
// without matrix instructions.
double matrix_rate(MatrixOp matrix, const Target& target);
// The size of the tile that a wave, or a group of waves that multiply together, computes if each thread holds
// thread_rows x thread_columns sums.
struct WaveTile {
  int64_t rows = 1, columns = 1;
};
WaveTile wave_tile(MatrixOp matrix, int64_t thread_rows, int64_t thread_columns);
// The number of 32-bit words of both factors that a thread loads for one step of a matrix instruction along k, if it
// holds thread_rows x thread_columns sums. If the instruction reads shared memory itself, it is the thread's share of
// the words that are read.
int64_t matrix_words(MatrixOp matrix, int64_t thread_rows, int64_t thread_columns);
// The distance in elements between rows of `extent` elements in shared memory; `along_k` says whether rows run along k.
// Rows are padded so that the lanes of a wave load a fragment's words from different banks. 16 bytes of padding are
// enough for eight rows of 16 bytes. Rows across k with 4-byte elements are padded by 32 bytes, because four rows of
// eight words are read at once. Rows are not padded for instructions that read shared memory themselves.
int64_t matrix_pitch(MatrixOp matrix, int64_t extent, bool along_k);
// An upper bound of the bytes of shared memory that the buffers of both operands take, in all pipeline stages.
int64_t matrix_shared(MatrixOp matrix, const Schedule& schedule);
// The dtype in which a contraction on lanes (without matrix instructions) multiplies and adds, and in which it stores
// its operands in shared memory.
DType lanes_dtype(const Graph& group, const Domain& domain);

// How a contraction is computed as a stage of a stitched block whose values are resident: they stay in registers from
// one stage to the next (compiler/schedule/resident/resident.h).
struct GpuResident {
  MatrixOp matrix = {};
  int rows_axis = 0;  // which axis of a tile of sums the rows run along: 0 or 1
  int operand = 0;    // number of the resident operand: the one that has the rows
  int waves = 1;      // number of waves that divide the rows among themselves
};
// Returns the layout of a block's `rows` x `columns` sums; InvalidArgument if the waves cannot divide them into whole
// fragments.
absl::StatusOr<Layout> resident_tile_layout(const GpuResident& resident, int64_t rows, int64_t columns);
// The layout of the resident operand's words, in `rows` rows, for one step of the matrix instruction along k.
Layout resident_words(const GpuResident& resident, int64_t rows);
// Lowers a contraction whose values are resident. The kernel stores its outputs from tiles in the layout of
// resident_tile_layout().
absl::StatusOr<Kernel> lower_gpu_resident(const Graph& group, const Domain& domain, const Machine& machine,
                                          const GpuResident& resident);

// Lower a contraction on a CPU and on a GPU. InvalidArgument where the contraction or the machine does not allow the
// schedule; Unimplemented for a contraction without results.
absl::StatusOr<Kernel> lower_contract(const Graph& group, const Domain& domain, const Schedule& schedule,
                                      const Machine& machine);
absl::StatusOr<Kernel> lower_gpu_contract(const Graph& group, const Domain& domain, const Schedule& schedule,
                                          const Machine& machine);

}  // namespace wl

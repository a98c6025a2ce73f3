// Facts about a group from which the space of contractions on GPUs follows, and which of its schedules are legal.
// Internal to contract/.
#pragma once

#include <map>
#include <vector>

#include "compiler/schedule/contract/contract.h"

namespace wl {

// The most elements of K in a step without matrix instructions, and the most bytes of a vector with matrix
// instructions.
inline constexpr int64_t kMostLanesStep = 32, kMatrixVector = 16;
// The fewest rows or columns of a tile, the rows and the columns of a large tile, and the most rows or columns of a
// tile.
inline constexpr int64_t kLeastTile = 8, kLargeTile = 128, kMostTile = 256;

// A schedule whose tile has kLargeTile rows and columns.
Schedule large_tile();

struct GpuProduct : ProductLoops {
  int64_t bytes = 4;  // bytes of an element in shared memory without a matrix instruction
  // Whether some operand can be copied asynchronously: without a matrix instruction, and with one.
  bool copies = false, copies_matrix = false;
  bool copies_both = false;  // whether both operands can be copied asynchronously for a matrix instruction
  bool boxes = false;        // whether copies_both holds and tiles of an operand can be copied as boxes (tma)
  bool few_tiles = false;    // whether there are fewer large tiles than the target has multiprocessors
  int64_t all_depth = 1;     // number of elements of K in all its loops
  // For each value of kVector: the extent of the loop that is divided into steps.
  std::map<int64_t, int64_t> step_loops;
};

GpuProduct gpu_product_of(const Graph& group, const Domain& domain, const Machine& machine,
                          const std::vector<MatrixOp>& matrices);

// Whether an operand is one plain matrix whose rows are a multiple of 16 bytes apart, so that its tiles may be boxes:
// rectangles that one instruction copies (TMA, compiler/kernel/shared_factors.h). `side`: the operand's number.
bool is_matrix_of(const Graph& group, const Domain& domain, int side);

// Whether blocks may share K at all: K has a loop, and no mask leaves out products, so that equal numbers of steps are
// equal work.
bool may_share_k(const Graph& group, const Domain& domain);
// Whether a schedule is legal, as far as can be told without lowering it: the machine has what the schedule needs, and
// the combination of its choices makes sense. `unroll`: the value that k_unroll must have where it has no effect.
bool is_legal_on_gpu(const Schedule& schedule, const Machine& machine, const GpuProduct& product, int64_t unroll);

}  // namespace wl

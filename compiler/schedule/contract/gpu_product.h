// Facts about a group that the space of contractions on GPUs depends on, and which of its schedules are legal. Internal
// to contract/.
#pragma once

#include <map>
#include <vector>

#include "compiler/schedule/contract/contract.h"

namespace wl {

// The most elements of K in a step without matrix instructions, and the most bytes of a vector with them.
inline constexpr int64_t kMostLanesStep = 32, kMatrixVector = 16;
// Rows or columns of a tile: the least, those of a large tile, and the most.
inline constexpr int64_t kLeastTile = 8, kLargeTile = 128, kMostTile = 256;

// A schedule whose tile has kLargeTile rows and columns.
Schedule large_tile();

struct GpuProduct : ProductLoops {
  int64_t bytes = 4;                           // of an element, without a matrix instruction
  bool copies = false, copies_matrix = false;  // an operand has asynchronous copies: on lanes, for a matrix instruction
  bool copies_both = false;                    // both operands have such copies, for a matrix instruction
  bool boxes = false;                          // copies_both, and an operand's tiles are boxes of a matrix
  bool few_tiles = false;                      // large tiles do not fill the machine
  int64_t all_depth = 1;                       // elements of all loops of K
  std::map<int64_t, int64_t> step_loops;       // by vector length, the extent of the loop that is walked in steps
};

GpuProduct gpu_product_of(const Graph& group, const Domain& domain, const Machine& machine,
                          const std::vector<MatrixOp>& matrices);

// Whether an operand is one matrix whose rows are a multiple of 16 bytes apart, so that its tiles may be boxes of it
// (compiler/kernel/near.h).
bool is_matrix_of(const Graph& group, const Domain& domain, int side);

// Whether K has a loop and every product counts, so that equal numbers of steps are equal parts of the work.
bool may_share_k(const Graph& group, const Domain& domain);
// Whether a schedule is legal, as far as can be seen without lowering it: the machine has what the schedule takes, and
// its choices mean something together. `unroll` is the value that k_unroll must have where it means nothing.
bool is_legal_on_gpu(const Schedule& schedule, const Machine& machine, const GpuProduct& product, int64_t unroll);

}  // namespace wl

// What the space of contractions on GPUs knows of a group, and which of its schedules it has. Internal to contract/.
#pragma once

#include <map>
#include <vector>

#include "compiler/schedule/contract/contract.h"

namespace wl {

// Elements of K in shared memory without matrix instructions, at most; and of a vector with them, in bytes.
inline constexpr int64_t kMostLanesStep = 32, kMatrixVector = 16;
// Rows or columns of a tile.
inline constexpr int64_t kLeastTile = 8, kLargeTile = 128, kMostTile = 256;

// A tile of so many rows and columns.
Schedule large_tile();

struct GpuProduct : ProductLoops {
  int64_t bytes = 4;                           // of an element on lanes
  bool copies = false, copies_matrix = false;  // an operand can be copied asynchronously
  bool copies_both = false;                    // for a matrix instruction
  bool boxes = false;                          // and an operand's tiles are boxes of a matrix
  bool few_tiles = false;                      // large ones do not fill the machine
  int64_t all_depth = 1;                       // all loops of K
  std::map<int64_t, int64_t> step_loops;       // by vector, the extent of the loop that is gone along in steps
};

GpuProduct gpu_product_of(const Graph& group, const Domain& domain, const Machine& machine,
                          const std::vector<MatrixOp>& matrices);

// Whether an operand is one matrix whose rows are whole pieces of 16 bytes apart, so that its tiles may be boxes of it
// (compiler/kernel/near.h).
bool is_matrix_of(const Graph& group, const Domain& domain, int side);

// Whether every product counts, so that equal numbers of steps are equal parts of the work.
bool may_share_k(const Graph& group, const Domain& domain);
// What can be seen without lowering: what the machine has, and which choices mean something together. `unroll` is the
// value of k_unroll where it means nothing.
bool is_legal_on_gpu(const Schedule& schedule, const Machine& machine, const GpuProduct& product, int64_t unroll);

}  // namespace wl

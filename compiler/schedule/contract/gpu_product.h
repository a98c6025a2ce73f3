// Facts about a group from which the space of contractions on GPUs follows, and which of its schedules are legal.
// Internal to contract/.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "compiler/schedule/contract/contract.h"

namespace wl {

// The most elements of K in a step without matrix instructions, and the most bytes of a vector with matrix
// instructions.
inline constexpr int64_t kMostLanesStep = 32, kMatrixVector = 16;
inline constexpr size_t kVectors = 5;  // values of kVector: powers of two up to kMatrixVector
// The fewest rows or columns of a tile, the rows and the columns of a large tile, and the most rows or columns of a
// tile.
inline constexpr int64_t kLeastTile = 8, kLargeTile = 128, kMostTile = 256;

// A schedule whose tile has kLargeTile rows and columns.
Schedule large_tile();

// One operand of a contraction, for steps along the loop `k` of K.
struct GpuSide {
  int position = 0;          // the operand's number
  DType dtype = DType::f32;  // dtype of the operand's elements in shared memory
  AtomId atom = -1;          // the last loop of the rows or columns; -1: the operand has a single row or column
  int64_t extent = 1;        // the extent of `atom`
  bool along_k = false;      // whether neighbouring lanes read along k, not along `atom`
  bool aligned = false;      // whether vectors along the axis that lanes read along are aligned
  bool k_inner = false;      // whether k is innermost in shared memory, not rows or columns
  // Whether asynchronous copies can bring the operand to shared memory at all, and in whole vectors: the elements of
  // each vector are neighbours in memory, and either all inside the operand or all outside.
  bool copied = false, in_vectors = false;
  AtomId k = -1;      // the loop of K that is divided into steps
  int64_t depth = 1;  // the extent of that loop
  int64_t vector = 1;
  // Return whether the copies are in whole vectors, and whether there are such copies, if a tile has `width`
  // neighbouring rows or columns.
  bool copies_vectors(int64_t width) const;
  bool copies(int64_t width) const;
};
// Completes `side`, of which `position`, `dtype` and `atom` are set, for loads of `vector` elements.
void analyse_side(const Graph& group, const Domain& domain, AtomId k, int64_t vector, std::optional<MatrixOp> matrix,
                  GpuSide& side);

struct GpuProduct : ProductLoops {
  int64_t bytes = 4;  // bytes of an element in shared memory without a matrix instruction
  // Whether some operand can be copied asynchronously: without a matrix instruction, and with one.
  bool copies = false, copies_matrix = false;
  // The operands with the rows and with the columns, for a value of kMatrix and the logarithms of values of kVector.
  struct Sides {
    int64_t matrix = 0;
    std::array<std::array<GpuSide, 2>, kVectors> of;
  };
  std::vector<Sides> sides;
  const std::array<GpuSide, 2>& sides_of(int64_t matrix, int64_t vector) const;
  bool counts_all = true;    // whether no mask leaves out products
  bool copies_both = false;  // whether both operands can be copied asynchronously for a matrix instruction
  bool boxes = false;        // whether copies_both holds and tiles of an operand can be copied as boxes (tma)
  bool few_tiles = false;    // whether there are fewer large tiles than the target has multiprocessors
  int64_t all_depth = 1;     // number of elements of K in all its loops
  // Returns the extent of the loop that is divided into steps under a schedule; 1 if K has no loops.
  int64_t step_loop(const Schedule& schedule) const;
  // Returns the number of whole steps along K of a block's part of a tile.
  int64_t steps(const Schedule& schedule) const;
  // Return whether asynchronous copies bring the rows, and the columns, to shared memory, if a schedule's vectors had
  // `vector` elements.
  std::array<bool, 2> copies_sides(const Schedule& schedule, int64_t vector) const;
  // Returns whether copying waves can copy both operands. Both must be copied asynchronously, K must consist of several
  // whole steps that are all needed, and blocks may share K only in a last round.
  bool copies_alongside(const Schedule& schedule) const;
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
// the combination of its choices makes sense.
bool is_legal_on_gpu(const Schedule& schedule, const Machine& machine, const GpuProduct& product);

}  // namespace wl

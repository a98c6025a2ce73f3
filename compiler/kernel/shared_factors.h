// Shared factors: factors of matrix instructions that stay in shared memory (multiplies_in_memory; NVIDIA's wgmma).
// Their tiles are defined by `words` or `words_across`, which load nothing here: they say where the factor lies, in one
// of two orders of elements that the hardware reads without bank conflicts. PTX ISA, "Matrix-descriptor" and "Canonical
// layouts", swizzling mode of 128 bytes:
//
//   along k   words: a row or column of the factor is one row of 128 bytes, along k
//   across k  words_across: a row of 128 bytes is 64 neighbouring rows or columns of the factor at one k; a factor with
//             more of them is cut into panels, each with 64 of them for 64 k. Only for elements of 16 bits.
//
// Every eight rows of 128 bytes begin at a multiple of 1024 bytes. Within them, pieces of 16 bytes are swapped: the
// number of a piece is XORed with the number of its row. This is the buffer's swizzle.
//
// Where the left factor is in registers (holds_left), its tile is an ordinary one, and only the right factor is in
// shared memory.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "compiler/kernel/kernel.h"

namespace wl {

// One group of waves computes blocks of this many rows of sums. A panel has this many rows or columns of a factor.
inline constexpr int64_t kSharedFactorRows = 64;
inline constexpr int64_t kSharedFactorColumns = 256;  // the most columns of sums that one instruction computes
// The number of elements in a row of 128 bytes, which is also the step along k.
int64_t shared_row_elements(DType dtype);

struct SharedFactor {
  MatrixOp matrix = {};
  DType dtype = DType::f32;  // dtype of the factor's elements
};
// For each tile of a kernel that is a shared factor: the facts about that factor.
using SharedFactors = std::map<TileId, SharedFactor>;
SharedFactors shared_factors(const Kernel& kernel);

// The swizzle of a buffer that holds a shared factor. `along`: how many rows or columns of the factor the buffer holds;
// this matters only for factors stored across k.
Swizzle shared_factor_swizzle(DType dtype, bool along_k, int64_t along);

// The distance in elements from the start of a shared factor to its row or column `at` (a multiple of 64) at `k` (a
// multiple of 32 bytes).
int64_t shared_factor_place(DType dtype, bool along_k, int64_t at, int64_t k);

// A box: a part of a matrix in global memory that one copy moves to the buffer of a shared factor, as NVIDIA's tensor
// memory accelerator does (PTX ISA, "Tensors", swizzle mode of 128 bytes). The elements of a row are neighbours; rows
// are `pitch` elements apart. Elements outside the matrix are zero.
struct MatrixBox {
  int64_t rows = 0, columns = 0;  // extents of one box in elements; a row of it has 128 bytes
  int64_t boxes = 1;              // number of boxes, side by side in the matrix and one after another in shared memory
  Affine row, column;  // place in the matrix of the box's first element; the matrix begins where its buffer begins
  // The matrix's extents, and the distance between its rows, in elements.
  int64_t matrix_rows = 0, matrix_columns = 0, pitch = 0;
};
// The box or boxes that a copy moves; nullopt if the copy cannot be made of boxes.
std::optional<MatrixBox> box_of(const Kernel& kernel, const Instr& copy);

// Returns what is wrong with an instruction that defines or reads a shared factor: the factor's place in memory, or
// that the reader is no matrix product; "" if nothing is.
std::string shared_factor_problem(const Kernel& kernel, const SharedFactors& factors, const Instr& instr);

// Returns an internal error if anything but factors, products and copies stands between shared factors and the wait for
// their product, or if there is no such wait.
absl::Status check_shared_factor_order(const Kernel& kernel);

}  // namespace wl

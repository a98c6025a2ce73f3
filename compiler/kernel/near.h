// Factors of matrix instructions that stay in shared memory (multiplies_in_memory; NVIDIA's wgmma). Their tiles are
// defined by `words` or `words_across`, which load nothing: they say where the factor lies, in one of two orders of
// elements that the hardware reads without bank conflicts. PTX ISA, "Matrix-descriptor" and "Canonical layouts",
// swizzling mode of 128 bytes:
//
//   along k   words: a row or column of the factor is one row of 128 bytes, along k
//   across k  words_across: a row of 128 bytes is 64 neighbouring rows or columns of the factor at one k; where there
//             are more, they are panels of 64 k each. Of elements of 16 bits only.
//
// Of every eight rows of 128 bytes, which begin at a multiple of 1024 bytes, pieces of 16 bytes are swapped by the
// number of the row: the buffer's swizzle.
//
// Where the left factor is in registers (holds_left), it is a tile as others are, and the right one alone is such a
// factor.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "compiler/kernel/kernel.h"

namespace wl {

inline constexpr int64_t kNearRows = 64;      // of the sums of a group of waves, and rows or columns of a panel
inline constexpr int64_t kNearColumns = 256;  // the most that one instruction multiplies
// Elements of a row of 128 bytes, so of K that one step has.
int64_t near_row(DType dtype);

struct NearFactor {
  MatrixOp matrix = {};
  DType dtype = DType::f32;  // of its elements
};
// The tiles that are such factors.
using NearFactors = std::map<TileId, NearFactor>;
NearFactors near_factors(const Kernel& kernel);

// The order of a buffer of such a factor, of `along` rows or columns.
Swizzle near_swizzle(DType dtype, bool along_k, int64_t along);

// The elements from the first of a factor to those of a row or column, a multiple of 64, and those to a k, a multiple
// of 32 bytes.
int64_t near_place(DType dtype, bool along_k, int64_t at, int64_t k);

// A copy of a tile to the buffer of such a factor, where the tile is a box of a matrix, as NVIDIA's tensor memory
// accelerator moves it (PTX ISA, "Tensors", swizzle mode of 128 bytes): elements of a row are neighbours, and rows
// `pitch` elements apart. What is outside the matrix is zero.
struct MatrixBox {
  int64_t rows = 0, columns = 0;  // of one box; a row of it is 128 bytes
  int64_t boxes = 1;              // side by side in the matrix, one behind the other in shared memory
  Affine row, column;             // of the first element, in the matrix, which begins where the global buffer does
  int64_t matrix_rows = 0, matrix_columns = 0, pitch = 0;  // in elements
};
// nullopt: the copy is none.
std::optional<MatrixBox> box_of(const Kernel& kernel, const Instr& copy);

// What is wrong with an instruction that defines or reads a factor: where it lies, or that it is read by something else
// than a product; "" where nothing is.
std::string near_problem(const Kernel& kernel, const NearFactors& factors, const Instr& instr);

// Internal error where something comes between such factors and the wait for their product, or where there is no wait.
absl::Status check_near_order(const Kernel& kernel);

}  // namespace wl

// The table of matrix instructions; matrix.def explains its columns. For an instruction NAME, the preludes of the GPU
// families that have it define wl_mma_NAME(c..., a..., b...). Its arguments are the registers of the sums, which it
// updates, followed by those of both factors. A register of sums is a vector of 2^v elements if the layout has v vector
// bits. The CPU's prelude defines wl_mma_NAME<c, a, b>(tiles), with the numbers of the tile registers of the sums and
// of both factors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/base/dtype.h"

namespace wl {

enum class MatrixOp : uint8_t {
#define WL_MATRIX(id, ...) id,
#include "compiler/target/matrix.def"
};

struct MatrixInfo {
  MatrixOp op;
  std::string_view name;
  int64_t m, n, k;           // the extents of the matrices, in elements: m x k times k x n
  DType left, right, sum;    // dtypes of the factors, and of the sums
  uint32_t feature;          // the TargetFeature of targets that have the instruction
  std::string_view a, b, c;  // texts of the layouts of the left factor, the right factor and the sums
};

std::span<const MatrixInfo> matrices();  // rows of the table, in the order of MatrixOp
const MatrixInfo& info(MatrixOp op);
std::optional<MatrixOp> matrix_named(std::string_view name);
// Returns the instructions that multiply elements of these dtypes on a target with these TargetFeatures, those with the
// most multiply-adds first. With `resident`, these are instructions whose left factor may be in the registers in which
// an earlier product left its sums; otherwise, instructions that do not need it in registers.
std::vector<MatrixOp> matrices_for(DType left, DType right, uint32_t features, bool resident = false);
// Whether the instruction reads factors from shared memory and runs asynchronously, so that its sums are valid only
// after a wait.
bool multiplies_in_memory(MatrixOp op);
// Whether the instruction reads its right factor from shared memory, but its left factor from registers.
bool holds_left(MatrixOp op);

}  // namespace wl

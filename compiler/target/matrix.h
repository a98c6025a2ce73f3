// The table of matrix instructions: matrix.def explains its columns. A prelude of a family that has the instruction
// NAME spells it wl_mma_NAME(c..., a..., b...): the registers of the sums, which are vectors of as many elements as the
// layout has v bits and are updated, then the registers of both factors. Without lanes it is wl_mma_NAME<c, a,
// b>(tiles): the numbers of the tile registers of the sums and of both factors.
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
  int64_t m, n, k;           // elements
  DType left, right, sum;    // of the factors, and of the sums
  uint32_t feature;          // TargetFeature
  std::string_view a, b, c;  // layouts, as text
};

std::span<const MatrixInfo> matrices();  // in the order of MatrixOp
const MatrixInfo& info(MatrixOp op);
std::optional<MatrixOp> matrix_named(std::string_view name);
// The rows that multiply elements of these dtypes on a target with these features, the fastest first. `held`: those
// whose left factor may be in registers that sums were in, and no others.
std::vector<MatrixOp> matrices_for(DType left, DType right, uint32_t features, bool held = false);
// Whether factors stay in shared memory, and the product is there when it has been waited for.
bool multiplies_in_memory(MatrixOp op);
// Whether of such factors it is the right one alone; the left one is in registers.
bool holds_left(MatrixOp op);

}  // namespace wl

// A matrix product in the form in which the GPU libraries cuBLASLt and hipBLASLt take it:
//
//   d = function(alpha * op(a) op(b) + c + bias)
//
// It is computed once for each member of a batch. op(x) is x or its transpose; c, bias and the function may be absent.
// The text of a MatmulCall takes the place of a compiled object for a kernel that calls such a library: nothing is
// compiled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/base/dtype.h"

namespace wl {

// A matrix that is stored column by column (column-major).
struct MatmulMatrix {
  int argument = 0;    // number of the kernel's argument that contains the matrix
  int64_t offset = 0;  // number of elements of the argument that precede the matrix
  int64_t rows = 1, columns = 1;
  int64_t leading = 1;  // distance of neighbouring columns of the matrix in elements, at least `rows`
  int64_t step = 0;     // distance of neighbouring matrices of the batch in elements
  bool operator==(const MatmulMatrix&) const = default;
};

enum class MatmulFunction : uint8_t { kNone, kRelu, kGeluTanh };

struct MatmulCall {
  DType factors = DType::f32, result = DType::f32;  // the dtype of a and b, and that of c, bias and d; sums are f32
  bool tf32 = false;                                // whether a and b, if they are f32, may be rounded to tf32
  MatmulMatrix a, b, d;
  bool a_transposed = false, b_transposed = false;
  std::optional<MatmulMatrix> c;     // a matrix of the shape of d that is added to the product
  std::optional<MatmulMatrix> bias;  // a single column that is added to each column of d
  MatmulFunction function = MatmulFunction::kNone;
  double alpha = 1;
  int64_t batch = 1;
  int algorithm = 0;  // which of the algorithms that the library proposes for the product: its index in that list
  bool operator==(const MatmulCall&) const = default;
};

// The largest number of algorithms that are tried for a product, and the bytes of workspace that an algorithm may use
// besides the arguments. NVIDIA recommends a workspace of this size for its largest GPUs.
inline constexpr int kMostAlgorithms = 8;
inline constexpr int64_t kMatmulWorkBytes = int64_t{32} << 20;

// Returns the call as one line of JSON.
std::string matmul_text(const MatmulCall& call);
// Parses the output of matmul_text(). An InvalidArgument error says what is wrong with the text, or which matrices do
// not fit each other. It is not checked whether the matrices lie within the kernel's arguments, whose number and
// lengths are not known here.
absl::StatusOr<MatmulCall> parse_matmul(std::string_view text);

}  // namespace wl

// A matrix product as libraries of GPUs take it (cuBLASLt, hipBLASLt):
//
//   d = function(alpha * op(a) op(b) + c + bias)
//
// once for each member of a batch. op() transposes or does not; c, bias and the function may be absent. The text of one
// is the object of a kernel that calls such a library: nothing is compiled.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/base/dtype.h"

namespace wl {

// A matrix in memory, column by column.
struct MatmulMatrix {
  int argument = 0;    // number of the kernel's argument that it is in
  int64_t offset = 0;  // elements of the argument before its first
  int64_t rows = 1, columns = 1;
  int64_t leading = 1;  // elements from a column to the next, at least `rows`
  int64_t step = 0;     // elements from a member of the batch to the next
  bool operator==(const MatmulMatrix&) const = default;
};

enum class MatmulFunction : uint8_t { kNone, kRelu, kGeluTanh };

struct MatmulCall {
  DType factors = DType::f32, result = DType::f32;  // of a and b; of c, bias and d. Sums are of f32.
  bool tf32 = false;                                // factors of f32 may be rounded to tf32
  MatmulMatrix a, b, d;
  bool a_transposed = false, b_transposed = false;
  std::optional<MatmulMatrix> c;     // of the shape of d
  std::optional<MatmulMatrix> bias;  // one column, which is added to each of d
  MatmulFunction function = MatmulFunction::kNone;
  double alpha = 1;
  int64_t batch = 1;
  int algorithm = 0;  // which of those that the library proposes for the product, from 0
  bool operator==(const MatmulCall&) const = default;
};

// How many algorithms are tried at most, and the memory that they may use beside the arguments, in bytes: what NVIDIA
// recommends for its largest GPUs.
inline constexpr int kMostAlgorithms = 8;
inline constexpr int64_t kMatmulWorkBytes = int64_t{32} << 20;

// One line of JSON.
std::string matmul_text(const MatmulCall& call);
// InvalidArgument: what is wrong with the text, or which matrices do not fit each other. How many arguments the kernel
// has, and how long they are, is not known here.
absl::StatusOr<MatmulCall> parse_matmul(std::string_view text);

}  // namespace wl

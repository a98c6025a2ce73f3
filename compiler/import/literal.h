// A Literal is a tensor whose values are known while importing. The values are kept as doubles. If all are equal (a
// splat), only one is kept, so that large splats take little memory.
#pragma once

#include <optional>
#include <vector>

#include "compiler/base/status.h"
#include "compiler/ir/graph.h"

namespace onnx {
class TensorProto;
}

namespace wl::onnx_import {

inline constexpr int64_t kLiteralBytes = 64 * 1024;  // the most bytes of an initializer whose values are kept
// The most elements of any tensor, which keeps products of extents within an int64.
inline constexpr int64_t kMaxElements = int64_t{1} << 40;

struct Literal {
  DType dtype = DType::f32;
  Shape shape;
  std::vector<double> values;  // the only value of a splat; otherwise all values in row-major order
  // Empty if doubles represent all elements exactly. Otherwise the elements are 64-bit integers, and each is the sum
  // of its entry in `values`, a multiple of 2048, and of its entry here, the lowest 11 bits. Rows of the import table
  // never see such a literal; they see the sum of two tensors.
  std::vector<double> low = {};

  bool is_splat() const { return values.size() == 1; }
  double at(int64_t index) const { return values[is_splat() ? 0 : static_cast<size_t>(index)]; }
  int64_t int_at(int64_t index) const;  // returns an element as an integer, saturated; NaN becomes 0
};

// Makes a literal of `values`, a splat if they are all equal. An empty tensor is a splat of 0.
Literal make_literal(DType dtype, Shape shape, std::vector<double> values);
// Makes a literal of 64-bit integers (i64 or u64) from their bits.
Literal literal_of_bits(DType dtype, const Shape& shape, const std::vector<uint64_t>& all);
Literal int_literal(Shape shape, const std::vector<int64_t>& values);  // makes a literal of dtype i64

// Returns the dtype of an ONNX element type, a number of TensorProto.DataType. Fails with Unimplemented if Warploom has
// no such dtype. `what` names the tensor in the message, for example "input x".
absl::StatusOr<DType> dtype_of(int onnx_type, std::string_view what);

// How a tensor's elements are stored. ONNX stores two four-bit integers in a byte, the first in the low half. In the
// graph such a tensor is an input of bytes, which is unpacked to integers of eight bits.
struct ElementType {
  DType dtype = DType::f32;  // dtype of the elements as ops read them
  int per_byte = 1;          // number of elements in a stored byte: 2 for integers of four bits, else 1

  DType stored_dtype() const { return per_byte > 1 ? DType::u8 : dtype; }
  // Returns the shape that a tensor has in stored elements. Where a byte stores two elements, an even last extent is
  // halved; a tensor whose last extent is odd becomes one-dimensional.
  Shape stored_shape(const Shape& shape) const;
};
absl::StatusOr<ElementType> element_type_of(int onnx_type, std::string_view what);
// Returns the values of a literal in the form in which elements of this type are stored: four-bit integers are packed
// into bytes.
std::vector<double> stored_values(const ElementType& type, const Literal& literal);

// The dtype and shape of a tensor's stored elements. stored_type_of() fails as element_type_of() and check_shape() do.
struct StoredType {
  DType dtype;
  Shape shape;
};
absl::StatusOr<StoredType> stored_type_of(const onnx::TensorProto& tensor, std::string_view what);

// Fails with InvalidArgument unless every extent is at least 0 and there are at most kMaxElements elements, where an
// extent of 0 counts as 1.
absl::Status check_shape(const Shape& shape, std::string_view what);

// An initializer or constant. A tensor of more than kLiteralBytes that is not a splat has no `literal`; its `fill` says
// how values for it are generated.
struct DecodedTensor {
  ElementType type;
  Shape shape;
  std::optional<Literal> literal;
  Fill fill;
};
absl::StatusOr<DecodedTensor> decode_tensor(const onnx::TensorProto& tensor, std::string_view what);

}  // namespace wl::onnx_import

// Literal is a tensor whose values are known while importing. Values are doubles. If all are equal (a splat), only one
// is kept, so that a splat of any size takes little memory.
#pragma once

#include <optional>
#include <vector>

#include "compiler/base/status.h"
#include "compiler/ir/graph.h"

namespace onnx {
class TensorProto;
}

namespace wl::onnx_import {

inline constexpr int64_t kLiteralBytes = 64 * 1024;        // a larger initializer becomes a weight without values
inline constexpr int64_t kMaxElements = int64_t{1} << 40;  // most elements of any tensor, so that products of extents
                                                           // stay within int64

struct Literal {
  DType dtype = DType::f32;
  Shape shape;
  std::vector<double> values;  // one element if it is a splat; else all, in row-major order
  // Empty where doubles hold all values. For 64-bit integers that doubles do not hold, `values` are multiples of 2048,
  // and `low` has the numbers of 11 bits to add to them. Rows do not see such a literal; it becomes a sum of two
  // tensors.
  std::vector<double> low = {};

  bool is_splat() const { return values.size() == 1; }
  double at(int64_t index) const { return values[is_splat() ? 0 : static_cast<size_t>(index)]; }
  int64_t int_at(int64_t index) const;  // returns the value as an integer, saturated; NaN becomes 0
};

// Makes a literal of `values`, a splat if they are all equal. An empty tensor is a splat of 0.
Literal make_literal(DType dtype, Shape shape, std::vector<double> values);
// Makes a literal of 64-bit integers (i64 or u64) from their bits.
Literal literal_of_bits(DType dtype, const Shape& shape, const std::vector<uint64_t>& all);
Literal int_literal(Shape shape, const std::vector<int64_t>& values);  // makes a literal of dtype i64

// Returns the dtype of an ONNX element type, a number of TensorProto.DataType. Fails with Unimplemented if Warploom has
// no such dtype. `what` names the tensor in the message, for example "input x".
absl::StatusOr<DType> dtype_of(int onnx_type, std::string_view what);

// How a tensor's elements are stored. ONNX stores integers of four bits two to a byte, the first in the low half. In
// the graph such a tensor is an input of bytes, from which integers of eight bits are made.
struct ElementType {
  DType dtype = DType::f32;  // dtype of the elements that ops read
  int per_byte = 1;          // 2 for integers of four bits, else 1

  DType stored_dtype() const { return per_byte > 1 ? DType::u8 : dtype; }
  // The shape of a tensor in stored elements: the last extent is halved if it is even, else the tensor is flattened.
  Shape stored_shape(const Shape& shape) const;
};
absl::StatusOr<ElementType> element_type_of(int onnx_type, std::string_view what);
// Returns the values of a literal as elements of this type are stored: for integers of four bits, as bytes.
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

// An initializer or constant. A tensor over kLiteralBytes that is not a splat has no `literal`, only `fill`, the
// parameters of a generator of values.
struct DecodedTensor {
  ElementType type;
  Shape shape;
  std::optional<Literal> literal;
  Fill fill;
};
absl::StatusOr<DecodedTensor> decode_tensor(const onnx::TensorProto& tensor, std::string_view what);

}  // namespace wl::onnx_import

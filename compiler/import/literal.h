// Literal is a tensor whose values are known while importing. Values are doubles; if all are equal only one is kept, so
// that a splat of any size takes little memory.
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
inline constexpr int64_t kMaxElements = int64_t{1} << 40;  // limit of any tensor, so that products of extents stay
                                                           // within int64

struct Literal {
  DType dtype = DType::f32;
  Shape shape;
  std::vector<double> values;  // one element if it is a splat; else all, in row-major order
  // Integers of 64 bits that doubles do not hold: `values` are then multiples of 2048, to which these are added,
  // numbers of 11 bits. Rows do not see such a literal; it becomes a sum. Empty where doubles hold all values.
  std::vector<double> low = {};

  bool is_splat() const { return values.size() == 1; }
  double at(int64_t index) const { return values[is_splat() ? 0 : static_cast<size_t>(index)]; }
  int64_t int_at(int64_t index) const;  // returns the value as an integer, saturated; NaN becomes 0
};

// Makes `values` a splat if they are all equal. An empty tensor is a splat of 0.
Literal make_literal(DType dtype, Shape shape, std::vector<double> values);
// Makes a literal of integers of 64 bits, by their bits.
Literal literal_of_bits(DType dtype, const Shape& shape, const std::vector<uint64_t>& all);
Literal int_literal(Shape shape, const std::vector<int64_t>& values);  // makes a literal of dtype i64

// The element types that ONNX and Warploom share. `what` names the tensor in the message: "input x".
absl::StatusOr<DType> dtype_of(int onnx_type, std::string_view what);

// How a tensor's elements are stored. ONNX stores integers of four bits two to a byte, the first in the low half; in
// the graph such a tensor is an input of bytes, from which integers of eight bits are made.
struct ElementType {
  DType dtype = DType::f32;  // of the elements that ops read
  int per_byte = 1;          // 2: four bits each

  DType stored_dtype() const { return per_byte > 1 ? DType::u8 : dtype; }
  // The shape of a tensor in stored elements: the last extent is halved if it is even, else the tensor is flattened.
  Shape stored_shape(const Shape& shape) const;
};
absl::StatusOr<ElementType> element_type_of(int onnx_type, std::string_view what);
// The values of such a literal as they are stored, all of them.
std::vector<double> stored_values(const ElementType& type, const Literal& literal);

// What a tensor is as it is stored. Errors: those of element_type_of() and check_shape().
struct StoredType {
  DType dtype;
  Shape shape;
};
absl::StatusOr<StoredType> stored_type_of(const onnx::TensorProto& tensor, std::string_view what);

// Fails unless every extent is at least 0 and there are at most kMaxElements elements.
absl::Status check_shape(const Shape& shape, std::string_view what);

// An initializer or constant. A tensor over kLiteralBytes that is not a splat has no values, only the parameters of a
// generator.
struct DecodedTensor {
  ElementType type;
  Shape shape;
  std::optional<Literal> literal;
  Fill fill;
};
absl::StatusOr<DecodedTensor> decode_tensor(const onnx::TensorProto& tensor, std::string_view what);

}  // namespace wl::onnx_import

// Selects the field of a protobuf TensorProto that holds the elements of a tensor whose raw_data is not set. Such a
// field may store the elements in a wider type than that of the tensor.
#pragma once

#include "compiler/base/dtype.h"
#include "onnx/onnx_pb.h"

namespace wl::onnx_import {

// Returns visit(field), where `field` is the protobuf RepeatedField with the elements of `tensor`.
template <typename Visit>
auto with_typed_field(const onnx::TensorProto& tensor, DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::f32:
      return visit(tensor.float_data());
    case DType::f64:
      return visit(tensor.double_data());
    case DType::i64:
      return visit(tensor.int64_data());
    case DType::u32:
    case DType::u64:
      return visit(tensor.uint64_data());
    default:
      return visit(tensor.int32_data());
  }
}

}  // namespace wl::onnx_import

// Tensors whose values are stored in other files (ONNX external data). The caller reads the files: the compiler reads
// none.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "compiler/base/status.h"

namespace onnx {
class TensorProto;
}

namespace wl {

// Returns `length` bytes, starting at `offset`, of the file `location`: a path relative to the model's folder without
// `..`.
using ExternalData =
    std::function<absl::StatusOr<std::string>(const std::string& location, int64_t offset, int64_t length)>;

namespace onnx_import {

// Reads the values of a tensor that are stored elsewhere into it; leaves other tensors unchanged. Without `read` a
// tensor with external values is an error. `what` names the tensor in messages. Errors: InvalidArgument for a place
// that is malformed or does not fit the shape, and any error of `read`.
absl::Status embed(onnx::TensorProto& tensor, const ExternalData& read, std::string_view what);

}  // namespace onnx_import
}  // namespace wl

// Reads tensors whose values are stored in other files (ONNX external data). The caller supplies the function that
// reads these files, because the compiler itself reads none.
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

// If the values of `tensor` are stored in another file, reads them into `tensor`; leaves other tensors unchanged.
// `what` names the tensor in messages. Errors: Unimplemented if the values are in another file and `read` is empty;
// InvalidArgument if location, offset or length are malformed or do not fit the shape; those of stored_type_of() and
// of `read`.
absl::Status embed(onnx::TensorProto& tensor, const ExternalData& read, std::string_view what);

}  // namespace onnx_import
}  // namespace wl

// Tensors whose values lie in other files (ONNX external data). Reading files is the caller's: the compiler does none.
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

// `length` bytes from `offset` on of the file `location`, a path relative to the model's folder that has no `..` in it.
using ExternalData =
    std::function<absl::StatusOr<std::string>(const std::string& location, int64_t offset, int64_t length)>;

namespace onnx_import {

// Puts the values of a tensor that lie elsewhere into it; others are left as they are. `read` may be empty: then there
// are none to be had. `what` is for messages. Errors: InvalidArgument for a place that is none or does not fit the
// shape, and whatever `read` fails with.
absl::Status embed(onnx::TensorProto& tensor, const ExternalData& read, std::string_view what);

}  // namespace onnx_import
}  // namespace wl

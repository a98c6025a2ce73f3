// Reads ONNX files through a shared object (plugin.h) that is loaded at the first call, since it depends on the ONNX
// library and protobuf.
#pragma once

#include <string>

#include "client/program/weights.h"

namespace wl {

// The OnnxReader that the C library uses: calls visit_onnx() in that shared object. FailedPrecondition: the shared
// object is missing or cannot be loaded.
absl::Status visit_onnx_lazily(const std::string& path, const ArrayVisitor& visit);

}  // namespace wl

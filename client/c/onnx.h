// Reads ONNX files through a shared object (plugin.h) that is loaded at the first call, since it depends on the ONNX
// library and protobuf.
#pragma once

#include <string>

#include "client/program/weights.h"

namespace wl {

// The OnnxReader of the C library. FailedPrecondition: the shared object is missing or cannot be loaded.
absl::Status visit_onnx_lazily(const std::string& path, const ArrayVisitor& visit);

}  // namespace wl

// Reads ONNX files by a shared object that lies beside the library and is loaded when it is first needed, since it
// needs the ONNX library and protobuf.
#pragma once

#include <string>

#include "client/program/weights.h"

namespace wl {

// An OnnxReader. FailedPrecondition: there is no such shared object, or it cannot be loaded.
absl::Status visit_onnx_lazily(const std::string& path, const ArrayVisitor& visit);

}  // namespace wl

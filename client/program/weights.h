// Reads arrays by name from any file of weights: an ONNX file, an .npz, a folder of .npy files or one .npy.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "client/program/npy.h"
#include "compiler/ir/graph.h"

namespace wl {

using ArrayVisitor =
    std::function<absl::Status(const std::string& name, DType dtype, const Shape& shape, std::string_view bytes)>;

// Reads ONNX files: visit_onnx() in client/onnx_weights/visit.h, or what loads it when it is first needed.
using OnnxReader = absl::Status (*)(const std::string& path, const ArrayVisitor& visit);

// Calls `visit` once for every array. Its bytes are valid during the call. Errors name the file: InvalidArgument,
// Unimplemented (also for an ONNX file without `onnx`), or the error of `visit`.
absl::Status visit_arrays(const std::string& path, const ArrayVisitor& visit, OnnxReader onnx = nullptr);

}  // namespace wl

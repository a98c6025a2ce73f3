// Reads arrays by name from files of weights: an ONNX file, an .npz file, a folder of .npy files, or one .npy file.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "client/program/npy.h"
#include "compiler/ir/graph.h"

namespace wl {

using ArrayVisitor =
    std::function<absl::Status(const std::string& name, DType dtype, const Shape& shape, std::string_view bytes)>;

// A reader of ONNX files: visit_onnx() (client/onnx_weights/visit.h) or visit_onnx_lazily() (client/c/onnx.h).
using OnnxReader = absl::Status (*)(const std::string& path, const ArrayVisitor& visit);

// Calls `visit` once for every array. The bytes that `visit` gets are valid during its call. Errors are those of
// parse_npy(), of `onnx` (Unimplemented if that is null and the file is ONNX) or of `visit`.
absl::Status visit_arrays(const std::string& path, const ArrayVisitor& visit, OnnxReader onnx = nullptr);

}  // namespace wl

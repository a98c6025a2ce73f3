// Reads the values of all initializers in an ONNX file. import_onnx() leaves large ones out of the graph, because a
// kernel does not depend on them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "compiler/import/external.h"
#include "compiler/ir/graph.h"

namespace wl {

// Receives one initializer, with the dtype and shape of its stored elements. `bytes` has these elements in row-major
// order, little endian, and is valid during the call only. An error that the visitor returns ends the walk.
using WeightVisitor =
    std::function<absl::Status(const std::string& name, DType dtype, const Shape& shape, std::string_view bytes)>;

// Writes the next bytes of the file, at most `most`, to `to` and returns their number; 0 at the end of the file, -1 if
// the file cannot be read.
using ByteSource = std::function<int(char* to, int most)>;

// Calls `visit` for every initializer in the order of the file, with only one of them in memory at a time. `external`
// reads values that are stored in other files. Errors: InvalidArgument for a file that is broken, Unimplemented for
// unknown element types and for values in other files without `external`, and those of `visit` and `external`.
absl::Status visit_weights(const ByteSource& onnx_file, const WeightVisitor& visit, const ExternalData& external = {});
absl::Status visit_weights(std::string_view onnx_bytes, const WeightVisitor& visit, const ExternalData& external = {});

}  // namespace wl

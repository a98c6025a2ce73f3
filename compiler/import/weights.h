// The values that an ONNX file carries: what import_onnx() leaves out of the graph, because a kernel does not depend on
// them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "compiler/import/external.h"
#include "compiler/ir/graph.h"

namespace wl {

// Sees one initializer: row-major bytes, little endian; they last for the call. An error ends the walk.
using WeightVisitor =
    std::function<absl::Status(const std::string& name, DType dtype, const Shape& shape, std::string_view bytes)>;

// Puts up to `most` of the file's next bytes at `to` and returns how many: 0 at its end, -1 when it cannot be read.
using ByteSource = std::function<int(char* to, int most)>;

// Calls `visit` for every initializer of the file, in its order; holds one of them at a time. `external` reads values
// that lie in other files. Errors: InvalidArgument for a file that is broken, Unimplemented for element types that are
// not known and for values in other files without `external`.
absl::Status visit_weights(const ByteSource& onnx_file, const WeightVisitor& visit, const ExternalData& external = {});
absl::Status visit_weights(std::string_view onnx_bytes, const WeightVisitor& visit, const ExternalData& external = {});

}  // namespace wl

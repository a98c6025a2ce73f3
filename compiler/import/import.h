// Imports an ONNX model as a Graph. The import table (table.h) has one row for every supported ONNX op, and the row
// decomposes a node of the file into the primitive ops of ir/ops.def. The import is a pure function from bytes to a
// graph, and nothing else in the compiler knows the ONNX schema. For any bytes the result is a verified Graph, or a
// Status that says what was expected, what was found and where. To support one more ONNX op, add a row to table.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/import/external.h"
#include "compiler/ir/graph.h"

namespace wl {

struct ImportOptions {
  // The extent of each symbolic dimension, by its name in the file. A dimension without a name is "<input>.<axis>".
  std::map<std::string, int64_t> bind;
  // Reads the values of initializers that are stored in other files. Without this function a model with such
  // initializers is refused.
  ExternalData external = {};
};

struct Imported {
  Graph graph;
  // Names of the graph inputs that are weights, in node order. Weights are the inputs that metadata "warploom.weights"
  // lists, the initializers that nodes read, and tensors that were computed while importing. An initializer of
  // at most 64 KiB carries its values (Fill.literal). For a larger one, values are generated until the client supplies
  // the real ones: floats with the same mean and standard deviation, integers from the same range.
  std::vector<std::string> weights;
  std::string source;  // metadata "warploom.source", or else the name of the graph; may be empty
};

// Imports `bytes`, a whole serialized ModelProto. Initializers that are scalars or splats (all elements equal) become
// constants. Small values that depend on constants alone, such as shape arithmetic, are computed while importing.
// Errors: InvalidArgument for a file that is broken or does not fit `options`; Unimplemented for ops that are not
// supported (the message lists all such ops of the main graph), for opset versions and element types that are not
// supported, and for values in other files if `options.external` is absent.
absl::StatusOr<Imported> import_onnx(std::string_view bytes, const ImportOptions& options = {});

}  // namespace wl

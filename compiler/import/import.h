// Imports ONNX: the row of table.h for each node of the file decomposes it into the primitive ops of ir/ops.def. Pure:
// bytes in, graph out; nothing else in the compiler knows the ONNX schema. For any bytes the answer is a verified Graph
// or a Status that says what was expected, what was found and where. To support one more ONNX op, add a row to
// table.cpp.
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
  // Extents of symbolic dimensions, by their name in the file; a dimension without a name is "<input>.<axis>".
  std::map<std::string, int64_t> bind;
  // Reads the values of initializers that are stored in other files. A model with such initializers is refused without
  // it.
  ExternalData external = {};
};

struct Imported {
  Graph graph;
  // Names of the inputs that are weights, in node order: those that metadata "warploom.weights" lists, and the
  // initializers that nodes read. An initializer of at most 64 KiB carries its values (Fill.literal). A larger one is
  // generated with its own mean and standard deviation until its values are supplied.
  std::vector<std::string> weights;
  std::string source;  // metadata "warploom.source", or else the graph's name; may be empty
};

// `bytes` is a whole serialized ModelProto. Initializers that are scalars or splats become constants, and everything
// that depends on constants alone (shape arithmetic) is computed. Errors: InvalidArgument for a file that is broken or
// does not fit `options`, Unimplemented for unknown ops (all are listed), versions and element types.
absl::StatusOr<Imported> import_onnx(std::string_view bytes, const ImportOptions& options = {});

}  // namespace wl

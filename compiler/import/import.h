// ONNX in, Graph out: every node of the file is decomposed into the primitive ops of ir/ops.def by the row of table.h
// that bears its name. Pure: bytes in, graph out; nothing else in the compiler knows the ONNX schema. Whatever the
// bytes, the answer is a verified Graph or a Status that says what was expected, what was found and where. To support
// one more ONNX op, add a row to table.cpp.
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
  // Extents of symbolic dimensions, by the name the file gives them; a nameless one is "<input>.<axis>".
  std::map<std::string, int64_t> bind;
  // Reads the values of initializers that lie in other files; without it such a model is refused.
  ExternalData external = {};
};

struct Imported {
  Graph graph;
  // Names of the inputs that are weights, in node order: those that metadata "warploom.weights" lists, and the
  // initializers that are read. An initializer of at most 64 KiB carries its values (Fill.literal); a larger one is
  // generated with its own mean and standard deviation until its values are supplied.
  std::vector<std::string> weights;
  std::string source;  // metadata "warploom.source", else the graph's name; may be empty
};

// `bytes` is a whole serialized ModelProto. Initializers that are scalars or splats become constants, and what can be
// computed from constants alone (shape arithmetic) is. Errors: InvalidArgument for a file that is broken or does not
// fit `options`, Unimplemented for ops (all that are missing are listed), versions and element types that are not
// known.
absl::StatusOr<Imported> import_onnx(std::string_view bytes, const ImportOptions& options = {});

}  // namespace wl

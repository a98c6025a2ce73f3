// Reads the parts of a ModelProto besides its nodes and initializers: opset versions, Warploom's metadata and the
// types of inputs. Also finds a topological order of the nodes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/import/import.h"
#include "compiler/import/literal.h"

namespace onnx {
class GraphProto;
class ModelProto;
class NodeProto;
class ValueInfoProto;
}  // namespace onnx

namespace wl::onnx_import {

// Returns the canonical name of a domain: "ai.onnx" becomes "", since both mean the default domain.
std::string domain_of(const std::string& name);
std::string domain_text(const std::string& domain);  // returns the name of a domain as messages spell it

// Returns the opset version of each domain that the file imports. Fails if the file imports none, and on a version of
// the default domain that is newer than the schemas (newest_opset()).
absl::StatusOr<std::map<std::string, int>> opsets_of(const onnx::ModelProto& model);

struct Metadata {
  std::vector<std::string> weights;
  std::map<std::string, Fill> fills;  // how the values of each input are generated, by the input's name
  std::string source;
};
absl::StatusOr<Metadata> metadata_of(const onnx::ModelProto& model);

// The type of a graph input. input_type() takes the extents of symbolic dimensions from `options.bind` and fails if one
// is missing there. It adds the names of the input's symbolic dimensions to `dimensions`.
struct InputType {
  ElementType element;
  Shape shape;
};
absl::StatusOr<InputType> input_type(const onnx::ValueInfoProto& input, const ImportOptions& options,
                                     std::vector<std::string>& dimensions);

// Returns the name of a node for messages: `node "name" (Add)` or, if the node has no name, `node #3 (Add)`.
std::string label(const onnx::NodeProto& node, int index);

// Returns the indices of the nodes in topological order: each node comes after the nodes whose outputs it reads.
// `known` has the names of all inputs and initializers. Fails on a cycle, on a name that nothing provides, and on a
// name that is provided twice.
absl::StatusOr<std::vector<int>> sorted_nodes(const onnx::GraphProto& graph, const std::vector<std::string>& known);

}  // namespace wl::onnx_import

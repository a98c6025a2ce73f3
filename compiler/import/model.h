// Reads everything of a ModelProto besides its nodes: versions, Warploom's metadata, inputs, and the order of nodes.
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

// Returns the canonical name of a domain: "" and "ai.onnx" are the same.
std::string domain_of(const std::string& name);
std::string domain_text(const std::string& domain);  // returns the name of a domain for messages

// Returns the version of each domain that the file imports. Fails on a version newer than the table supports.
absl::StatusOr<std::map<std::string, int>> opsets_of(const onnx::ModelProto& model);

struct Metadata {
  std::vector<std::string> weights;
  std::map<std::string, Fill> fills;  // generator of each input: mean and deviation, or a range
  std::string source;
};
absl::StatusOr<Metadata> metadata_of(const onnx::ModelProto& model);

// Returns shape and dtype of a graph input with symbolic dimensions bound. Adds the names of its dimensions to
// `dimensions`.
struct InputType {
  ElementType element;
  Shape shape;
};
absl::StatusOr<InputType> input_type(const onnx::ValueInfoProto& input, const ImportOptions& options,
                                     std::vector<std::string>& dimensions);

// Names a node in messages: `node "name"` or, if it has no name, `node #3 (Add)`.
std::string label(const onnx::NodeProto& node, int index);

// Returns the indices of the nodes, each after the nodes it reads. `known`: whether a name is an input or initializer.
// Fails on a cycle, on a name that nothing provides, and on a name that two nodes provide.
absl::StatusOr<std::vector<int>> sorted_nodes(const onnx::GraphProto& graph, const std::vector<std::string>& known);

}  // namespace wl::onnx_import

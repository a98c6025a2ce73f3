// What the importer needs of a ModelProto besides its nodes: versions, Warploom's metadata, inputs, and the order of
// nodes.
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

// "" and "ai.onnx" are one domain.
std::string domain_of(const std::string& name);
std::string domain_text(const std::string& domain);  // for messages

// Version of each domain that the file imports. Fails on a version newer than the table knows.
absl::StatusOr<std::map<std::string, int>> opsets_of(const onnx::ModelProto& model);

struct Metadata {
  std::vector<std::string> weights;
  std::map<std::string, Fill> fills;  // mean and deviation, or range, by input
  std::string source;
};
absl::StatusOr<Metadata> metadata_of(const onnx::ModelProto& model);

// Shape and dtype of a graph input, symbolic dimensions bound. Adds the names of its dimensions to `dimensions`.
struct InputType {
  DType dtype;
  Shape shape;
};
absl::StatusOr<InputType> input_type(const onnx::ValueInfoProto& input, const ImportOptions& options,
                                     std::vector<std::string>& dimensions);

// `node "name"` or, without one, `node #3 (Add)`; for messages.
std::string label(const onnx::NodeProto& node, int index);

// Indices of the nodes, each after those it reads. `known`: whether a name is an input or initializer. Fails on a
// cycle, a name that nothing provides, and a name that two nodes provide.
absl::StatusOr<std::vector<int>> sorted_nodes(const onnx::GraphProto& graph, const std::vector<std::string>& known);

}  // namespace wl::onnx_import

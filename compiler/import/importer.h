// Importer walks the nodes of one ONNX model. The import table (table.h) has a row for every supported op, which
// decomposes a node into primitive ops. A node with a body (If, Loop, Scan, a call of one of the model's functions) is
// replaced by copies of the body's nodes, one copy for every time that the body runs. A prefix makes the names of each
// copy unique, so there is one set of names for the whole model, and bodies need no scopes.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/import/fold.h"
#include "compiler/import/import.h"
#include "compiler/import/model.h"
#include "onnx/onnx_pb.h"

namespace wl::onnx_import {

using Opsets = std::map<std::string, int>;
using Names = std::unordered_map<std::string, std::string>;  // maps each name in a body to the name in its copy

// Facts about the body that a node is in: `opsets`, the opset version of each domain, and `depth`, the number of bodies
// (subgraphs or functions) around the node.
struct ImportContext {
  const Opsets* opsets;
  int depth = 0;
};

class Importer {
 public:
  Importer(const onnx::ModelProto& model, const ImportOptions& options);
  absl::StatusOr<Imported> run();

 private:
  // The following functions are defined in import.cpp.
  absl::Status check_nodes() const;
  bool is_known(const onnx::NodeProto& node, const Opsets& opsets) const;
  absl::Status add_initializer(const onnx::TensorProto& tensor, const std::string& name);
  absl::Status add_initializers();
  absl::Status add_inputs();
  absl::Status add_outputs();
  absl::Status add_node(const onnx::NodeProto& node, const std::string& where, const ImportContext& context);
  absl::Status add_row(const onnx::NodeProto& node, const std::string& where, const ImportContext& context);
  const CallValue* find(const std::string& name) const;

  // The following functions are defined in bodies.cpp. new_prefix() returns a new unique prefix, which contains the
  // running number bodies_.
  absl::Status enter(const ImportContext& context);
  std::string new_prefix(const onnx::NodeProto& node);
  absl::Status add_function(const onnx::NodeProto& node, const onnx::FunctionProto& function,
                            const ImportContext& context);
  // Adds one copy of a body and returns the values of its outputs. The names of the copy's nodes begin with `prefix`.
  // The names of initializers begin with `tensors`, so that all iterations of a loop use the same ones.
  absl::StatusOr<std::vector<CallValue>> add_body(const onnx::GraphProto& body, const std::string& prefix,
                                                  const std::string& tensors, const std::vector<CallValue>& inputs,
                                                  const ImportContext& context);
  absl::Status add_renamed(const onnx::NodeProto& node, int index, const Names& names, const ImportContext& context,
                           const std::function<void(onnx::NodeProto&)>& change = {});
  absl::Status set_outputs(const onnx::NodeProto& node, const std::vector<CallValue>& values);

  // The following functions are defined in control.cpp.
  absl::Status add_if(const onnx::NodeProto& node, const ImportContext& context);
  absl::Status add_loop(const onnx::NodeProto& node, const ImportContext& context);
  absl::Status add_scan(const onnx::NodeProto& node, const ImportContext& context);
  absl::StatusOr<std::vector<CallValue>> scan_once(const onnx::NodeProto& node, std::vector<CallValue> inputs,
                                                   const std::vector<int64_t>& axes, const ImportContext& context);
  // Adds one ONNX op with the given inputs, as the op's row of the import table builds it, and returns its output.
  // `make`, if given, sets the attributes of the op's node.
  absl::StatusOr<CallValue> compute(const std::string& op, const std::vector<CallValue>& inputs,
                                    const std::function<void(onnx::NodeProto&)>& make);
  // Returns the tensors stacked along the new axis `axis`.
  absl::StatusOr<CallValue> stacked(const std::vector<CallValue>& parts, int64_t axis);
  // Returns the slice number `index` of a value along an axis, without that axis.
  absl::StatusOr<CallValue> element(const CallValue& value, int64_t axis, int64_t index);

  const onnx::GraphProto& graph_;
  const onnx::ModelProto& model_;
  const ImportOptions& options_;
  Opsets opsets_;
  Metadata metadata_;
  // The functions of the model, by "domain:name".
  std::unordered_map<std::string, const onnx::FunctionProto*> functions_;
  std::unordered_map<std::string, CallValue> values_;
  std::set<std::string> data_inputs_;
  int64_t inlined_ = 0;  // the number of body copies, and of nodes in them, that were added so far
  int64_t bodies_ = 0;
  Builder builder_;
};

// Returns the attribute `name` of a node, or null if the node does not have it.
const onnx::AttributeProto* attribute_of(const onnx::NodeProto& node, std::string_view name);

}  // namespace wl::onnx_import

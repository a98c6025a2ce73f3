// Running a row: into the graph being imported, or, when every input is known, at once, by building the node alone and
// asking the oracle for its values. So what folds is what the table knows, and folding means what the graph means.
#pragma once

#include <optional>
#include <vector>

#include "compiler/import/table.h"

namespace wl::onnx_import {

// One result per output of the node. The Status does not yet name the node.
absl::StatusOr<std::vector<Call::Result>> build(const Row& row, const onnx::NodeProto& node, int version,
                                                std::vector<CallValue*> inputs, Builder& builder, bool cache);

// The values of all outputs; nullopt when inputs are not all known, there are none, or the results are large or
// illegal.
std::optional<std::vector<Call::Result>> fold(const Row& row, const onnx::NodeProto& node, int version,
                                              const std::vector<CallValue*>& inputs);

// The node that `value` is in `builder`, made now if it is not one yet.
absl::StatusOr<NodeId> materialise(CallValue& value, Builder& builder);

}  // namespace wl::onnx_import

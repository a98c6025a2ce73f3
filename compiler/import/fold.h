// Runs a row: into the graph being imported or, when every input is known, at once, by building the node alone and
// evaluating it with the oracle. So exactly the ops of the table can be folded, and folding computes what the graph
// would.
#pragma once

#include <optional>
#include <vector>

#include "compiler/import/table.h"

namespace wl::onnx_import {

// Returns one result per output of the node. The Status does not name the node; the caller adds that.
absl::StatusOr<std::vector<Call::Result>> build(const Row& row, const onnx::NodeProto& node, int version,
                                                std::vector<CallValue*> inputs, Builder& builder, bool cache);

// Returns the values of all outputs; nullopt when not all inputs are known, there are no inputs, or the results are
// large or illegal.
std::optional<std::vector<Call::Result>> fold(const Row& row, const onnx::NodeProto& node, int version,
                                              const std::vector<CallValue*>& inputs);

// Returns the node of `value` in `builder`, and creates it if there is none yet.
absl::StatusOr<NodeId> materialise(CallValue& value, Builder& builder);

}  // namespace wl::onnx_import

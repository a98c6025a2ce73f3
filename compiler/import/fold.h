// Runs a row of the import table on a node. build() adds the node's ops to the graph that is being imported. fold()
// computes a node whose inputs are all known while importing: it builds the node in a graph of its own and evaluates
// that graph with the oracle, the evaluator in double precision. So every op of the table can be folded, unless its
// row forbids that (Row::folds).
#pragma once

#include <optional>
#include <vector>

#include "compiler/import/table.h"

namespace wl::onnx_import {

// Returns one result for each output of the node. The Status of an error does not name the node; the caller must add
// the name.
absl::StatusOr<std::vector<Call::Result>> build(const Row& row, const onnx::NodeProto& node, int version,
                                                std::vector<CallValue*> inputs, Builder& builder, bool cache);

// Returns the values of all outputs. Returns nullopt if the row forbids folding, the node has no inputs, an input is
// unknown or too large to fold, or the result is too large to fold or cannot be computed.
std::optional<std::vector<Call::Result>> fold(const Row& row, const onnx::NodeProto& node, int version,
                                              const std::vector<CallValue*>& inputs);

// Returns the node of `builder` that holds `value`. If there is none yet, creates it.
absl::StatusOr<NodeId> materialise(CallValue& value, Builder& builder);

}  // namespace wl::onnx_import

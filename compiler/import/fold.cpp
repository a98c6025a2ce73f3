#include "compiler/import/fold.h"

#include <algorithm>
#include <numeric>

#include "compiler/ir/eval.h"
#include "onnx/onnx_pb.h"

namespace wl::onnx_import {
namespace {

// The most elements that a value may have to be folded (computed while importing). Shape arithmetic and small tables
// are within this limit. Larger values stay ops of the graph.
constexpr int64_t kFoldElements = kLiteralBytes / 8;
constexpr int64_t kFoldWork = int64_t{1} << 20;  // the most elements of all nodes of a folded op together

absl::StatusOr<Literal> value_of(const Graph& graph, const Output& output) {
  const Node& node = graph.nodes[static_cast<size_t>(output.node)];
  if (node.op == Op::constant) return make_literal(node.dtype, node.shape, {node.value});
  Query query{output.node, std::vector<int64_t>(static_cast<size_t>(elements(node.shape)))};
  std::iota(query.indices.begin(), query.indices.end(), 0);
  WL_ASSIGN_OR_RETURN(const auto values, evaluate(graph, generated_inputs(graph, 0), {query}));
  if (node.dtype == DType::i64 || node.dtype == DType::u64) {
    std::vector<uint64_t> bits;
    for (const auto& value : values[0]) bits.push_back(static_cast<uint64_t>(value.whole));
    return literal_of_bits(node.dtype, node.shape, bits);
  }
  std::vector<double> rounded;
  for (const auto& value : values[0]) {
    uint64_t memory = 0;
    store_element(node.dtype, &memory, 0, value.value);
    rounded.push_back(load_element(node.dtype, &memory, 0));
  }
  return make_literal(node.dtype, node.shape, std::move(rounded));
}

}  // namespace

absl::StatusOr<std::vector<Call::Result>> build(const Row& row, const onnx::NodeProto& node, int version,
                                                std::vector<CallValue*> inputs, Builder& builder, bool cache) {
  try {
    Call call(node, version, std::move(inputs), builder, cache);
    const T first = row.build(call);
    if (first.valid()) call.set(0, first);
    return call.results();
  } catch (const Rejected& rejected) {
    return rejected.status;
  }
}

std::optional<std::vector<Call::Result>> fold(const Row& row, const onnx::NodeProto& node, int version,
                                              const std::vector<CallValue*>& inputs) {
  const auto known = [](const CallValue* value) {
    return value == nullptr || (value->literal && value->literal->low.empty() &&
                                (value->literal->is_splat() || elements(value->shape) <= kFoldElements));
  };
  if (!row.folds || inputs.empty() || !std::all_of(inputs.begin(), inputs.end(), known)) return std::nullopt;
  Builder alone;
  auto results = build(row, node, version, inputs, alone, /*cache=*/false);
  if (!results.ok()) return std::nullopt;
  for (int i = 0; i < node.output_size(); ++i) {
    const auto& result = (*results)[static_cast<size_t>(i)];
    if (node.output(i).empty() || result.literal) continue;
    if (result.node < 0) return std::nullopt;
    const Node& made = alone.node(result.node);
    if (made.op != Op::constant && elements(made.shape) > kFoldElements) return std::nullopt;
    alone.output(node.output(i), result.node);
  }
  const auto graph = alone.finish();
  // Outputs that are literals already need no evaluation. If all outputs are literals, they are the result.
  const auto need = [&](int i) { return !node.output(i).empty() && !(*results)[static_cast<size_t>(i)].literal; };
  bool any = false;
  for (int i = 0; i < node.output_size(); ++i) any |= need(i);
  if (!any) return *std::move(results);
  if (!graph.ok()) return std::nullopt;
  int64_t work = 0;
  for (const Node& made : graph->nodes) work += std::min(elements(made.shape), kFoldWork);
  if (work > kFoldWork) return std::nullopt;
  size_t next = 0;
  for (int i = 0; i < node.output_size(); ++i) {
    if (!need(i)) continue;
    auto literal = value_of(*graph, graph->outputs[next++]);
    if (!literal.ok()) return std::nullopt;
    (*results)[static_cast<size_t>(i)].literal = *std::move(literal);
  }
  return *std::move(results);
}

absl::StatusOr<NodeId> materialise(CallValue& value, Builder& builder) {
  try {
    const onnx::NodeProto none;
    return Call(none, 1, {}, builder, /*cache=*/true).materialise(value).id();
  } catch (const Rejected& rejected) {
    return rejected.status;
  }
}

}  // namespace wl::onnx_import

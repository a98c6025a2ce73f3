#include "client/cli/compose.h"

#include <algorithm>

#include "compiler/base/sha256.h"
#include "compiler/ir/layout/channels_last.h"
#include "compiler/ir/rules/rules.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

NodeId add(Graph& graph, Node node) {
  graph.nodes.push_back(std::move(node));
  return static_cast<NodeId>(graph.nodes.size()) - 1;
}

// Returns a text for each output that does not depend on the numbers of nodes or the order of commutative operands,
// which simplification chooses by age.
std::vector<std::string> meaning_of(const Graph& graph) {
  std::vector<std::string> meaning;
  int64_t inputs = 0;
  for (const Node& node : graph.nodes) {
    Encoder encoder("warploom.meaning", 1);
    encoder.text(name_of(node.op)).text(type_text(node.dtype, node.shape)).real(node.value);
    if (node.op == Op::input) {
      encoder.integer(inputs++);
    } else {
      encoder.text(node.text);
    }
    for (const std::vector<int64_t>* list : {&node.ints, &node.ints2}) {
      encoder.integer(static_cast<int64_t>(list->size()));
      for (int64_t value : *list) encoder.integer(value);
    }
    std::vector<std::string> operands;
    for (NodeId operand : node.operands) operands.push_back(meaning[operand]);
    if (is_commutative(node.op)) std::sort(operands.begin(), operands.end());
    for (const std::string& operand : operands) encoder.text(operand);
    meaning.push_back(encoder.hash());
  }
  std::vector<std::string> outputs;
  for (const Output& output : graph.outputs) outputs.push_back(meaning[output.node]);
  return outputs;
}

}  // namespace

absl::StatusOr<Graph> compose(const Program& program, const Graph& whole) {
  Graph result;
  std::vector<NodeId> value(program.buffers.size(), -1);
  for (NodeId id : whole.inputs()) {
    if (const int buffer = input_buffer(program, whole.nodes[id].text); buffer >= 0)
      value[buffer] = add(result, whole.nodes[id]);
  }
  for (size_t s = 0; s < program.steps.size(); ++s) {
    const ProgramStep& step = program.steps[s];
    WL_ASSIGN_OR_RETURN(const Graph group, parse(program.kernels[step.kernel].graph));
    if (group.inputs().size() + group.outputs.size() != step.args.size()) {
      return invalid("step ", s, " has ", step.args.size(), " arguments, its graph ", group.inputs().size(), " + ",
                     group.outputs.size());
    }
    // One kernel may serve groups that differ in shape but treat the bytes alike.
    const auto shaped = [&](NodeId id, DType dtype, const Shape& shape) -> absl::StatusOr<NodeId> {
      const Node& node = result.nodes[id];
      if (node.dtype != dtype || elements(node.shape) != elements(shape)) {
        return invalid("step ", s, ": a buffer is ", type_text(node.dtype, node.shape), ", its graph says ",
                       type_text(dtype, shape));
      }
      if (node.shape == shape) return id;
      return add(result, Node{.op = Op::reshape, .dtype = dtype, .shape = shape, .operands = {id}});
    };
    std::vector<NodeId> renamed(group.nodes.size(), -1);
    size_t argument = 0;
    for (size_t id = 0; id < group.nodes.size(); ++id) {
      Node node = group.nodes[id];
      if (node.op == Op::input) {
        const NodeId from = value[step.args[argument++]];
        if (from < 0) return invalid("step ", s, " reads a value that no earlier step stores");
        WL_ASSIGN_OR_RETURN(renamed[id], shaped(from, node.dtype, node.shape));
        continue;
      }
      for (NodeId& operand : node.operands) operand = renamed[operand];
      renamed[id] = add(result, std::move(node));
    }
    for (const Output& output : group.outputs) {
      const int buffer = step.args[argument++];
      WL_ASSIGN_OR_RETURN(value[buffer],
                          shaped(renamed[output.node], program.buffers[buffer].dtype, program.buffers[buffer].shape));
    }
  }
  for (const ProgramOutput& output : program.outputs) {
    if (value[output.buffer] < 0) return invalid("output ", output.name, " is stored by no step");
    result.outputs.push_back({output.name, value[output.buffer]});
  }
  WL_RETURN_IF_ERROR(verify(result));
  return result;
}

absl::StatusOr<bool> steps_make(const Program& program, const Graph& whole) {
  WL_ASSIGN_OR_RETURN(Graph composed, compose(program, whole));
  WL_ASSIGN_OR_RETURN(const Graph one, simplify(composed));
  WL_ASSIGN_OR_RETURN(const Graph other, simplify(whole));
  if (meaning_of(one) == meaning_of(other)) return true;
  // Its cover may store values between kernels in another order.
  WL_ASSIGN_OR_RETURN(const Graph stored, channels_last(other));
  WL_ASSIGN_OR_RETURN(const Graph another, simplify(stored));
  return meaning_of(one) == meaning_of(another);
}

}  // namespace wl

#include "compiler/ir/compose/compose.h"

#include <algorithm>
#include <set>
#include <utility>

#include "compiler/ir/build.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

class Composer {
 public:
  explicit Composer(const JobResult& result)
      : result_(result), value_(result.buffers.size(), -1), writer_(value_.size(), -1) {}

  absl::StatusOr<Composition> run() {
    for (const GroupResult& group : result_.groups) {
      auto graph = parse(group.graph);
      if (!graph.ok()) return invalid("the graph of group ", graphs_.size(), ": ", graph.status().message());
      graphs_.push_back(prune(*graph));
    }
    for (const Binding& input : result_.inputs) WL_RETURN_IF_ERROR(add_input(input));
    for (size_t number = 0; number < result_.steps.size(); ++number) WL_RETURN_IF_ERROR(launch(number));
    for (const Binding& output : result_.outputs) WL_RETURN_IF_ERROR(add_output(output));
    return finish();
  }

 private:
  absl::Status check(int buffer) const {
    if (buffer >= 0 && static_cast<size_t>(buffer) < value_.size()) return absl::OkStatus();
    return invalid("there is no buffer ", buffer);
  }

  // Returns how the values of an input buffer are generated: the fill of the matching input of the first kernel that
  // reads the buffer. The graphs of groups keep the fills of integer inputs (compiler/domain/group.h).
  Fill fill_of(int buffer) const {
    for (const Step& step : result_.steps) {
      const auto at = std::find(step.arguments.begin(), step.arguments.end(), buffer) - step.arguments.begin();
      if (step.group < 0 || static_cast<size_t>(step.group) >= graphs_.size()) continue;
      const Graph& graph = graphs_[step.group];
      if (const std::vector<NodeId> all = graph.inputs(); static_cast<size_t>(at) < all.size())
        return graph.nodes[all[at]].fill;
    }
    return {};
  }

  absl::Status add_input(const Binding& input) {
    WL_RETURN_IF_ERROR(check(input.buffer));
    const ResultBuffer& buffer = result_.buffers[input.buffer];
    value_[input.buffer] =
        builder_.input(input.name, buffer.dtype, buffer.shape, is_float(buffer.dtype) ? Fill() : fill_of(input.buffer));
    return builder_.status();
  }

  // Adds a graph output in the shape of its buffer. The kernel that stores the value may store it in another shape.
  absl::Status add_output(const Binding& output) {
    WL_RETURN_IF_ERROR(check(output.buffer));
    const NodeId stored = value_[output.buffer];
    if (stored < 0) return invalid("output ", output.name, " is stored by no step");
    const ResultBuffer& buffer = result_.buffers[output.buffer];
    WL_ASSIGN_OR_RETURN(const NodeId node, as(stored, buffer.dtype, buffer.shape));
    builder_.output(output.name, node);
    outputs_.push_back(node);
    if (node == stored || writer_[output.buffer] < 0) return absl::OkStatus();
    Composition::Launch& writer = launches_[writer_[output.buffer]];
    writer.computes.push_back(node);
    std::replace(writer.stores.begin(), writer.stores.end(), stored, node);
    return absl::OkStatus();
  }

  // Returns node `id` reshaped to `shape`; InvalidArgument if its dtype is not `dtype` or its number of elements
  // differs.
  absl::StatusOr<NodeId> as(NodeId id, DType dtype, const Shape& shape) {
    const Node& node = builder_.node(id);
    if (node.dtype != dtype || elements(node.shape) != elements(shape))
      return invalid("a value is ", type_text(node.dtype, node.shape), ", which was to be ", type_text(dtype, shape));
    return node.shape == shape ? id : builder_.reshape(id, shape);
  }

  // Adds a reshape that a launch computes. A chain of reshapes becomes one reshape, and a reshape to the shape that its
  // operand has already becomes the operand. Reshapes that are inputs of the launch (`from`) stay as they are.
  NodeId reshaped(Node reshape, const std::vector<NodeId>& from) {
    NodeId& of = reshape.operands[0];
    while (builder_.node(of).op == Op::reshape && std::find(from.begin(), from.end(), of) == from.end())
      of = builder_.node(of).operands[0];
    return builder_.node(of).shape == reshape.shape ? of : builder_.add_node(std::move(reshape));
  }

  // Adds the nodes of a group's graph; `from` has the nodes whose values its inputs read. Returns the new number of
  // each node of the graph.
  absl::StatusOr<std::vector<NodeId>> add_all(const Graph& graph, const std::vector<NodeId>& from) {
    std::vector<NodeId> renamed(graph.nodes.size(), -1);
    size_t input = 0;
    for (size_t id = 0; id < graph.nodes.size(); ++id) {
      Node node = graph.nodes[id];
      if (node.op == Op::input) {
        WL_ASSIGN_OR_RETURN(renamed[id], as(from[input++], node.dtype, node.shape));
        continue;
      }
      for (NodeId& operand : node.operands) operand = renamed[operand];
      renamed[id] = node.op == Op::reshape ? reshaped(std::move(node), from) : builder_.add_node(std::move(node));
      WL_RETURN_IF_ERROR(builder_.status());
    }
    return renamed;
  }

  absl::Status launch(size_t number) {
    const Step& step = result_.steps[number];
    const auto wrong = [number](const auto&... what) { return invalid("step ", number, ": ", what...); };
    if (step.group < 0 || static_cast<size_t>(step.group) >= graphs_.size()) return wrong("no group ", step.group);
    const Graph& graph = graphs_[step.group];
    const size_t inputs = graph.inputs().size();
    if (inputs + graph.outputs.size() != step.arguments.size())
      return wrong("it has ", step.arguments.size(), " arguments, its graph ", inputs, " inputs and ",
                   graph.outputs.size(), " outputs");
    std::vector<NodeId> from;
    for (size_t a = 0; a < step.arguments.size(); ++a) {
      if (const absl::Status there = check(step.arguments[a]); !there.ok()) return wrong(there.message());
      if (a < inputs) from.push_back(value_[step.arguments[a]]);
    }
    if (std::count(from.begin(), from.end(), -1) > 0) return wrong("it reads a value that no earlier step stores");
    auto renamed = add_all(graph, from);
    if (!renamed.ok()) return wrong(renamed.status().message());
    std::vector<NodeId> stores;
    for (size_t o = 0; o < graph.outputs.size(); ++o) {
      const int buffer = step.arguments[inputs + o];
      stores.push_back((*renamed)[graph.outputs[o].node]);
      if (auto fits = as(stores.back(), result_.buffers[buffer].dtype, result_.buffers[buffer].shape); !fits.ok())
        return wrong(fits.status().message());
      value_[buffer] = stores.back();
      writer_[buffer] = static_cast<int>(number);
    }
    launches_.push_back({needed_by(stores, from), std::move(stores)});
    return absl::OkStatus();
  }

  // Returns the nodes that the launch computes to get the nodes `stores`, which are included. The search ends at inputs
  // of the graph and at the values `from`, which the launch reads.
  std::vector<NodeId> needed_by(const std::vector<NodeId>& stores, const std::vector<NodeId>& from) const {
    std::set<NodeId> seen;
    std::vector<NodeId> todo = stores;
    while (!todo.empty()) {
      const NodeId id = todo.back();
      todo.pop_back();
      const Node& node = builder_.node(id);
      if (node.op == Op::input || std::find(from.begin(), from.end(), id) != from.end() || !seen.insert(id).second)
        continue;
      todo.insert(todo.end(), node.operands.begin(), node.operands.end());
    }
    return {seen.begin(), seen.end()};
  }

  // Returns the composition without the nodes that no output needs, which Builder::finish() drops; `now` maps the
  // number of each node before Builder::finish() to its number afterwards.
  absl::StatusOr<Composition> finish() {
    std::vector<char> live(builder_.size(), 0);
    for (const NodeId output : outputs_) live[output] = 1;
    std::vector<NodeId> now(live.size(), -1);
    for (NodeId id = builder_.size(); id-- > 0;) {
      if (builder_.node(id).op == Op::input) live[id] = 1;
      if (live[id])
        for (const NodeId operand : builder_.node(id).operands) live[operand] = 1;
    }
    NodeId count = 0;
    for (size_t id = 0; id < live.size(); ++id)
      if (live[id]) now[id] = count++;
    Composition out;
    WL_ASSIGN_OR_RETURN(out.graph, builder_.finish());
    for (const Composition::Launch& launch : launches_) {
      Composition::Launch& kept = out.launches.emplace_back();
      for (const auto part : {&Composition::Launch::computes, &Composition::Launch::stores})
        for (const NodeId id : launch.*part)
          if (now[id] >= 0) (kept.*part).push_back(now[id]);
      std::sort(kept.computes.begin(), kept.computes.end());
      kept.computes.erase(std::unique(kept.computes.begin(), kept.computes.end()), kept.computes.end());
    }
    return out;
  }

  const JobResult& result_;
  Builder builder_;
  std::vector<Graph> graphs_;  // graph of each group of the result
  std::vector<NodeId> value_;  // for each buffer, the node whose value it holds; -1: it holds no value yet
  std::vector<int> writer_;    // for each buffer, the launch that stores it; -1: no launch has stored it yet
  std::vector<NodeId> outputs_;
  std::vector<Composition::Launch> launches_;  // the launches so far; nodes have their numbers in builder_
};

}  // namespace

absl::StatusOr<Composition> compose(const JobResult& result) {
  return Composer(result).run();
}

}  // namespace wl

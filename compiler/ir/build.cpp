#include "compiler/ir/build.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace wl {
namespace {

// Returns a key that two nodes share if and only if Builder treats them as equal. The key holds the bits of the value,
// so that NaN equals itself and -0 differs from 0.
std::string intern_key(const Node& node) {
  std::string key;
  auto put = [&](const auto& value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); };
  auto list = [&](const auto& values) {
    put(values.size());
    for (const auto& value : values) put(value);
  };
  put(node.op);
  put(node.dtype);
  list(node.shape);
  list(node.operands);
  list(node.ints);
  list(node.ints2);
  put(node.value);
  key += node.text;
  return key;
}

std::vector<int64_t> normalised_axes(std::vector<int64_t> axes, size_t rank) {
  for (int64_t& axis : axes) {
    if (axis < 0) axis += static_cast<int64_t>(rank);
  }
  std::sort(axes.begin(), axes.end());
  return axes;
}

}  // namespace

NodeId Builder::fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
  // The caller gets the number of this placeholder node, so that it can continue building after the mistake. finish()
  // reports the error.
  graph_.nodes.push_back(Node{});
  return static_cast<NodeId>(graph_.nodes.size()) - 1;
}

NodeId Builder::add_node(Node node) {
  if (absl::Status status = infer(graph_.nodes, node); !status.ok()) {
    NodeId first = node.operands.empty() ? -1 : node.operands[0];
    NodeId dummy = fail(std::move(status));
    return first >= 0 && first < dummy ? first : dummy;
  }
  NodeId id = static_cast<NodeId>(graph_.nodes.size());
  if (node.op != Op::input) {
    auto [it, fresh] = interned_.emplace(intern_key(node), id);
    if (!fresh) return it->second;
  }
  graph_.nodes.push_back(std::move(node));
  return id;
}

NodeId Builder::input(std::string name, DType dtype, Shape shape, Fill fill) {
  Node node{.op = Op::input, .dtype = dtype, .shape = std::move(shape)};
  node.text = std::move(name);
  node.fill = std::move(fill);
  return add_node(std::move(node));
}

NodeId Builder::constant(double value, DType dtype, Shape shape) {
  Node node{.op = Op::constant, .dtype = dtype, .shape = std::move(shape)};
  node.value = value;
  return add_node(std::move(node));
}

NodeId Builder::iota(DType dtype, Shape shape, int axis) {
  Node node{.op = Op::iota, .dtype = dtype, .shape = std::move(shape)};
  node.ints = {axis};
  return add_node(std::move(node));
}

NodeId Builder::elementwise(Op op, std::vector<NodeId> operands) {
  const Shape* shape = nullptr;
  for (NodeId id : operands) {
    if (id < 0 || id >= static_cast<NodeId>(graph_.nodes.size())) continue;  // infer() reports unknown operands
    if (node(id).op != Op::constant || !node(id).shape.empty()) shape = &node(id).shape;
  }
  if (shape != nullptr && !shape->empty()) {
    const Shape target = *shape;
    for (NodeId& id : operands) {
      if (id < 0 || id >= static_cast<NodeId>(graph_.nodes.size())) continue;
      if (node(id).op == Op::constant && node(id).shape.empty()) id = constant(node(id).value, node(id).dtype, target);
    }
  }
  Node node{.op = op};
  node.operands = std::move(operands);
  return add_node(std::move(node));
}

NodeId Builder::cast(NodeId x, DType dtype) {
  Node node{.op = Op::cast, .dtype = dtype};
  node.operands = {x};
  return add_node(std::move(node));
}

NodeId Builder::reshape(NodeId x, Shape shape) {
  Node node{.op = Op::reshape, .shape = std::move(shape)};
  node.operands = {x};
  return add_node(std::move(node));
}

NodeId Builder::transpose(NodeId x, std::vector<int64_t> perm) {
  Node node{.op = Op::transpose};
  node.operands = {x};
  node.ints = std::move(perm);
  return add_node(std::move(node));
}

NodeId Builder::in_order(NodeId x, std::vector<int64_t>& axes) {
  if (std::is_sorted(axes.begin(), axes.end())) return x;
  std::vector<int64_t> perm(axes.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::sort(perm.begin(), perm.end(), [&](int64_t a, int64_t b) { return axes[a] < axes[b]; });
  std::sort(axes.begin(), axes.end());
  return transpose(x, std::move(perm));
}

NodeId Builder::broadcast(NodeId x, Shape shape, std::vector<int64_t> dims) {
  Node node{.op = Op::broadcast, .shape = std::move(shape)};
  node.operands = {x};
  node.ints = std::move(dims);
  return add_node(std::move(node));
}

NodeId Builder::broadcast_to(NodeId x, const Shape& shape) {
  const Shape from = node(x).shape;
  if (from == shape) return x;
  if (from.size() > shape.size()) {
    return fail(invalid("broadcast: shape ", shape_text(from), " has more axes than the target ", shape_text(shape)));
  }
  Shape kept;
  std::vector<int64_t> dims;
  size_t lead = shape.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] == 1 && shape[lead + i] != 1) continue;
    if (from[i] != shape[lead + i]) {
      return fail(invalid("broadcast: shape ", shape_text(from), " does not stretch to ", shape_text(shape),
                          ": extent ", from[i], " of axis ", i, " is neither 1 nor ", shape[lead + i]));
    }
    kept.push_back(from[i]);
    dims.push_back(static_cast<int64_t>(lead + i));
  }
  if (kept != from) x = reshape(x, kept);
  return broadcast(x, shape, std::move(dims));
}

NodeId Builder::slice(NodeId x, std::vector<int64_t> starts, std::vector<int64_t> steps, Shape shape) {
  Node node{.op = Op::slice, .shape = std::move(shape)};
  node.operands = {x};
  node.ints = std::move(starts);
  node.ints2 = std::move(steps);
  return add_node(std::move(node));
}

NodeId Builder::reduce(Op op, NodeId x, std::vector<int64_t> axes) {
  if (axes.empty()) return x;
  Node result{.op = op};
  result.operands = {x};
  result.ints = normalised_axes(std::move(axes), node(x).shape.size());
  return add_node(std::move(result));
}

NodeId Builder::reduce_keep(Op op, NodeId x, std::vector<int64_t> axes) {
  if (axes.empty()) return x;
  const Shape shape = node(x).shape;
  axes = normalised_axes(std::move(axes), shape.size());
  NodeId reduced = reduce(op, x, axes);
  std::vector<int64_t> dims;
  for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), i)) dims.push_back(i);
  }
  return broadcast(reduced, shape, std::move(dims));
}

NodeId Builder::contract(NodeId a, NodeId b, std::string einsum, std::optional<DType> dtype, bool tf32) {
  Node node{.op = Op::contract, .dtype = dtype.value_or(this->node(a).dtype)};
  node.operands = {a, b};
  node.text = std::move(einsum);
  node.tf32 = tf32;
  return add_node(std::move(node));
}

NodeId Builder::take_along(NodeId x, NodeId index, int64_t axis) {
  Node result{.op = Op::take_along};
  result.operands = {x, index};
  result.ints = {axis < 0 ? axis + static_cast<int64_t>(node(x).shape.size()) : axis};
  return add_node(std::move(result));
}

void Builder::output(std::string name, NodeId node) {
  graph_.outputs.push_back({std::move(name), node});
}

absl::StatusOr<Graph> Builder::finish() {
  WL_RETURN_IF_ERROR(status_);
  WL_RETURN_IF_ERROR(verify(graph_));
  return prune(graph_);
}

}  // namespace wl

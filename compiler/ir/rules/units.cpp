// Rules that remove axes of extent 1 from every op, so that [1,512,768], [512,768] and the results of keepdims become
// the same graph. The op works on the other axes, and a reshape after it inserts the axes of extent 1 again.
// Neighbouring reshapes of this kind cancel.
#include <algorithm>

#include "compiler/ir/rules/internal.h"

namespace wl::rule {
namespace {

bool has_units(const Shape& shape) {
  return std::find(shape.begin(), shape.end(), 1) != shape.end();
}

NodeId squeezed(Builder& to, NodeId x) {
  const Node node = to.node(x);
  if (!has_units(node.shape)) return x;
  const Shape shape = without_units(node.shape);
  return node.op == Op::constant ? to.constant(node.value, node.dtype, shape) : to.reshape(x, shape);
}

// Returns for every axis its number among the kept axes; -1 if the axis is not kept.
std::vector<int64_t> numbers_of(const std::vector<char>& kept) {
  std::vector<int64_t> numbers;
  int64_t next = 0;
  for (char keep : kept) numbers.push_back(keep ? next++ : -1);
  return numbers;
}

template <typename T>
std::vector<T> kept_of(const std::vector<T>& list, const std::vector<char>& kept) {
  std::vector<T> result;
  for (size_t i = 0; i < list.size(); ++i) {
    if (kept[i]) result.push_back(list[i]);
  }
  return result;
}

// Removes the axes that are not kept from the node and from all its operands, and reshapes the result to the node's old
// shape.
NodeId without_axes(Builder& to, Node node, const std::vector<char>& kept) {
  for (NodeId& operand : node.operands) {
    const Node x = to.node(operand);
    operand = x.op == Op::constant ? to.constant(x.value, x.dtype, kept_of(x.shape, kept))
                                   : to.reshape(operand, kept_of(x.shape, kept));
  }
  const Shape whole = node.shape;
  node.shape = kept_of(whole, kept);
  return to.reshape(to.add_node(std::move(node)), whole);
}

// Returns for every axis whether it is kept, as all axes are except those of extent 1 in both the node and its first
// operand.
std::vector<char> idle_axes_out(const Builder& to, const Node& node) {
  std::vector<char> kept;
  const Shape& from = to.node(node.operands[0]).shape;
  for (size_t i = 0; i < from.size(); ++i) kept.push_back(from[i] != 1 || node.shape[i] != 1);
  return kept;
}

bool all_kept(const std::vector<char>& kept) {
  return std::find(kept.begin(), kept.end(), 0) == kept.end();
}

}  // namespace

Result elementwise_units(Builder& to, const Node& node) {
  if (class_of(node.op) != OpClass::kElementwise) return std::nullopt;
  const Shape shape = to.node(node.operands[0]).shape;
  if (!has_units(shape)) return std::nullopt;
  Node inner{.op = node.op, .dtype = node.dtype};
  for (NodeId operand : node.operands) inner.operands.push_back(squeezed(to, operand));
  return to.reshape(to.add_node(std::move(inner)), shape);
}

Result reduce_units(Builder& to, const Node& node) {
  if (class_of(node.op) != OpClass::kReduce) return std::nullopt;
  const Shape shape = to.node(node.operands[0]).shape;
  if (!has_units(shape)) return std::nullopt;
  std::vector<char> kept;
  for (int64_t extent : shape) kept.push_back(extent != 1);
  const std::vector<int64_t> numbers = numbers_of(kept);
  std::vector<int64_t> axes;
  for (int64_t axis : node.ints) {
    if (kept[axis]) axes.push_back(numbers[axis]);
  }
  NodeId x = squeezed(to, node.operands[0]);
  if (!axes.empty()) x = to.reduce(node.op, x, axes);
  return to.reshape(x, node.shape);
}

Result broadcast_units(Builder& to, const Node& node) {
  if (node.op != Op::broadcast || !has_units(node.shape)) return std::nullopt;
  std::vector<char> kept;
  for (int64_t extent : node.shape) kept.push_back(extent != 1);
  const std::vector<int64_t> numbers = numbers_of(kept);
  std::vector<int64_t> dims;
  for (int64_t axis : node.ints) {
    if (kept[axis]) dims.push_back(numbers[axis]);
  }
  const NodeId x = squeezed(to, node.operands[0]);
  return to.reshape(to.broadcast(x, without_units(node.shape), dims), node.shape);
}

Result transpose_units(Builder& to, const Node& node) {
  if (node.op != Op::transpose || !has_units(node.shape)) return std::nullopt;
  std::vector<char> kept;
  for (int64_t extent : to.node(node.operands[0]).shape) kept.push_back(extent != 1);
  const std::vector<int64_t> numbers = numbers_of(kept);
  std::vector<int64_t> perm;
  for (int64_t axis : node.ints) {
    if (kept[axis]) perm.push_back(numbers[axis]);
  }
  NodeId x = squeezed(to, node.operands[0]);
  if (!std::is_sorted(perm.begin(), perm.end())) x = to.transpose(x, perm);
  return to.reshape(x, node.shape);
}

Result slice_units(Builder& to, const Node& node) {
  if (node.op != Op::slice && node.op != Op::pad) return std::nullopt;
  const std::vector<char> kept = idle_axes_out(to, node);
  if (all_kept(kept)) return std::nullopt;
  Node inner = node;
  inner.ints = kept_of(node.ints, kept);
  inner.ints2 = kept_of(node.ints2, kept);
  return without_axes(to, std::move(inner), kept);
}

Result concat_units(Builder& to, const Node& node) {
  if (node.op != Op::concat && node.op != Op::take_along) return std::nullopt;
  std::vector<char> kept = idle_axes_out(to, node);
  kept[static_cast<size_t>(node.ints[0])] = 1;
  if (all_kept(kept)) return std::nullopt;
  Node inner = node;
  inner.ints[0] = numbers_of(kept)[static_cast<size_t>(node.ints[0])];
  return without_axes(to, std::move(inner), kept);
}

Result contract_units(Builder& to, const Node& node) {
  if (node.op != Op::contract) return std::nullopt;
  const absl::StatusOr<Einsum> einsum = parse_einsum(node.text);
  if (!einsum.ok()) return std::nullopt;
  const auto letters_of = [&](const std::string& letters, const Shape& shape) {
    std::string result;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] != 1) result += letters[i];
    }
    return result;
  };
  const Shape a = to.node(node.operands[0]).shape, b = to.node(node.operands[1]).shape;
  if (!has_units(a) && !has_units(b)) return std::nullopt;
  const std::string text =
      cat(letters_of(einsum->a, a), ",", letters_of(einsum->b, b), "->", letters_of(einsum->out, node.shape));
  const NodeId x = squeezed(to, node.operands[0]), y = squeezed(to, node.operands[1]);
  return to.reshape(to.contract(x, y, text, node.dtype, node.tf32), node.shape);
}

}  // namespace wl::rule

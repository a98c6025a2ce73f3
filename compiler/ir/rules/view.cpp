// Rules for views and gathers (take_along). They reduce the number of views, and move views and gathers closer to the
// inputs and to smaller tensors.
#include <algorithm>

#include "compiler/ir/index_map.h"
#include "compiler/ir/ranges.h"
#include "compiler/ir/rules/internal.h"

namespace wl::rule {
namespace {

// Returns operand 0 of `node` if the op of `node` is `outer` and the op of that operand is `inner`; otherwise null.
const Node* operand_of(const Builder& to, const Node& node, Op outer, Op inner) {
  if (node.op != outer || to.node(node.operands[0]).op != inner) return nullptr;
  return &to.node(node.operands[0]);
}

// Whether all indices of the take_along are known to lie inside its axis, so that it never reports an error. An index
// outside the axis must be reported even if every index would select the same value.
bool tells_of_nothing(const Builder& to, const Node& take) {
  return takes_inside([&to](NodeId id) -> const Node& { return to.node(id); }, take);
}

}  // namespace

std::optional<NodeId> identity_view(Builder& to, const Node& node) {
  if (class_of(node.op) != OpClass::kView || to.node(node.operands[0]).shape != node.shape) return std::nullopt;
  bool identity = info(node.op).view == ViewKind::kSameOrder || node.operands.size() == 1;
  if (info(node.op).view == ViewKind::kAxes) {
    const ViewMap map = view_map(node, to.node(node.operands[0]).shape);
    for (size_t i = 0; i < map.axes.size(); ++i) identity = identity && map.unmoved(i) == i;
  }
  return identity ? std::optional(node.operands[0]) : std::nullopt;
}

std::optional<NodeId> reshape_reshape(Builder& to, const Node& node) {
  const Node* inner = operand_of(to, node, Op::reshape, Op::reshape);
  return inner ? std::optional(to.reshape(inner->operands[0], node.shape)) : std::nullopt;
}

std::optional<NodeId> transpose_transpose(Builder& to, const Node& node) {
  const Node* inner = operand_of(to, node, Op::transpose, Op::transpose);
  if (inner == nullptr) return std::nullopt;
  std::vector<int64_t> perm;
  for (int64_t axis : node.ints) perm.push_back(inner->ints[axis]);
  return to.transpose(inner->operands[0], perm);
}

std::optional<NodeId> broadcast_broadcast(Builder& to, const Node& node) {
  const Node* inner = operand_of(to, node, Op::broadcast, Op::broadcast);
  if (inner == nullptr) return std::nullopt;
  std::vector<int64_t> dims;
  for (int64_t axis : inner->ints) dims.push_back(node.ints[axis]);
  return to.broadcast(inner->operands[0], node.shape, dims);
}

std::optional<NodeId> slice_slice(Builder& to, const Node& node) {
  const Node* inner = operand_of(to, node, Op::slice, Op::slice);
  if (inner == nullptr || elements(node.shape) == 0) return std::nullopt;
  std::vector<int64_t> starts(node.ints.size()), steps(node.ints.size());
  for (size_t i = 0; i < starts.size(); ++i) {
    starts[i] = inner->ints[i] + node.ints[i] * inner->ints2[i];
    // The step along an axis of extent 1 has no effect and is set to 1, since the product of two large steps could
    // overflow.
    steps[i] = node.shape[i] == 1 ? 1 : node.ints2[i] * inner->ints2[i];
  }
  return to.slice(inner->operands[0], starts, steps, node.shape);
}

std::optional<NodeId> view_constant(Builder& to, const Node& node) {
  if (class_of(node.op) != OpClass::kView) return std::nullopt;
  const Node first = to.node(node.operands[0]);
  if (first.op != Op::constant) return std::nullopt;
  if (node.op == Op::pad && node.value != first.value) return std::nullopt;
  for (size_t i = 1; i < node.operands.size(); ++i) {
    const Node& other = to.node(node.operands[i]);
    if (other.op != Op::constant || other.value != first.value) return std::nullopt;
  }
  return to.constant(first.value, first.dtype, node.shape);
}

// Moves a reshape before a broadcast. Splits the shapes before and after the reshape into the shortest groups of
// neighbouring axes with equal products. The rule applies if each group has either only axes of the broadcast's operand
// or only axes along which the broadcast repeats it. Axes of extent 1 that the reshape adds are added by a reshape
// after the new broadcast (rules/units.cpp).
std::optional<NodeId> reshape_broadcast(Builder& to, const Node& node) {
  const Node* wide = operand_of(to, node, Op::reshape, Op::broadcast);
  if (wide == nullptr || elements(node.shape) == 0) return std::nullopt;
  const Shape from = wide->shape, into = without_units(node.shape);
  if (from == into) return std::nullopt;
  const std::vector<int64_t> dims = wide->ints;
  Shape narrow;
  std::vector<int64_t> new_dims;
  for (size_t i = 0, j = 0; i < from.size() || j < into.size();) {
    const size_t first = i, new_first = j;
    int64_t a = i < from.size() ? from[i++] : 1, b = j < into.size() ? into[j++] : 1;
    while (a != b) {
      int64_t& smaller = a < b ? a : b;
      smaller *= a < b ? from[i++] : into[j++];
    }
    bool has_own = false, has_repeated = false;
    for (size_t k = first; k < i; ++k) {
      if (from[k] == 1) continue;
      const bool own = std::binary_search(dims.begin(), dims.end(), static_cast<int64_t>(k));
      has_own |= own;
      has_repeated |= !own;
    }
    if (has_own && has_repeated) return std::nullopt;
    for (size_t k = new_first; k < j && has_own; ++k) {
      narrow.push_back(into[k]);
      new_dims.push_back(static_cast<int64_t>(k));
    }
  }
  const NodeId result = to.broadcast(to.reshape(wide->operands[0], narrow), into, new_dims);
  return into == node.shape ? result : to.reshape(result, node.shape);
}

std::optional<NodeId> broadcast_reshape(Builder& to, const Node& node) {
  const Node* inner = operand_of(to, node, Op::broadcast, Op::reshape);
  if (inner == nullptr) return std::nullopt;
  const NodeId x = inner->operands[0];
  if (to.node(x).shape != without_units(inner->shape)) return std::nullopt;
  std::vector<int64_t> dims;
  for (size_t i = 0; i < inner->shape.size(); ++i) {
    if (inner->shape[i] != 1) dims.push_back(node.ints[i]);
  }
  return to.broadcast(x, node.shape, dims);
}

// Whether the elements of a table (operand 0 of a take_along) are equal along the whole axis, so that the index does
// not matter.
static bool same_anywhere(const Node& table, int64_t axis) {
  const bool repeated = table.op == Op::broadcast && !std::binary_search(table.ints.begin(), table.ints.end(), axis);
  return repeated || table.op == Op::constant || table.shape[static_cast<size_t>(axis)] == 1;
}

// Returns the result of a take_along whose index does not matter: same_anywhere() must hold for `table`.
static NodeId taken_anywhere(Builder& to, NodeId table, const Node& take) {
  const Node whole = to.node(table);
  const int64_t axis = take.ints[0];
  if (whole.op == Op::constant) return to.constant(whole.value, whole.dtype, take.shape);
  if (whole.shape[static_cast<size_t>(axis)] == 1) {
    Shape without = whole.shape;
    without.erase(without.begin() + axis);
    std::vector<int64_t> dims;
    for (int64_t i = 0; i < static_cast<int64_t>(whole.shape.size()); ++i)
      if (i != axis) dims.push_back(i);
    return to.broadcast(to.reshape(table, without), take.shape, dims);
  }
  return to.broadcast(whole.operands[0], take.shape, std::vector<int64_t>(whole.ints));
}

// Applies the take_along to the operands of an elementwise op instead of to its result. If no operand needs the index,
// the new nodes cannot report an index outside its axis, so the rule applies only if there can be no such index.
std::optional<NodeId> take_elementwise(Builder& to, const Node& node) {
  if (node.op != Op::take_along) return std::nullopt;
  const Node whole = to.node(node.operands[0]);
  if (class_of(whole.op) != OpClass::kElementwise || elements(node.shape) >= elements(whole.shape)) return std::nullopt;
  const auto same = [&](NodeId operand) { return same_anywhere(to.node(operand), node.ints[0]); };
  if (std::all_of(whole.operands.begin(), whole.operands.end(), same) && !tells_of_nothing(to, node))
    return std::nullopt;
  Node taken{.op = whole.op, .dtype = whole.dtype};
  for (const NodeId operand : whole.operands)
    taken.operands.push_back(same(operand) ? taken_anywhere(to, operand, node)
                                           : to.take_along(operand, node.operands[1], node.ints[0]));
  return to.add_node(std::move(taken));
}

std::optional<NodeId> take_broadcast(Builder& to, const Node& node) {
  if (node.op != Op::take_along || !same_anywhere(to.node(node.operands[0]), node.ints[0])) return std::nullopt;
  if (!tells_of_nothing(to, node)) return std::nullopt;
  return taken_anywhere(to, node.operands[0], node);
}

}  // namespace wl::rule

// Rules about arithmetic: each is exact in the reals, and in floating point within the bounds of docs/numerics.md.
#include <cmath>

#include "compiler/ir/bound.h"
#include "compiler/ir/rules_internal.h"

namespace wl {

bool is_commutative(Op op) {
  switch (op) {
    case Op::add:
    case Op::mul:
    case Op::min:
    case Op::max:
    case Op::eq:
    case Op::ne:
    case Op::logical_and:
    case Op::logical_or:
    case Op::logical_xor:
    case Op::bit_and:
    case Op::bit_or:
    case Op::bit_xor:
      return true;
    default:
      return false;
  }
}

namespace rule {
namespace {

bool is_constant(const Builder& to, NodeId id, double value) {
  return to.node(id).op == Op::constant && to.node(id).value == value;
}

}  // namespace

std::optional<NodeId> commute(Builder& to, const Node& node) {
  if (!is_commutative(node.op)) return std::nullopt;
  const auto key = [&](NodeId id) { return std::pair(to.node(id).op == Op::constant, id); };
  if (key(node.operands[0]) <= key(node.operands[1])) return std::nullopt;
  return to.elementwise(node.op, {node.operands[1], node.operands[0]});
}

std::optional<NodeId> add_zero(Builder& to, const Node& node) {
  if (node.op != Op::add && node.op != Op::sub) return std::nullopt;
  if (is_constant(to, node.operands[1], 0)) return node.operands[0];
  if (node.op == Op::add && is_constant(to, node.operands[0], 0)) return node.operands[1];
  return std::nullopt;
}

std::optional<NodeId> mul_one(Builder& to, const Node& node) {
  if (node.op != Op::mul && node.op != Op::div) return std::nullopt;
  if (is_constant(to, node.operands[1], 1)) return node.operands[0];
  if (node.op == Op::mul && is_constant(to, node.operands[0], 1)) return node.operands[1];
  return std::nullopt;
}

std::optional<NodeId> integer_mul_zero(Builder& to, const Node& node) {
  if (node.op != Op::mul || is_float(node.dtype)) return std::nullopt;
  for (NodeId operand : node.operands) {
    if (is_constant(to, operand, 0)) return operand;
  }
  return std::nullopt;
}

std::optional<NodeId> double_neg(Builder& to, const Node& node) {
  if (node.op != Op::neg || to.node(node.operands[0]).op != Op::neg) return std::nullopt;
  return to.node(node.operands[0]).operands[0];
}

std::optional<NodeId> cast_same(Builder& to, const Node& node) {
  if (node.op != Op::cast || to.node(node.operands[0]).dtype != node.dtype) return std::nullopt;
  return node.operands[0];
}

std::optional<NodeId> div_power_of_two(Builder& to, const Node& node) {
  if (node.op != Op::div || !is_float(node.dtype)) return std::nullopt;
  const Node& by = to.node(node.operands[1]);
  int exponent = 0;
  if (by.op != Op::constant || std::fabs(std::frexp(by.value, &exponent)) != 0.5) return std::nullopt;
  // The reciprocal must be a number of the dtype, and a normal one; f16's smallest is 2^-14, f8e4m3fn's 2^-6.
  if (std::abs(exponent) > (node.dtype == DType::f8e4m3fn ? 5 : 13) || by.value == 1) return std::nullopt;
  return to.mul(node.operands[0], to.constant(1 / by.value, node.dtype, node.shape));
}

std::optional<NodeId> pow_small(Builder& to, const Node& node) {
  if (node.op != Op::pow || !is_float(node.dtype)) return std::nullopt;
  const NodeId x = node.operands[0];
  if (is_constant(to, node.operands[1], 1)) return x;
  if (is_constant(to, node.operands[1], 2)) return to.mul(x, x);
  if (is_constant(to, node.operands[1], 3)) return to.mul(to.mul(x, x), x);
  if (is_constant(to, node.operands[1], 0.5)) return to.elementwise(Op::sqrt, {x});
  return std::nullopt;
}

std::optional<NodeId> one_over(Builder& to, const Node& node) {
  if (node.op != Op::div || !is_float(node.dtype) || !is_constant(to, node.operands[0], 1)) return std::nullopt;
  return to.elementwise(Op::rcp, {node.operands[1]});
}

std::optional<NodeId> rcp_sqrt(Builder& to, const Node& node) {
  if (node.op != Op::rcp || to.node(node.operands[0]).op != Op::sqrt) return std::nullopt;
  return to.elementwise(Op::rsqrt, {to.node(node.operands[0]).operands[0]});
}

std::optional<NodeId> fold_constants(Builder& to, const Node& node) {
  if (class_of(node.op) != OpClass::kElementwise) return std::nullopt;
  Estimate x[3];
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const Node& operand = to.node(node.operands[i]);
    if (operand.op != Op::constant) return std::nullopt;
    x[i].value = operand.value;
  }
  const DType from = to.node(node.operands[node.op == Op::select ? 1 : 0]).dtype;
  const Estimate result = Elementwise(node.op, from, node.dtype)(x);
  if (!std::isfinite(result.bound())) return std::nullopt;
  return to.constant(result.value, node.dtype, node.shape);
}

std::optional<NodeId> hoist_broadcast(Builder& to, const Node& node) {
  if (class_of(node.op) != OpClass::kElementwise) return std::nullopt;
  NodeId first = -1;
  for (NodeId operand : node.operands) {
    const Node& x = to.node(operand);
    if (x.op == Op::constant) continue;
    if (x.op != Op::broadcast) return std::nullopt;
    if (first < 0) first = operand;
    const Node& other = to.node(first);
    if (x.ints != other.ints || to.node(x.operands[0]).shape != to.node(other.operands[0]).shape) return std::nullopt;
  }
  if (first < 0) return std::nullopt;
  const Node wide = to.node(first);
  const Shape narrow = to.node(wide.operands[0]).shape;
  if (elements(narrow) >= elements(wide.shape)) return std::nullopt;
  Node inner{.op = node.op, .dtype = node.dtype};
  for (NodeId operand : node.operands) {
    const Node x = to.node(operand);
    inner.operands.push_back(x.op == Op::constant ? to.constant(x.value, x.dtype, narrow) : x.operands[0]);
  }
  return to.broadcast(to.add_node(inner), wide.shape, wide.ints);
}

}  // namespace rule
}  // namespace wl

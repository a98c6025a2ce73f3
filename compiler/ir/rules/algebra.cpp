// Rewrite rules of arithmetic. Each is exact for real numbers, and its result in floating point stays within the bounds
// of docs/numerics.md.
#include <cmath>
#include <limits>

#include "compiler/ir/bound.h"
#include "compiler/ir/ranges.h"
#include "compiler/ir/rules/internal.h"

namespace wl::rule {
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

namespace {

// Returns the reciprocal of the divisor of `node`, if `node` is a quotient of floats and the divisor is a constant
// other than 1 whose reciprocal is a normal number; otherwise nullopt.
std::optional<double> constant_reciprocal(Builder& to, const Node& node) {
  if (node.op != Op::div || !is_float(node.dtype)) return std::nullopt;
  const Node& by = to.node(node.operands[1]);
  if (by.op != Op::constant || by.value == 1 || !std::isfinite(by.value) || by.value == 0) return std::nullopt;
  const DTypeInfo& type = info(node.dtype);
  const double reciprocal = round_to(node.dtype, 1 / by.value), least = type.smallest / (2 * type.unit_roundoff);
  if (std::fabs(reciprocal) < least || !std::isfinite(reciprocal)) return std::nullopt;
  return reciprocal;
}

}  // namespace

std::optional<NodeId> div_power(Builder& to, const Node& node) {
  const std::optional<double> reciprocal = constant_reciprocal(to, node);
  if (!reciprocal || *reciprocal * to.node(node.operands[1]).value != 1) return std::nullopt;
  return to.mul(node.operands[0], to.constant(*reciprocal, node.dtype, node.shape));
}

std::optional<NodeId> div_constant(Builder& to, const Node& node) {
  const std::optional<double> reciprocal = constant_reciprocal(to, node);
  // Eight-bit floats are still divided: a product with the reciprocal rounds twice, which their few bits do not allow.
  if (!reciprocal || size_of(node.dtype) < 2) return std::nullopt;
  return to.mul(node.operands[0], to.constant(*reciprocal, node.dtype, node.shape));
}

std::optional<NodeId> div_sqrt(Builder& to, const Node& node) {
  if (node.op != Op::div || size_of(node.dtype) < 2 || to.node(node.operands[1]).op != Op::sqrt) return std::nullopt;
  const NodeId square = to.node(node.operands[1]).operands[0];
  return to.mul(node.operands[0], to.elementwise(Op::rsqrt, {square}));
}

std::optional<NodeId> div_repeated(Builder& to, const Node& node) {
  if (node.op != Op::div || (node.dtype != DType::f32 && node.dtype != DType::f64 && node.dtype != DType::bf16))
    return std::nullopt;
  const Node wide = to.node(node.operands[1]);
  if (wide.op != Op::broadcast || elements(to.node(wide.operands[0]).shape) >= elements(wide.shape))
    return std::nullopt;
  if (!has_finite_reciprocal(to, wide.operands[0])) return std::nullopt;
  const NodeId reciprocal = to.elementwise(Op::rcp, {wide.operands[0]});
  return to.mul(node.operands[0], to.broadcast(reciprocal, wide.shape, wide.ints));
}

std::optional<NodeId> neg_one(Builder& to, const Node& node) {
  if (!is_float(node.dtype)) return std::nullopt;
  if (node.op == Op::mul && is_constant(to, node.operands[1], -1)) return to.elementwise(Op::neg, {node.operands[0]});
  if (node.op == Op::sub && is_constant(to, node.operands[0], 0)) return to.elementwise(Op::neg, {node.operands[1]});
  return std::nullopt;
}

std::optional<NodeId> neg_add(Builder& to, const Node& node) {
  if (node.op != Op::add && node.op != Op::sub) return std::nullopt;
  const auto negated = [&](size_t k) {
    const Node& x = to.node(node.operands[k]);
    return x.op == Op::neg ? x.operands[0] : -1;
  };
  if (const NodeId x = negated(1); x >= 0) {
    return to.elementwise(node.op == Op::add ? Op::sub : Op::add, {node.operands[0], x});
  }
  if (const NodeId x = negated(0); x >= 0 && node.op == Op::add) return to.sub(node.operands[1], x);
  return std::nullopt;
}

std::optional<NodeId> sub_constant(Builder& to, const Node& node) {
  if (node.op != Op::sub || !is_float(node.dtype)) return std::nullopt;
  const Node by = to.node(node.operands[1]);
  if (by.op != Op::constant || by.value == 0 || std::isnan(by.value)) return std::nullopt;
  return to.add(node.operands[0], to.constant(-by.value, node.dtype, node.shape));
}

std::optional<NodeId> sigmoid(Builder& to, const Node& node) {
  if (node.op != Op::rcp && (node.op != Op::div || !is_float(node.dtype))) return std::nullopt;
  const Node& sum = to.node(node.operands.back());
  if (sum.op != Op::add) return std::nullopt;
  for (size_t k = 0; k < 2; ++k) {
    const Node& exp = to.node(sum.operands[k]);
    if (exp.op != Op::exp || !is_constant(to, sum.operands[1 - k], 1)) continue;
    const NodeId minus = exp.operands[0];
    const NodeId x = to.node(minus).op == Op::neg ? to.node(minus).operands[0] : to.elementwise(Op::neg, {minus});
    const NodeId result = to.elementwise(Op::sigmoid, {x});
    return node.op == Op::rcp ? result : to.mul(node.operands[0], result);
  }
  return std::nullopt;
}

std::optional<NodeId> pow_small(Builder& to, const Node& node) {
  if (node.op != Op::pow || !is_float(node.dtype)) return std::nullopt;
  const NodeId x = node.operands[0];
  if (is_constant(to, node.operands[1], 1)) return x;
  if (is_constant(to, node.operands[1], -1)) return to.elementwise(Op::rcp, {x});
  if (is_constant(to, node.operands[1], 2)) return to.mul(x, x);
  if (is_constant(to, node.operands[1], 3)) return to.mul(to.mul(x, x), x);
  if (!is_constant(to, node.operands[1], 0.5)) return std::nullopt;
  // The square root of -infinity is NaN, and its power is infinity.
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const NodeId root = to.elementwise(Op::sqrt, {x});
  if (range_of([&to](NodeId id) -> const Node& { return to.node(id); }, x).low > -kInfinity) return root;
  const NodeId is_least = to.elementwise(Op::eq, {x, to.constant_like(-kInfinity, x)});
  return to.elementwise(Op::select, {is_least, to.constant_like(kInfinity, x), root});
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
    if (!is_float(operand.dtype)) x[i].whole = bits_of(operand.dtype, operand.value);
  }
  const DType from = to.node(node.operands[node.op == Op::select ? 1 : 0]).dtype;
  const Estimate result = Elementwise(node.op, from, node.dtype)(x);
  if (!std::isfinite(result.bound())) return std::nullopt;
  // A constant is kept as a double, so a 64-bit integer that a double cannot hold exactly is not folded.
  if (!is_float(node.dtype) && bits_of(node.dtype, result.value) != bits_of(result)) return std::nullopt;
  if (std::isinf(result.value) && !std::isinf(round_to(node.dtype, result.value))) return std::nullopt;
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

}  // namespace wl::rule

// Rules that move views and constant factors through arithmetic: towards the outputs, where they may cancel against
// other views and factors, or, for views, into the letters of a contraction.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/ir/rules/internal.h"

namespace wl::rule {
namespace {

// Whether the range of the dtype is so wide that an intermediate result may be too large or too small by a factor of
// 2^8 (docs/numerics.md).
bool has_wide_range(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16;
}

// Returns the constant factor of a product, which is the last operand because of the rule commute. Returns null if
// `product` is not the product of a constant and a value that is no constant.
const Node* scale_of(const Builder& to, NodeId product) {
  const Node& node = to.node(product);
  if (node.op != Op::mul || to.node(node.operands[1]).op != Op::constant) return nullptr;
  return to.node(node.operands[0]).op == Op::constant ? nullptr : &to.node(node.operands[1]);
}

bool is_moderate(double scale, int exponent) {
  const double magnitude = std::fabs(scale);
  return magnitude >= std::ldexp(1, -exponent) && magnitude <= std::ldexp(1, exponent);
}

// Returns the value to which a chain of reshapes and transposes is applied.
const Node& behind_views(const Builder& to, NodeId id) {
  while (to.node(id).op == Op::reshape || to.node(id).op == Op::transpose) id = to.node(id).operands[0];
  return to.node(id);
}

bool is_power_of_two(double value) {
  int exponent = 0;
  return std::fabs(std::frexp(value, &exponent)) == 0.5;
}

}  // namespace

Result hoist_view(Builder& to, const Node& node) {
  if (class_of(node.op) != OpClass::kElementwise) return std::nullopt;
  NodeId first = -1;
  for (NodeId operand : node.operands) {
    const Node& x = to.node(operand);
    if (x.op == Op::constant) continue;
    if (x.op != Op::reshape && x.op != Op::transpose) return std::nullopt;
    if (first < 0) first = operand;
    const Node& other = to.node(first);
    if (x.op != other.op || x.ints != other.ints || to.node(x.operands[0]).shape != to.node(other.operands[0]).shape)
      return std::nullopt;
  }
  if (first < 0) return std::nullopt;
  Node view = to.node(first);
  const Shape from = to.node(view.operands[0]).shape;
  if (without_units(from) != from) return std::nullopt;  // a view that may drop axes of extent 1 does not move
  Node inner{.op = node.op, .dtype = node.dtype};
  for (NodeId operand : node.operands) {
    const Node x = to.node(operand);
    inner.operands.push_back(x.op == Op::constant ? to.constant(x.value, x.dtype, from) : x.operands[0]);
  }
  view.operands = {to.add_node(std::move(inner))};
  return to.add_node(std::move(view));
}

Result reduce_transpose(Builder& to, const Node& node) {
  if (class_of(node.op) != OpClass::kReduce) return std::nullopt;
  const Node moved = to.node(node.operands[0]);
  if (moved.op != Op::transpose) return std::nullopt;
  std::vector<int64_t> axes, left;
  for (size_t i = 0; i < moved.ints.size(); ++i) {
    const bool goes = std::binary_search(node.ints.begin(), node.ints.end(), static_cast<int64_t>(i));
    (goes ? axes : left).push_back(moved.ints[i]);
  }
  std::sort(axes.begin(), axes.end());
  std::vector<int64_t> perm;  // how the axes that are not reduced are permuted
  for (int64_t axis : left)
    perm.push_back(std::count_if(left.begin(), left.end(), [&](int64_t other) { return other < axis; }));
  const NodeId x = to.reduce(node.op, moved.operands[0], axes);
  return std::is_sorted(perm.begin(), perm.end()) ? x : to.transpose(x, perm);
}

// Lets a contraction read the operand of a transpose, with its letters permuted, instead of the transpose. This applies
// only if that operand is stored anyway, since a value that a kernel computes can be stored in any order at no cost.
Result contract_transpose(Builder& to, const Node& node) {
  if (node.op != Op::contract) return std::nullopt;
  const absl::StatusOr<Einsum> einsum = parse_einsum(node.text);
  if (!einsum.ok()) return std::nullopt;
  std::string letters[2] = {einsum->a, einsum->b};
  std::vector<NodeId> operands = node.operands;
  for (size_t k = 0; k < 2; ++k) {
    const Node& x = to.node(operands[k]);
    const OpClass behind = class_of(behind_views(to, operands[k]).op);
    if (x.op != Op::transpose || (behind != OpClass::kLeaf && behind != OpClass::kView)) continue;
    const std::string seen = letters[k];
    for (size_t i = 0; i < seen.size(); ++i) letters[k][static_cast<size_t>(x.ints[i])] = seen[i];
    operands[k] = x.operands[0];
  }
  if (operands == node.operands) return std::nullopt;
  return to.contract(operands[0], operands[1], cat(letters[0], ",", letters[1], "->", einsum->out), node.dtype,
                     node.tf32);
}

// Transposes those operands of a contraction that a kernel computes, so that their letters have a fixed order. Left
// operand: batch letters, rows, summed letters. Right operand: batch letters, summed letters, columns. Letters of one
// kind are in the order of the result; summed letters are in the order of the left operand.
Result contract_order(Builder& to, const Node& node) {
  if (node.op != Op::contract) return std::nullopt;
  const absl::StatusOr<Einsum> einsum = parse_einsum(node.text);
  if (!einsum.ok()) return std::nullopt;
  const auto in = [](const std::string& list, char letter) { return list.find(letter) != std::string::npos; };
  const std::string& out = einsum->out;
  std::string letters[2] = {einsum->a, einsum->b};
  std::vector<NodeId> operands = node.operands;
  for (size_t k = 0; k < 2; ++k) {
    const OpClass behind = class_of(behind_views(to, operands[k]).op);
    if (behind == OpClass::kLeaf || behind == OpClass::kView) continue;
    const std::string &mine = letters[k], &other = k == 0 ? einsum->b : einsum->a;
    // ordered[r][o] has the letters of this operand that are (r = 1) or are not (r = 0) in the result, and that are
    // (o = 1) or are not (o = 0) in the other operand.
    std::string ordered[2][2];
    for (char c : out + einsum->a + einsum->b) {
      std::string& list = ordered[in(out, c)][in(other, c)];
      if (in(mine, c) && !in(list, c)) list += c;
    }
    const std::string wanted = k == 0 ? ordered[1][1] + ordered[1][0] + ordered[0][1] + ordered[0][0]
                                      : ordered[1][1] + ordered[0][1] + ordered[0][0] + ordered[1][0];
    if (wanted == mine) continue;
    std::vector<int64_t> perm;
    for (char c : wanted) perm.push_back(static_cast<int64_t>(mine.find(c)));
    operands[k] = to.transpose(operands[k], perm);
    letters[k] = wanted;
  }
  if (operands == node.operands) return std::nullopt;
  return to.contract(operands[0], operands[1], cat(letters[0], ",", letters[1], "->", out), node.dtype, node.tf32);
}

// Renames the letters of a contraction by their role: batch letters become b, c.., rows m.., columns n.., letters that
// are summed in both operands k.., and letters that are summed in one operand only a, A, B and so on. Letters of one
// role are numbered in the order of the result, summed ones in the order of the left operand.
Result contract_letters(Builder& to, const Node& node) {
  if (node.op != Op::contract) return std::nullopt;
  const absl::StatusOr<Einsum> einsum = parse_einsum(node.text);
  if (!einsum.ok()) return std::nullopt;
  constexpr std::string_view kNames[] = {"bcdefgh", "mopqrst", "nuvwxyz", "klij", "aABCDEFGHIJKLMNOPQRSTUVWXYZ"};
  size_t used[std::size(kNames)] = {};
  std::string names(128, 0);
  for (char letter : einsum->out + einsum->a + einsum->b) {
    char& name = names[static_cast<size_t>(letter)];
    if (name != 0) continue;
    const bool a = einsum->a.find(letter) != std::string::npos, b = einsum->b.find(letter) != std::string::npos;
    const bool out = einsum->out.find(letter) != std::string::npos;
    const size_t role = out ? (a && b ? 0 : a ? 1 : 2) : a && b ? 3 : 4;
    if (used[role] == kNames[role].size()) return std::nullopt;
    name = kNames[role][used[role]++];
  }
  std::string text = node.text;
  for (char& c : text) {
    if (names[static_cast<size_t>(c) & 127] != 0) c = names[static_cast<size_t>(c)];
  }
  if (text == node.text) return std::nullopt;
  return to.contract(node.operands[0], node.operands[1], text, node.dtype, node.tf32);
}

// Moves a constant factor of an operand of a product out of the product if it is a power of two and at least 1. A
// factor below 1 stays inside, because without it the product could overflow where the result does not; it is moved to
// the operand with the higher node number.
Result scale_product(Builder& to, const Node& node) {
  if (node.op != Op::mul || !has_wide_range(node.dtype)) return std::nullopt;
  const auto moves = [](const Node& scale) { return is_power_of_two(scale.value) && is_moderate(scale.value, 4); };
  const Node outer = to.node(node.operands[1]);
  if (outer.op == Op::constant) {
    const Node product = to.node(node.operands[0]);
    if (!moves(outer) || std::fabs(outer.value) >= 1 || product.op != Op::mul) return std::nullopt;
    if (to.node(product.operands[1]).op == Op::constant) return std::nullopt;
    return to.mul(product.operands[0], to.mul(product.operands[1], node.operands[1]));
  }
  for (size_t k = 0; k < 2; ++k) {
    const Node* found = scale_of(to, node.operands[k]);
    if (found == nullptr || !moves(*found)) continue;
    const bool grows = std::fabs(found->value) >= 1;
    const NodeId constant = to.node(node.operands[k]).operands[1], x = to.node(node.operands[k]).operands[0];
    const NodeId y = node.operands[1 - k];
    if (grows) return to.mul(to.mul(x, y), constant);
    if (y > x) return to.mul(x, to.mul(y, constant));
  }
  return std::nullopt;
}

Result scale_scale(Builder& to, const Node& node) {
  if (node.op != Op::mul || !has_wide_range(node.dtype)) return std::nullopt;
  const Node& outer = to.node(node.operands[1]);
  if (outer.op != Op::constant) return std::nullopt;
  const Node* inner = scale_of(to, node.operands[0]);
  if (inner == nullptr) return std::nullopt;
  if (!is_moderate(outer.value, 8) || !is_moderate(inner->value, 8)) return std::nullopt;
  const double product = outer.value * inner->value;
  const NodeId x = to.node(node.operands[0]).operands[0];
  return to.mul(x, to.constant(product, node.dtype, node.shape));
}

Result scale_contract(Builder& to, const Node& node) {
  if (node.op != Op::contract || !has_wide_range(node.dtype)) return std::nullopt;
  for (size_t k = 0; k < 2; ++k) {
    std::vector<NodeId> views, operands = node.operands;
    NodeId& x = operands[k];
    for (; to.node(x).op == Op::reshape || to.node(x).op == Op::transpose; x = to.node(x).operands[0])
      views.push_back(x);
    const Node* found = scale_of(to, x);
    if (found == nullptr || !is_moderate(found->value, 8)) continue;
    const double scale = found->value;
    x = to.node(x).operands[0];
    for (; !views.empty(); views.pop_back()) {
      Node view = to.node(views.back());
      view.operands = {x};
      x = to.add_node(std::move(view));
    }
    const NodeId product = to.contract(operands[0], operands[1], node.text, node.dtype, node.tf32);
    return to.mul(product, to.constant(scale, node.dtype, node.shape));
  }
  return std::nullopt;
}

}  // namespace wl::rule

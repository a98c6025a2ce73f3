// Rules for quantised integers of eight bits (i8 or u8, here called bytes). Products of dequantised values become
// products of the bytes. Bytes that are dequantised and then quantised with the same scale and zero point stay as they
// were.
#include <algorithm>
#include <cmath>

#include "compiler/ir/rules/internal.h"

namespace wl::rule {
namespace {

// The largest number of terms for which neither the sum of products of eight-bit integers, nor the terms that zero
// points add to it, can overflow an i32: 2^15 * 255 * 255 < 2^31.
constexpr int64_t kDeepest = int64_t{1} << 15;

// A dequantised value, scale * (bytes - zero) as ONNX's DequantizeLinear computes it, possibly seen through views. The
// bytes are integers of dtype i8 or u8.
struct Dequantised {
  NodeId bytes = -1;  // the node with the quantised integers, to which `views` are applied, the first one first
  std::vector<NodeId> views;
  double zero = 0, scale = 1;
  NodeId scales = -1;  // node of further factors, one for each position along `axes`; -1: there are no such factors
  std::vector<int64_t> axes;
  bool leaf = false;  // whether node `bytes` is an input of the graph, as weights are
};

bool is_moderate(double scale) {
  return std::fabs(scale) >= std::ldexp(1, -60) && std::fabs(scale) <= std::ldexp(1, 60);
}

bool is_scaled(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64;
}

// Returns the axis of a view along which each slice of the view has the same elements, in the same order, as the
// corresponding slice of its operand along `axis`; -1 if there is none.
int64_t axis_of_view(const Builder& to, const Node& view, int64_t axis) {
  const Shape& from = to.node(view.operands[0]).shape;
  const auto at = static_cast<size_t>(axis);
  const auto listed = std::find(view.ints.begin(), view.ints.end(), axis);
  switch (view.op) {
    case Op::transpose:
      return listed - view.ints.begin();
    case Op::reshape: {
      int64_t before = 1, outer = 1;
      for (size_t i = 0; i < at; ++i) before *= from[i];
      for (size_t i = 0; i < view.shape.size(); outer *= view.shape[i++])
        if (outer == before && view.shape[i] == from[at]) return static_cast<int64_t>(i);
      return -1;
    }
    case Op::window:
      return listed == view.ints.end() ? axis : -1;
    case Op::pad:
      return view.shape[at] == from[at] && view.ints[at] == 0 ? axis : -1;
    case Op::slice:
      return view.shape[at] == from[at] && view.ints[at] == 0 && view.ints2[at] == 1 ? axis : -1;
    default:
      return -1;
  }
}

// Finds the scale among the operands of a product, puts it into `out` and returns the other operand. A scale is a
// constant, or a broadcast of fewer values, which become `out.scales`. Returns -1 if no operand is a scale, if `out`
// has a scale already, or if a view of `out` mixes the axes along which the scale varies with other axes.
NodeId take_factor(const Builder& to, const Node& product, Dequantised& out) {
  if (out.scales >= 0 || out.scale != 1) return -1;
  for (const int side : {1, 0}) {
    const Node& factor = to.node(product.operands[side]);
    const NodeId rest = product.operands[1 - side];
    if (factor.op == Op::constant && is_moderate(factor.value)) {
      out.scale = factor.value;
      return rest;
    }
    if (factor.op != Op::broadcast || elements(to.node(factor.operands[0]).shape) >= elements(factor.shape)) continue;
    out.scales = factor.operands[0];
    const Shape& extents = to.node(out.scales).shape;
    for (size_t i = 0; i < extents.size(); ++i)
      if (extents[i] != 1) out.axes.push_back(factor.ints[i]);
    for (const NodeId id : out.views)
      for (int64_t& axis : out.axes)
        if (axis >= 0) axis = axis_of_view(to, to.node(id), axis);
    const bool lost = std::any_of(out.axes.begin(), out.axes.end(), [](int64_t axis) { return axis < 0; });
    return lost ? -1 : rest;
  }
  return -1;
}

// Returns from which integers of eight bits, and how, the value `id` was dequantised; nullopt if it was not.
std::optional<Dequantised> dequantised(const Builder& to, NodeId id) {
  Dequantised out;
  bool moved = false;  // whether the subtraction of the zero point has been found
  for (;;) {
    const Node& node = to.node(id);
    switch (node.op) {
      case Op::pad:
        if (node.value != 0 || moved) return std::nullopt;
        [[fallthrough]];
      case Op::reshape:
      case Op::transpose:
      case Op::slice:
      case Op::window:
        out.views.insert(out.views.begin(), id);
        id = node.operands[0];
        continue;
      case Op::mul:
        if (moved || !is_scaled(node.dtype)) return std::nullopt;
        id = take_factor(to, node, out);
        if (id < 0) return std::nullopt;
        continue;
      case Op::add:
      case Op::sub: {
        const Node& by = to.node(node.operands[1]);
        if (moved || by.op != Op::constant) return std::nullopt;
        moved = true;
        out.zero = node.op == Op::sub ? by.value : -by.value;
        id = node.operands[0];
        continue;
      }
      case Op::cast: {
        const Node& bytes = to.node(node.operands[0]);
        const bool is_signed = bytes.dtype == DType::i8;
        const double low = is_signed ? -128 : 0;
        if (!is_byte(bytes.dtype) || out.zero != std::floor(out.zero) || out.zero < low || out.zero > low + 255)
          return std::nullopt;
        out.bytes = node.operands[0];
        out.leaf = bytes.op == Op::input;
        return out;
      }
      default:
        return std::nullopt;
    }
  }
}

// Rewrites one product (a contract) of dequantised operands into a product of their eight-bit integers.
class Product {
 public:
  Product(Builder& to, const Node& node, Einsum einsum) : to_(to), node_(node), einsum_(std::move(einsum)) {}

  // Whether at least one letter is summed, each summed letter is in both operands, no operand has a letter twice, and
  // at most kDeepest terms are summed. Sets summed_.
  bool is_plain() {
    const auto has = [](const std::string& list, char letter) { return list.find(letter) != std::string::npos; };
    for (int side = 0; side < 2; ++side) {
      const std::string &mine = letters(side), &other = letters(1 - side);
      for (size_t i = 0; i < mine.size(); ++i) {
        if (mine.find(mine[i], i + 1) != std::string::npos) return false;
        if (has(einsum_.out, mine[i])) continue;
        if (!has(other, mine[i])) return false;
        summed_[side].push_back(static_cast<int64_t>(i));
        if (side == 0) depth_ *= to_.node(node_.operands[0]).shape[i];
      }
    }
    return !summed_[0].empty() && depth_ <= kDeepest;
  }

  Result run() {
    for (int side = 0; side < 2; ++side) {
      std::optional<Dequantised> found = dequantised(to_, node_.operands[side]);
      if (!found || !axes_stay(side, *found)) return std::nullopt;
      operand_[side] = *std::move(found);
    }
    if (to_.node(operand_[0].bytes).dtype == to_.node(operand_[1].bytes).dtype) move_one();
    NodeId seen[2];
    for (int side = 0; side < 2; ++side) seen[side] = through_views(operand_[side]);
    NodeId y = to_.contract(seen[0], seen[1], node_.text);
    const double zero[2] = {operand_[0].zero, operand_[1].zero};
    if (zero[0] != 0) y = to_.sub(y, along(1, times(sums(1, seen[1]), zero[0])));
    if (zero[1] != 0) {
      NodeId rest = sums(0, seen[0]);
      if (zero[0] != 0) rest = to_.sub(rest, to_.constant_like(zero[0] * static_cast<double>(depth_), rest));
      y = to_.sub(y, along(0, times(rest, zero[1])));
    }
    return scaled(y);
  }

 private:
  const std::string& letters(int side) const { return side == 0 ? einsum_.a : einsum_.b; }

  // Whether the operand's scales differ only along axes that are not summed, so that the result can be multiplied with
  // the scales instead of the operand.
  bool axes_stay(int side, const Dequantised& operand) const {
    return std::none_of(operand.axes.begin(), operand.axes.end(), [&](int64_t axis) {
      return std::binary_search(summed_[side].begin(), summed_[side].end(), axis);
    });
  }

  // Machine instructions multiply u8 by i8. If both operands have the same dtype, one of them is converted to the other
  // dtype: 128 is added to or subtracted from its elements and its zero point. `price` estimates the work if operand
  // `moved` is converted: wherever the zero point of one operand is then not 0, the other operand must be summed. The
  // sums of a weight are computed in advance and cost nothing.
  void move_one() {
    const double by = to_.node(operand_[0].bytes).dtype == DType::u8 ? -128 : 128;
    const auto price = [&](int moved) {
      int sums = 0;
      for (int side = 0; side < 2; ++side) {
        const double zero = operand_[side].zero + (side == moved ? by : 0);
        if (zero != 0 && !operand_[1 - side].leaf) sums += 2;
      }
      return sums + (operand_[moved].leaf ? 0 : 1);
    };
    Dequantised& moved = operand_[price(0) < price(1) ? 0 : 1];
    const NodeId wide = to_.cast(moved.bytes, DType::i32);
    moved.bytes = to_.cast(to_.add(wide, to_.constant_like(by, wide)), by < 0 ? DType::i8 : DType::u8);
    moved.zero += by;
  }

  NodeId through_views(const Dequantised& operand) {
    NodeId x = operand.bytes;
    for (const NodeId id : operand.views) {
      Node view = to_.node(id);
      view.dtype = to_.node(x).dtype;
      view.operands = {x};
      if (view.op == Op::pad) view.value = operand.zero;
      x = to_.add_node(std::move(view));
    }
    return x;
  }

  NodeId times(NodeId x, double factor) { return to_.mul(x, to_.constant_like(factor, x)); }

  NodeId sums(int side, NodeId bytes) { return to_.reduce(Op::reduce_sum, to_.cast(bytes, DType::i32), summed_[side]); }

  // Broadcasts `values` to the result's shape. `values` has one entry for each position along the letters that the
  // result has in common with operand `side`.
  NodeId along(int side, NodeId values) {
    std::vector<int64_t> axes;
    for (const char letter : letters(side))
      if (const size_t at = einsum_.out.find(letter); at != std::string::npos) axes.push_back(static_cast<int64_t>(at));
    return repeated(values, axes);
  }

  NodeId repeated(NodeId values, std::vector<int64_t> axes) {
    values = to_.in_order(values, axes);
    return to_.broadcast(values, node_.shape, axes);
  }

  NodeId scaled(NodeId y) {
    if (!is_scaled(node_.dtype)) return y;
    y = to_.cast(y, node_.dtype);
    double scale = operand_[0].scale * operand_[1].scale;
    for (int side = 0; side < 2; ++side) {
      if (operand_[side].scales < 0) continue;
      std::vector<int64_t> axes;
      for (const int64_t axis : operand_[side].axes)
        axes.push_back(static_cast<int64_t>(einsum_.out.find(letters(side)[static_cast<size_t>(axis)])));
      NodeId scales = operand_[side].scales;
      if (to_.node(scales).shape.size() != axes.size())
        scales = to_.reshape(scales, without_units(to_.node(scales).shape));
      y = to_.mul(y, repeated(scale == 1 ? scales : times(scales, scale), axes));
      scale = 1;
    }
    return scale == 1 ? y : times(y, scale);
  }

  Builder& to_;
  const Node& node_;
  Einsum einsum_;
  int64_t depth_ = 1;
  std::vector<int64_t> summed_[2];  // for each operand: those of its axes that are summed
  Dequantised operand_[2];
};

}  // namespace

// A sum over k terms of (a - za) (b - zb) is sum a b - za sum b - zb (sum a - k za). Padding around an image, which is
// 0 as a float, becomes the zero point as an eight-bit integer.
Result byte_products(Builder& to, const Node& node) {
  if (node.op != Op::contract || (!is_scaled(node.dtype) && node.dtype != DType::i32)) return std::nullopt;
  const Node &a = to.node(node.operands[0]), &b = to.node(node.operands[1]);
  if (a.dtype != node.dtype || b.dtype != node.dtype) return std::nullopt;
  absl::StatusOr<Einsum> einsum = parse_einsum(node.text);
  if (!einsum.ok()) return std::nullopt;
  Product product(to, node, *std::move(einsum));
  return product.is_plain() ? product.run() : std::nullopt;
}

// The float (x - zero) * scale / scale is so near to the integer x - zero that rounding gives this integer again, so x
// is unchanged.
Result requantise(Builder& to, const Node& node) {
  if (node.op != Op::cast || !is_byte(node.dtype)) return std::nullopt;
  const double low = node.dtype == DType::i8 ? -128 : 0, high = low + 255;
  NodeId at = node.operands[0];
  // If node `at` is an `op` whose second operand is a constant, sets `at` to its first operand and returns the
  // constant. Otherwise returns `otherwise`.
  const auto step = [&](Op op, double otherwise) {
    const Node& x = to.node(at);
    if (x.op != op || to.node(x.operands[1]).op != Op::constant) return otherwise;
    at = x.operands[0];
    return to.node(x.operands[1]).value;
  };
  if (step(Op::min, high) < high || step(Op::max, low) > low) return std::nullopt;
  const double zero = step(Op::add, 0);
  if (to.node(at).op != Op::round) return std::nullopt;
  at = to.node(at).operands[0];
  const double by = step(Op::div, 1), scale = step(Op::mul, 1);
  if (by != scale || !is_moderate(scale) || step(Op::add, 0) != -zero) return std::nullopt;
  const Node& wide = to.node(at);
  if (wide.op != Op::cast || !is_scaled(wide.dtype) || zero != std::floor(zero) || std::fabs(zero) > 255)
    return std::nullopt;
  return to.node(wide.operands[0]).dtype == node.dtype ? Result(wide.operands[0]) : std::nullopt;
}

}  // namespace wl::rule

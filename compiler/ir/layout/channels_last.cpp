#include "compiler/ir/layout/channels_last.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "compiler/ir/build.h"

namespace wl {
namespace {

using Order = std::vector<int64_t>;  // how a value's axes are stored: stored axis i is axis order[i] in the given graph

Order identity(size_t rank) {
  Order order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

Order inverse(const Order& order) {
  Order inverse(order.size());
  for (size_t i = 0; i < order.size(); ++i) inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return inverse;
}

// Permutes a list that has an entry for each axis of a value, so that the entries are in the order of the stored axes.
std::vector<int64_t> stored_list(const std::vector<int64_t>& list, const Order& order) {
  std::vector<int64_t> out;
  for (const int64_t axis : order) out.push_back(list[static_cast<size_t>(axis)]);
  return out;
}

bool has(const std::string& letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

// Whether a contraction has the form that the importer gives to convolutions: an image (operand 0) is multiplied with
// weights (operand 1, an input seen through views). The last axis of the result is not one of the weights' axes, but
// another one is. The axes that weights and result have in common count as channels.
bool is_convolution(const Graph& graph, const Node& node, const Einsum& einsum) {
  NodeId weights = node.operands[1];
  while (class_of(graph.nodes[static_cast<size_t>(weights)].op) == OpClass::kView)
    weights = graph.nodes[static_cast<size_t>(weights)].operands[0];
  if (graph.nodes[static_cast<size_t>(weights)].op != Op::input || einsum.out.empty()) return false;
  const auto is_channel = [&](char letter) { return has(einsum.b, letter); };
  return !is_channel(einsum.out.back()) && std::any_of(einsum.out.begin(), einsum.out.end(), is_channel);
}

class ChannelsLast {
 public:
  explicit ChannelsLast(const Graph& graph) : graph_(graph) {}

  absl::StatusOr<Graph> run() {
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) stored_.push_back(store(id));
    for (const Output& output : graph_.outputs) to_.output(output.name, in(output.node, own(output.node)));
    return to_.finish();
  }

 private:
  struct Stored {
    NodeId id = -1;
    Order order;
  };

  const Node& node(NodeId id) const { return graph_.nodes[static_cast<size_t>(id)]; }
  const Order& order_of(NodeId id) const { return stored_[static_cast<size_t>(id)].order; }
  Order own(NodeId id) const { return identity(node(id).shape.size()); }
  bool is_own(const Order& order) const { return std::is_sorted(order.begin(), order.end()); }
  // Whether the value has no work of its own, so that it can be built with its axes in any order at no cost.
  bool is_free(NodeId id) const {
    const Op op = node(id).op;
    return op == Op::constant || op == Op::iota || op == Op::broadcast;
  }

  Stored store(NodeId id) {
    const Node& n = node(id);
    if (n.operands.empty()) return {to_.add_node(n), own(id)};
    if (keeps_axes(n.op)) {
      const Order order = order_among(n.operands);
      return {made(n, order), order};
    }
    if (n.op == Op::contract) return contract(n);
    if (class_of(n.op) == OpClass::kReduce) return reduce(n);
    const Order& order = order_of(n.operands[0]);
    if (n.op == Op::transpose && !is_own(order)) {
      const Order at = inverse(n.ints);
      return {stored_[static_cast<size_t>(n.operands[0])].id, stored_list(at, order)};
    }
    if (n.op == Op::window && !is_own(order)) return window(n, order);
    if (n.op == Op::reshape && !is_own(order)) return reshape(id, order);
    Node same = n;
    for (NodeId& operand : same.operands) operand = in(operand, own(operand));
    return {to_.add_node(std::move(same)), own(id)};
  }

  // Whether axis i of the op's result is axis i of each of its operands, for all i.
  static bool keeps_axes(Op op) {
    return class_of(op) == OpClass::kElementwise || op == Op::concat || op == Op::slice || op == Op::pad;
  }

  // Returns the order in which the axes of the result are to be stored: that of the first operand that is not stored in
  // its original order. Operands that can be built in any order do not count. If there is no such operand, returns the
  // original order.
  Order order_among(const std::vector<NodeId>& operands) const {
    for (const NodeId operand : operands)
      if (!is_free(operand) && !is_own(order_of(operand))) return order_of(operand);
    return own(operands[0]);
  }

  // Builds the node, whose op must satisfy keeps_axes(), with its axes in `order`.
  NodeId made(const Node& n, const Order& order) {
    Node out = n;
    for (NodeId& operand : out.operands) operand = in(operand, order);
    if (n.op == Op::slice) out.shape = stored_list(n.shape, order);
    if (n.op == Op::slice || n.op == Op::pad) {
      out.ints = stored_list(n.ints, order);
      out.ints2 = stored_list(n.ints2, order);
    }
    if (n.op == Op::concat) out.ints = {inverse(order)[static_cast<size_t>(n.ints[0])]};
    return to_.add_node(std::move(out));
  }

  // Returns the new node that has the value's axes in `order`; the value is transposed if it is stored in another
  // order.
  NodeId in(NodeId id, const Order& order) {
    const Node& n = node(id);
    const Stored stored = stored_[static_cast<size_t>(id)];
    if (stored.order == order) return stored.id;
    const Shape shape = stored_list(n.shape, order);
    const Order at = inverse(order);
    if (n.op == Op::constant) return to_.constant(n.value, n.dtype, shape);
    if (n.op == Op::iota) return to_.iota(n.dtype, shape, static_cast<int>(at[static_cast<size_t>(n.ints[0])]));
    if (n.op == Op::broadcast) {
      const auto place = [&](int64_t axis) { return at[static_cast<size_t>(n.ints[static_cast<size_t>(axis)])]; };
      Order axes = own(n.operands[0]), dims;
      std::sort(axes.begin(), axes.end(), [&](int64_t a, int64_t b) { return place(a) < place(b); });
      for (const int64_t axis : axes) dims.push_back(place(axis));
      return to_.broadcast(in(n.operands[0], axes), shape, dims);
    }
    return to_.transpose(stored.id, stored_list(inverse(stored.order), order));
  }

  // A contraction reads each operand in the order in which it is stored. The result of a convolution is stored with the
  // axes of its pixels first and those of its channels last.
  Stored contract(const Node& n) {
    const Einsum einsum = parse_einsum(n.text).value();
    const bool turns = is_convolution(graph_, n, einsum);
    std::string read[2], out;
    std::vector<NodeId> operands;
    for (const size_t side : {0, 1}) {
      const Stored& operand = stored_[static_cast<size_t>(n.operands[side])];
      for (const int64_t axis : operand.order)
        read[side] += (side == 0 ? einsum.a : einsum.b)[static_cast<size_t>(axis)];
      operands.push_back(operand.id);
    }
    Order order = identity(einsum.out.size());
    const auto is_channel = [&](int64_t axis) { return has(einsum.b, einsum.out[static_cast<size_t>(axis)]); };
    if (turns) std::stable_partition(order.begin(), order.end(), [&](int64_t axis) { return !is_channel(axis); });
    for (const int64_t axis : order) out += einsum.out[static_cast<size_t>(axis)];
    return {to_.contract(operands[0], operands[1], cat(read[0], ",", read[1], "->", out), n.dtype, n.tf32), order};
  }

  Stored reduce(const Node& n) {
    const Order& order = order_of(n.operands[0]);
    std::vector<int64_t> axes, left;
    for (size_t i = 0; i < order.size(); ++i) {
      const bool goes = std::find(n.ints.begin(), n.ints.end(), order[i]) != n.ints.end();
      if (goes) axes.push_back(static_cast<int64_t>(i));
      if (!goes) left.push_back(order[i]);
    }
    Order result;
    for (const int64_t axis : left)
      result.push_back(std::count_if(left.begin(), left.end(), [&](int64_t other) { return other < axis; }));
    return {to_.reduce(n.op, stored_[static_cast<size_t>(n.operands[0])].id, axes), result};
  }

  // Builds a window. The axes of the operand may be stored in any order, but the axes of taps (the elements within a
  // window) stay last.
  Stored window(const Node& n, const Order& order) {
    const Order at = inverse(order);
    Node out = n;
    for (int64_t& axis : out.ints) axis = at[static_cast<size_t>(axis)];
    Order result = order;
    if (std::is_sorted(out.ints.begin(), out.ints.end())) {
      out.operands = {stored_[static_cast<size_t>(n.operands[0])].id};
    } else {
      out = n;
      result = own(n.operands[0]);
      out.operands = {in(n.operands[0], result)};
    }
    for (size_t i = order.size(); i < n.shape.size(); ++i) result.push_back(static_cast<int64_t>(i));
    return {to_.add_node(std::move(out)), result};
  }

  // A group of neighbouring axes of a reshape's operand (`from`) and the group of axes of its result (`to`) over which
  // the same elements extend.
  struct Piece {
    std::vector<int64_t> from, to;
  };
  static std::vector<Piece> pieces_of(const Shape& from, const Shape& to) {
    std::vector<Piece> pieces;
    size_t i = 0, j = 0;
    while (i < from.size() || j < to.size()) {
      Piece& piece = pieces.emplace_back();
      int64_t before = 1, after = 1;
      const auto take_from = [&] { before *= from[i], piece.from.push_back(static_cast<int64_t>(i++)); };
      const auto take_to = [&] { after *= to[j], piece.to.push_back(static_cast<int64_t>(j++)); };
      if (i < from.size()) take_from();
      if (j < to.size()) take_to();
      while (before != after && (i < from.size() || j < to.size()))
        if (j == to.size() || (before < after && i < from.size()))
          take_from();
        else
          take_to();
    }
    return pieces;
  }

  Stored reshape(NodeId id, const Order& order) {
    const Node& n = node(id);
    const NodeId x = n.operands[0];
    std::vector<Piece> pieces = pieces_of(node(x).shape, n.shape);
    const Order at = inverse(order);
    bool together = elements(n.shape) > 0;
    for (const Piece& piece : pieces)
      for (size_t i = 1; i < piece.from.size(); ++i)
        together = together && at[static_cast<size_t>(piece.from[i])] == at[static_cast<size_t>(piece.from[i - 1])] + 1;
    const auto place = [&](const Piece& piece) {
      return piece.from.empty() ? static_cast<int64_t>(at.size()) : at[static_cast<size_t>(piece.from[0])];
    };
    std::stable_sort(pieces.begin(), pieces.end(), [&](const Piece& a, const Piece& b) { return place(a) < place(b); });
    Order result;
    for (const Piece& piece : pieces) result.insert(result.end(), piece.to.begin(), piece.to.end());
    if (!together) return {to_.reshape(in(x, own(x)), n.shape), own(id)};
    return {to_.reshape(stored_[static_cast<size_t>(x)].id, stored_list(n.shape, result)), result};
  }

  const Graph& graph_;
  Builder to_;
  std::vector<Stored> stored_;  // for each node: the new node that stores its value, and the order of its axes
};

}  // namespace

absl::StatusOr<Graph> channels_last(const Graph& graph) {
  WL_RETURN_IF_ERROR(verify(graph));
  const auto is = [&](const Node& node) {
    return node.op == Op::contract && is_convolution(graph, node, *parse_einsum(node.text));
  };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), is)) return graph;
  return ChannelsLast(graph).run();
}

}  // namespace wl

#include "compiler/domain/group_order.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace wl {

bool reshapes_units(const Graph& graph, NodeId id) {
  const Node& node = graph.nodes[id];
  if (node.op != Op::reshape) return false;
  const Shape& from = graph.nodes[node.operands[0]].shape;
  const auto next = [](const Shape& shape, size_t& at) {
    while (at < shape.size() && shape[at] == 1) ++at;
    return at < shape.size() ? shape[at++] : 1;
  };
  for (size_t i = 0, j = 0; i < from.size() || j < node.shape.size();)
    if (next(from, i) != next(node.shape, j)) return false;
  return true;
}

Fingerprint fingerprint(const Node& node) {
  Fingerprint f;
  f.add(static_cast<uint64_t>(node.op));
  f.add(static_cast<uint64_t>(node.dtype));
  f.add_all(node.shape);
  f.add_all(node.ints);
  f.add_all(node.ints2);
  f.add(std::bit_cast<uint64_t>(node.value));
  f.add_all(node.text);
  if (node.tf32) f.add(1);
  return f;
}

Fingerprint read_fingerprint(const Node& node) {
  Fingerprint f;
  f.add(~uint64_t{0});
  f.add(static_cast<uint64_t>(node.dtype));
  f.add(static_cast<uint64_t>(std::count_if(node.shape.begin(), node.shape.end(), [](int64_t e) { return e != 1; })));
  for (const int64_t extent : node.shape)
    if (extent != 1) f.add(static_cast<uint64_t>(extent));
  if (node.op != Op::input || is_float(node.dtype)) return f;
  f.add(static_cast<uint64_t>(node.fill.low));
  f.add(static_cast<uint64_t>(node.fill.high));
  f.add(node.fill.literal.size());
  for (double value : node.fill.literal) f.add(std::bit_cast<uint64_t>(value));
  return f;
}

GroupOrder::GroupOrder(const Graph& graph, const Group& group) : graph_(graph), group_(group) {
  entries_.reserve(group.ops.size() + group.reads.size());
  for (NodeId id : group.ops) entries_.push_back({.id = id});
  for (NodeId id : group.reads) entries_.push_back({.id = id, .read = true});
  std::sort(entries_.begin(), entries_.end(), [](const Entry& x, const Entry& y) { return x.id < y.id; });
  std::vector<uint64_t> operands;
  for (Entry& entry : entries_) {
    const Node& node = graph.nodes[entry.id];
    if (!entry.read && reshapes_units(graph, entry.id)) {  // a reshape that moves nothing gets its operand's hash
      const Entry& operand = entries_[index(node.operands[0])];
      entry.depth = operand.depth;
      entry.above = operand.above;
      continue;
    }
    Fingerprint f = entry.read ? read_fingerprint(node) : fingerprint(node);
    operands.clear();
    for (size_t k = 0; k < node.operands.size() && !entry.read; ++k) {
      const Entry& operand = entries_[index(node.operands[k])];
      operands.push_back(operand.above);
      entry.depth = std::max(entry.depth, operand.depth + 1);
    }
    if (is_commutative(node.op)) std::sort(operands.begin(), operands.end());
    f.add_all(operands);
    entry.above = f.a;
  }
  for (NodeId store : group.stores) entries_[index(store)].below += mix(1);
  for (size_t i = entries_.size(); i-- > 0;) {
    const Entry& entry = entries_[i];
    if (entry.read) continue;
    const Node& node = graph.nodes[entry.id];
    if (reshapes_units(graph, entry.id)) {
      entries_[index(node.operands[0])].below += entry.below;
      continue;
    }
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const uint64_t place = is_commutative(node.op) ? 0 : k + 1;
      entries_[index(node.operands[k])].below += mix(mix(entry.below + entry.above) + place);
    }
  }
  for (Entry& entry : entries_) {
    const Node& node = graph.nodes[entry.id];
    if (entry.read || !is_commutative(node.op)) continue;
    entry.swapped = comes_before(entries_[index(node.operands[1])], entries_[index(node.operands[0])]);
  }
}

size_t GroupOrder::index(NodeId id) const {
  const auto at =
      std::lower_bound(entries_.begin(), entries_.end(), id, [](const Entry& e, NodeId value) { return e.id < value; });
  WL_CHECK(at != entries_.end() && at->id == id, "%", id, " is neither read nor computed by its group");
  return static_cast<size_t>(at - entries_.begin());
}

// Compares two operands of a commutative op: constants come last; otherwise the operand of greater depth comes first.
bool GroupOrder::comes_before(const Entry& x, const Entry& y) const {
  const auto key = [&](const Entry& e) {
    return std::tuple(graph_.nodes[e.id].op == Op::constant, -e.depth, e.above, e.below);
  };
  return key(x) < key(y);
}

std::vector<NodeId> GroupOrder::operands(NodeId id) const {
  std::vector<NodeId> operands = graph_.nodes[id].operands;
  if (entries_[index(id)].swapped) std::swap(operands[0], operands[1]);
  return operands;
}

std::vector<NodeId> GroupOrder::stores() const {
  std::vector<NodeId> stores = group_.stores;
  const auto key = [&](NodeId id) {
    const Entry& entry = entries_[index(id)];
    return std::tuple(entry.depth, entry.above, entry.below, id);
  };
  std::sort(stores.begin(), stores.end(), [&](NodeId x, NodeId y) { return key(x) < key(y); });
  return stores;
}

Group in_order(const Graph& graph, Group group) {
  const GroupOrder order(graph, group);
  std::vector<NodeId> stores = order.stores();
  std::vector<NodeId> reads = order.walk(stores, [](NodeId) {});
  group.stores = std::move(stores);
  group.reads = std::move(reads);
  return group;
}

}  // namespace wl

#include "compiler/cover/levels.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "compiler/cover/values.h"
#include "compiler/domain/axes.h"

namespace wl {
namespace {

constexpr int kMostCost = 6 * kCheapWork;
constexpr int64_t kSmallShare = 4;  // of a block's shared memory: smaller values have no level in device memory

// Returns the group that stores `stores` and computes of them what is in `may`; it reads everything else.
Group group_of(const Graph& graph, const std::set<NodeId>& may, std::vector<NodeId> stores) {
  Group group;
  std::set<NodeId> met;
  std::vector<NodeId> todo = stores;
  while (!todo.empty()) {
    const NodeId id = todo.back();
    todo.pop_back();
    if (!met.insert(id).second) continue;
    const bool own = may.contains(id);
    (own ? group.ops : group.reads).push_back(id);
    if (own) todo.insert(todo.end(), graph.nodes[id].operands.begin(), graph.nodes[id].operands.end());
  }
  std::sort(group.ops.begin(), group.ops.end());
  group.stores = std::move(stores);
  return group;
}

// The elementwise ops that compute a value from smaller values, inputs and what other groups store.
struct Cone {
  std::set<NodeId> ops;
  std::set<NodeId> from;  // values of the same group that the ops read
  int cost = 0;
};

// `group`: the group that stores the value. nullopt: the value is not the result of elementwise ops.
std::optional<Cone> cone_of(const Graph& graph, const Group& group, NodeId value) {
  Cone cone;
  const int64_t size = elements(graph.nodes[value].shape);
  std::vector<NodeId> todo = {value};
  while (!todo.empty()) {
    const NodeId id = todo.back();
    todo.pop_back();
    const Node& node = graph.nodes[id];
    if (!holds(group.ops, id) || cone.ops.contains(id) || cone.from.contains(id)) continue;
    if (is_computed(node)) {
      if (elements(node.shape) < size || class_of(node.op) != OpClass::kElementwise) {
        if (id == value) return std::nullopt;
        cone.from.insert(id);
        continue;
      }
      cone.cost += info(node.op).cost;
    }
    cone.ops.insert(id);
    todo.insert(todo.end(), node.operands.begin(), node.operands.end());
  }
  const bool computes =
      std::any_of(cone.ops.begin(), cone.ops.end(), [&](NodeId id) { return is_computed(graph.nodes[id]); });
  return computes ? std::optional(std::move(cone)) : std::nullopt;
}

}  // namespace

std::vector<PassedValue> passed_values(const Graph& graph, const Cover& cover) {
  std::set<NodeId> read;
  for (const Group& group : cover.groups) read.insert(group.reads.begin(), group.reads.end());
  for (const Output& output : graph.outputs) read.erase(output.node);
  std::vector<PassedValue> values;
  for (const Group& group : cover.groups)
    for (NodeId id : group.stores)
      if (read.contains(id)) values.push_back({id, graph.bytes(id)});
  return values;
}

std::optional<Cover> computed_again(const Graph& graph, const Cover& cover, NodeId value) {
  const auto writer = std::find_if(cover.groups.begin(), cover.groups.end(),
                                   [&](const Group& group) { return holds(group.stores, value); });
  if (writer == cover.groups.end()) return std::nullopt;
  const std::optional<Cone> cone = cone_of(graph, *writer, value);
  if (!cone || cone->cost > kMostCost) return std::nullopt;
  int64_t bytes = 0;
  std::vector<NodeId> stored = writer->stores;
  std::erase(stored, value);
  for (NodeId id : cone->from)
    if (!holds(writer->stores, id)) {
      bytes += graph.bytes(id);
      stored.push_back(id);
    }
  if (2 * bytes > graph.bytes(value)) return std::nullopt;
  std::sort(stored.begin(), stored.end());
  std::vector<Group> groups;
  for (const Group& group : cover.groups) {
    std::set<NodeId> may(group.ops.begin(), group.ops.end());
    if (&group == &*writer) {
      if (!stored.empty()) groups.push_back(group_of(graph, may, stored));
      continue;
    }
    if (!holds(group.reads, value)) {
      groups.push_back(group);
      continue;
    }
    may.insert(cone->ops.begin(), cone->ops.end());
    groups.push_back(group_of(graph, may, group.stores));
  }
  return ordered(graph, std::move(groups));
}

std::optional<Cover> with_levels(const Graph& graph, Cover cover, std::span<const PassedValue> values,
                                 std::span<const ValueLevel> levels) {
  for (size_t i = 0; i < std::min(values.size(), levels.size()); ++i) {
    if (levels[i] != ValueLevel::kAgain) continue;
    std::optional<Cover> next = computed_again(graph, cover, values[i].node);
    if (!next) return std::nullopt;
    cover = *std::move(next);
  }
  return cover;
}

std::vector<std::vector<ValueLevel>> other_levels(const Graph& graph, const Cover& cover,
                                                  std::span<const PassedValue> values, const Target& target) {
  std::vector<std::vector<ValueLevel>> of(values.size(), {ValueLevel::kScratch});
  std::vector<size_t> largest(values.size());
  std::iota(largest.begin(), largest.end(), size_t{0});
  std::stable_sort(largest.begin(), largest.end(),
                   [&](size_t a, size_t b) { return values[a].bytes > values[b].bytes; });
  size_t count = 1;
  for (const size_t i : largest) {
    std::vector<ValueLevel>& own = of[i];
    if (computed_again(graph, cover, values[i].node)) own.push_back(ValueLevel::kAgain);
    if (target.is_gpu() && values[i].bytes > target.gpu.block_shared / kSmallShare) own.push_back(ValueLevel::kDevice);
    if (count * own.size() > kMostLevels) own.resize(1);
    count *= own.size();
  }
  std::vector<std::vector<ValueLevel>> all = {{}};
  for (const std::vector<ValueLevel>& own : of) {
    std::vector<std::vector<ValueLevel>> longer;
    for (const std::vector<ValueLevel>& levels : all)
      for (const ValueLevel level : own) {
        longer.push_back(levels);
        longer.back().push_back(level);
      }
    all = std::move(longer);
  }
  all.erase(all.begin());  // all in scratch
  return all;
}

}  // namespace wl

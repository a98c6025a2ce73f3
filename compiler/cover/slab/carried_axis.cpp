#include "compiler/cover/slab/carried_axis.h"

#include <algorithm>
#include <cmath>

#include "compiler/domain/axes.h"

namespace wl {
namespace {

// A correction allows sums of function(x - r), or of multiples of it, while the reduction r of all x is not known yet.
// If r1 is the reduction of the first elements and r2 that of these and more elements, then
// function(x - r2) = function(x - r1) * function(r1 - r2), so earlier sums are corrected by the last factor.
struct Correction {
  Op reduction, function;
};
constexpr Correction kCorrections[] = {{Op::reduce_max, Op::exp}, {Op::reduce_max, Op::exp2}};

NodeId behind_broadcasts(const Graph& graph, NodeId id) {
  while (graph.nodes[id].op == Op::broadcast || graph.nodes[id].op == Op::reshape) id = graph.nodes[id].operands[0];
  return id;
}

}  // namespace

std::optional<Corrected> corrected(const Graph& graph, NodeId id) {
  const Node& node = graph.nodes[id];
  if (node.operands.size() != 1 || graph.nodes[node.operands[0]].op != Op::sub) return std::nullopt;
  const Node& difference = graph.nodes[node.operands[0]];
  const NodeId reduction = behind_broadcasts(graph, difference.operands[1]);
  const Node& reduced = graph.nodes[reduction];
  const bool known = std::any_of(std::begin(kCorrections), std::end(kCorrections), [&](const Correction& row) {
    return row.function == node.op && row.reduction == reduced.op;
  });
  if (!known || reduced.operands[0] != difference.operands[0] || reduced.ints.size() != 1) return std::nullopt;
  return Corrected{id, reduction};
}

namespace {

// Finds, by union-find, which dimensions of the graph's values are the same loop.
class Dimensions {
 public:
  explicit Dimensions(const Graph& graph) : graph_(graph) {
    for (const Node& node : graph.nodes) {
      first_.push_back(static_cast<int>(parent_.size()));
      for (size_t i = 0; i < node.shape.size(); ++i) parent_.push_back(static_cast<int>(parent_.size()));
    }
    for (size_t id = 0; id < graph.nodes.size(); ++id) join(static_cast<NodeId>(id));
  }

  // Returns the axis that `dimension` of `node` belongs to; nullopt if two dimensions of one value belong to that axis.
  std::optional<CarriedAxis> axis_of(NodeId node, size_t dimension) {
    CarriedAxis axis;
    const int wanted = root(first_[node] + static_cast<int>(dimension));
    axis.extent = graph_.nodes[node].shape[dimension];
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) {
      axis.dim.push_back(-1);
      for (size_t i = 0; i < graph_.nodes[id].shape.size(); ++i) {
        if (root(first_[id] + static_cast<int>(i)) != wanted) continue;
        if (axis.dim[id] >= 0) return std::nullopt;
        axis.dim[id] = static_cast<int>(i);
      }
      const OpClass cls = class_of(graph_.nodes[id].op);
      const NodeId from = is_leaf(graph_.nodes[id]) ? -1 : graph_.nodes[id].operands[0];
      if ((cls == OpClass::kReduce || cls == OpClass::kContract) && axis.dim[from] >= 0 && axis.dim[id] < 0)
        axis.reductions.push_back(id);
    }
    return axis;
  }

 private:
  int root(int i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void same(NodeId a, size_t i, NodeId b, size_t j) {
    parent_[root(first_[a] + static_cast<int>(i))] = root(first_[b] + static_cast<int>(j));
  }

  void join(NodeId id) {
    const Node& node = graph_.nodes[id];
    const size_t rank = node.shape.size();
    switch (class_of(node.op)) {
      case OpClass::kElementwise:
        for (NodeId operand : node.operands)
          for (size_t i = 0; i < rank; ++i) same(id, i, operand, i);
        return;
      case OpClass::kReduce:
        for (size_t i = 0, kept = 0; i < graph_.nodes[node.operands[0]].shape.size(); ++i)
          if (!std::count(node.ints.begin(), node.ints.end(), static_cast<int64_t>(i)))
            same(id, kept++, node.operands[0], i);
        return;
      case OpClass::kContract: {
        const Einsum einsum = parse_einsum(node.text).value();
        for (size_t i = 0; i < einsum.b.size(); ++i) {
          if (const size_t at = einsum.a.find(einsum.b[i]); at != std::string::npos)
            same(node.operands[1], i, node.operands[0], at);
          if (const size_t at = einsum.out.find(einsum.b[i]); at != std::string::npos)
            same(node.operands[1], i, id, at);
        }
        for (size_t i = 0; i < einsum.a.size(); ++i)
          if (const size_t at = einsum.out.find(einsum.a[i]); at != std::string::npos)
            same(node.operands[0], i, id, at);
        return;
      }
      case OpClass::kView:
        return join_view(id);
      default:
        return;
    }
  }

  void join_view(NodeId id) {
    const Node& node = graph_.nodes[id];
    const Shape& from = graph_.nodes[node.operands[0]].shape;
    for (size_t i = 0; node.op == Op::transpose && i < from.size(); ++i)
      same(id, i, node.operands[0], static_cast<size_t>(node.ints[i]));
    for (size_t i = 0; node.op == Op::broadcast && i < from.size(); ++i)
      same(id, static_cast<size_t>(node.ints[i]), node.operands[0], i);
    if (node.op != Op::reshape) return;
    // `mine` is the product of the extents before dimension i of the result, `theirs` that of the extents before
    // dimension j of the operand. If they are equal, dimensions i and j of equal extents are the same loop.
    int64_t mine = 1, theirs = 1;
    for (size_t i = 0, j = 0; i < node.shape.size() && j < from.size();) {
      if (mine == theirs && node.shape[i] == from[j]) same(id, i, node.operands[0], j);
      if (mine * node.shape[i] <= theirs * from[j]) {
        const bool both = mine * node.shape[i] == theirs * from[j];
        mine *= node.shape[i++];
        if (both) theirs *= from[j++];
      } else {
        theirs *= from[j++];
      }
    }
  }

  const Graph& graph_;
  std::vector<int> first_, parent_;
};

}  // namespace

std::vector<CarriedAxis> carried_axes(const Graph& group) {
  std::vector<CarriedAxis> axes;
  Dimensions dimensions(group);
  for (NodeId id = 0; id < static_cast<NodeId>(group.nodes.size()); ++id) {
    const std::optional<Corrected> found = corrected(group, id);
    if (!found) continue;
    const Node& reduction = group.nodes[found->reduction];
    if (auto axis = dimensions.axis_of(reduction.operands[0], static_cast<size_t>(reduction.ints[0])))
      axes.push_back(*std::move(axis));
  }
  return axes;
}

namespace {

// A node whose elements equal their coordinate along the dimension of `iota`, plus the constant `plus`.
struct Counted {
  NodeId iota = -1;  // -1: the elements equal the constant `plus` alone
  int64_t plus = 0;
};

std::optional<Counted> counted(const Graph& graph, NodeId id) {
  const Node& node = graph.nodes[id];
  if (node.op == Op::iota) return Counted{id, 0};
  if (node.op == Op::constant) return Counted{-1, static_cast<int64_t>(node.value)};
  if (node.op == Op::cast || node.op == Op::broadcast || node.op == Op::reshape)
    return counted(graph, node.operands[0]);
  if (node.op != Op::add && node.op != Op::sub) return std::nullopt;
  const auto a = counted(graph, node.operands[0]), b = counted(graph, node.operands[1]);
  if (!a || !b || (a->iota >= 0 && b->iota >= 0) || (node.op == Op::sub && b->iota >= 0)) return std::nullopt;
  return Counted{std::max(a->iota, b->iota), node.op == Op::sub ? a->plus - b->plus : a->plus + b->plus};
}

// The elements along the axis for which a condition is `wanted` (true or false): in each row, those whose coordinate is
// at most the row's value of the iota `row`, plus `plus`. up_to() returns nothing for conditions of another form.
struct UpTo {
  NodeId row = -1;
  int64_t plus = 0;
};

std::optional<UpTo> up_to(const Graph& graph, const CarriedAxis& axis, NodeId id, bool wanted) {
  const Node& node = graph.nodes[id];
  if (node.op == Op::logical_not) return up_to(graph, axis, node.operands[0], !wanted);
  if (node.op == Op::broadcast || node.op == Op::reshape) return up_to(graph, axis, node.operands[0], wanted);
  if (node.op != Op::le && node.op != Op::lt && node.op != Op::ge && node.op != Op::gt) return std::nullopt;
  auto small = counted(graph, node.operands[0]), large = counted(graph, node.operands[1]);
  if (!small || !large || small->iota < 0 || large->iota < 0) return std::nullopt;
  bool strict = node.op == Op::lt || node.op == Op::gt;
  if (node.op == Op::ge || node.op == Op::gt) std::swap(small, large);
  if (!wanted) {
    std::swap(small, large);
    strict = !strict;
  }
  const auto is_along = [&](NodeId iota) { return axis.dim[iota] == graph.nodes[iota].ints[0]; };
  if (!is_along(small->iota) || is_along(large->iota)) return std::nullopt;
  return UpTo{large->iota, large->plus - small->plus - (strict ? 1 : 0)};
}

}  // namespace

// Finds a limit only if the reduction is over a select between values and a constant for which function(x - r) is 0,
// and if in each row the select takes the constant for all elements beyond some coordinate. If the constant is finite
// instead of -inf, each row must also have an element that is not masked.
CarriedLimit carried_limit(const Graph& group, const CarriedAxis& axis) {
  constexpr double kNever = -1e9;
  for (NodeId id = 0; id < static_cast<NodeId>(group.nodes.size()); ++id) {
    const std::optional<Corrected> found = corrected(group, id);
    if (!found || !std::binary_search(axis.reductions.begin(), axis.reductions.end(), found->reduction)) continue;
    NodeId element = group.nodes[found->reduction].operands[0];
    const auto never = [&](NodeId node) {
      return group.nodes[node].op == Op::constant && group.nodes[node].value <= kNever;
    };
    // Instead of the select, the reduction may be over a sum of the values and a mask, which is a select.
    if (const Node& node = group.nodes[element]; node.op == Op::add)
      for (NodeId operand : node.operands)
        if (const NodeId mask = behind_broadcasts(group, operand); group.nodes[mask].op == Op::select) element = mask;
    const Node& select = group.nodes[element];
    if (select.op != Op::select) return {};
    const bool masks_second = never(select.operands[2]);
    if (!masks_second && !never(select.operands[1])) return {};
    const auto seen = up_to(group, axis, select.operands[0], masks_second);
    const bool infinite = std::isinf(group.nodes[select.operands[masks_second ? 2 : 1]].value);
    if (!seen || (!infinite && seen->plus < 0)) return {};
    return {seen->row, seen->plus};
  }
  return {};
}

}  // namespace wl

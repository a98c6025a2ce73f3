#include "compiler/domain/axes.h"

#include <algorithm>
#include <optional>

#include "compiler/ir/index_map.h"

namespace wl {

std::vector<NodeId> views_of(const Graph& graph, NodeId id, NodeId& source) {
  std::vector<NodeId> views;
  while (is_view(graph.nodes[id]) && graph.nodes[id].operands.size() == 1) {
    views.push_back(id);
    id = graph.nodes[id].operands[0];
  }
  std::reverse(views.begin(), views.end());
  source = id;
  return views;
}

namespace {

absl::StatusOr<Axes> regrouped(const Node& view, std::string_view what, std::string_view operand, const Axes& x,
                               Factors& factors) {
  Axes result;
  FactorList before, after;
  for (int64_t extent : view.shape) result.push_back(factors.axis(extent));
  if (elements(view.shape) == 0) return result;
  for (const FactorList& axis : x) before.insert(before.end(), axis.begin(), axis.end());
  for (const FactorList& axis : result) after.insert(after.end(), axis.begin(), axis.end());
  const std::string cuts = factors.text(before);
  if (!factors.unify(before, after))
    return invalid(what, ": cuts axes that ", operand, " (loops ", cuts, ") does not have: not one loop");
  return result;
}

}  // namespace

absl::StatusOr<Axes> apply_view(const Graph& graph, NodeId view, const Axes& x, Factors& factors) {
  const Node& v = graph.nodes[view];
  const std::string what = node_text(graph, view);
  const Shape& from = graph.nodes[v.operands[0]].shape;
  const ViewKind kind = info(v.op).view;
  if (kind == ViewKind::kSameOrder) return regrouped(v, what, node_text(graph, v.operands[0]), x, factors);
  // A concat that is a view of one value has one operand, since views_of() stops at a concat of several.
  if (kind == ViewKind::kJoined) return x;
  const ViewMap map = view_map(v, from);
  Axes result(v.shape.size());
  std::vector<char> known(v.shape.size(), 0);
  for (size_t i = 0; i < from.size(); ++i) {
    const std::optional<size_t> to = map.unmoved(i);
    if (!to)
      return invalid(what, ": moves elements of ", node_text(graph, v.operands[0]),
                     ", which this kernel computes, to other coordinates; store that value and read it back");
    result[*to] = x[i];
    known[*to] = 1;
  }
  for (size_t i = 0; i < result.size(); ++i)
    if (!known[i]) result[i] = factors.axis(v.shape[i]);
  return result;
}

}  // namespace wl

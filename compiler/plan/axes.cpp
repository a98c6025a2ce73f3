#include "compiler/plan/axes.h"

#include <algorithm>

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

absl::StatusOr<Axes> apply_view(const Graph& graph, NodeId view, const Axes& x, Factors& factors) {
  const Node& v = graph.nodes[view];
  const std::string what = cat("%", view, " ", name_of(v.op), " ", shape_text(v.shape));
  const Shape& from = graph.nodes[v.operands[0]].shape;
  Axes result;
  switch (v.op) {
    case Op::reshape: {
      FactorList before, after;
      for (int64_t extent : v.shape) result.push_back(factors.axis(extent));
      if (elements(v.shape) == 0) return result;
      for (const FactorList& axis : x) before.insert(before.end(), axis.begin(), axis.end());
      for (const FactorList& axis : result) after.insert(after.end(), axis.begin(), axis.end());
      const std::string cuts = factors.text(before);
      if (!factors.unify(before, after))
        return invalid(what, ": cuts axes that %", v.operands[0], " ", shape_text(from), " (loops ", cuts,
                       ") does not have: not one loop");
      return result;
    }
    case Op::transpose:
      for (int64_t axis : v.ints) result.push_back(x[axis]);
      return result;
    case Op::broadcast:
      for (size_t i = 0; i < v.shape.size(); ++i) {
        const auto at = std::find(v.ints.begin(), v.ints.end(), static_cast<int64_t>(i));
        result.push_back(at == v.ints.end() ? factors.axis(v.shape[i]) : x[at - v.ints.begin()]);
      }
      return result;
    case Op::slice:
    case Op::pad:
    case Op::concat:
      if (v.shape == from && std::all_of(v.ints.begin(), v.ints.end(), [](int64_t low) { return low == 0; }) &&
          (v.op != Op::slice || std::all_of(v.ints2.begin(), v.ints2.end(), [](int64_t s) { return s == 1; })))
        return x;
      [[fallthrough]];
    default:
      return invalid(what, ": moves elements of %", v.operands[0],
                     ", which this kernel computes, to other coordinates; store that value and read it back");
  }
}

}  // namespace wl

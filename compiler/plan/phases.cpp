#include "compiler/plan/phases.h"

#include <algorithm>

namespace wl {

bool is_reduction(const Graph& group, NodeId node) {
  const Node& n = group.nodes[node];
  if (class_of(n.op) == OpClass::kContract) return true;
  if (class_of(n.op) != OpClass::kReduce) return false;
  const Shape& from = group.nodes[n.operands[0]].shape;
  return std::any_of(n.ints.begin(), n.ints.end(), [&](int64_t axis) { return from[axis] != 1; });
}

RowPhases row_phases(const Graph& group, const Domain& domain) {
  RowPhases out;
  out.level.assign(group.nodes.size(), 0);
  for (NodeId id = 0; id < static_cast<NodeId>(group.nodes.size()); ++id) {
    for (const Domain::Operand& operand : domain.operands[id])
      if (operand.source >= 0) out.level[id] = std::max(out.level[id], out.level[operand.source]);
    if (domain.operands[id].empty() || !is_reduction(group, id)) continue;
    out.reduces.push_back(id);
    out.count = std::max(out.count, ++out.level[id]);
  }
  for (const Domain::Store& store : domain.stores) {
    const int level = store.source >= 0 ? out.level[store.source] : 0;
    const bool inside =
        store.source >= 0 && std::any_of(domain.varies[store.source].begin(), domain.varies[store.source].end(),
                                         [&](AtomId atom) { return domain.atoms[atom].reduced; });
    // A value outside the reduced loops is stored when the phase before it has ended.
    out.store_phase.push_back(inside || level == 0 ? level : level - 1);
    out.count = std::max(out.count, out.store_phase.back() + 1);
  }
  return out;
}

}  // namespace wl

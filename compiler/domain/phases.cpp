#include "compiler/domain/phases.h"

#include <algorithm>

namespace wl {

bool is_reduction(const Graph& group, NodeId node) {
  const Node& n = group.nodes[node];
  if (class_of(n.op) == OpClass::kContract) return true;
  if (class_of(n.op) != OpClass::kReduce) return false;
  const Shape& from = group.nodes[n.operands[0]].shape;
  return std::any_of(n.ints.begin(), n.ints.end(), [&](int64_t axis) { return from[axis] != 1; });
}

namespace {

bool same_value(const Domain::Operand& a, const Domain::Operand& b) {
  return a.pieces.empty() && b.pieces.empty() && a.source == b.source && (a.source >= 0 || a.access == b.access);
}

// If `sum` is the sum of exp(v - max v), and the phase that finds max v can compute the sum as well, returns the node
// of max v; otherwise -1.
NodeId rides_on(const Graph& group, const Domain& domain, NodeId sum) {
  if (group.nodes[sum].op != Op::reduce_sum || !is_float(group.nodes[sum].dtype)) return -1;
  const NodeId power = domain.operands[sum][0].source;
  if (power < 0 || group.nodes[power].op != Op::exp) return -1;
  const NodeId difference = domain.operands[power][0].source;
  if (difference < 0 || group.nodes[difference].op != Op::sub) return -1;
  const NodeId largest = domain.operands[difference][1].source;
  if (largest < 0 || group.nodes[largest].op != Op::reduce_max || !is_reduction(group, largest)) return -1;
  const bool same = domain.varies[largest] == domain.varies[sum] &&
                    same_value(domain.operands[difference][0], domain.operands[largest][0]);
  return same ? largest : -1;
}

}  // namespace

RowPhases row_phases(const Graph& group, const Domain& domain, bool online) {
  RowPhases out;
  out.level.assign(group.nodes.size(), 0);
  for (NodeId id = 0; id < static_cast<NodeId>(group.nodes.size()); ++id) {
    for (const Domain::Operand& operand : domain.operands[id])
      if (operand.source >= 0) out.level[id] = std::max(out.level[id], out.level[operand.source]);
    if (domain.operands[id].empty() || !is_reduction(group, id)) continue;
    out.reduces.push_back(id);
    const NodeId largest = online ? rides_on(group, domain, id) : -1;
    if (largest >= 0) {
      out.online[id] = largest;
      out.level[id] = out.level[largest];
      continue;
    }
    out.count = std::max(out.count, ++out.level[id]);
  }
  for (const Domain::Store& store : domain.stores) {
    const int level = store.source >= 0 ? out.level[store.source] : 0;
    const bool inside =
        store.source >= 0 && std::any_of(domain.varies[store.source].begin(), domain.varies[store.source].end(),
                                         [&](AtomId atom) { return domain.atoms[atom].reduced; });
    // A value that does not vary along the reduced loops is stored at the end of the phase in which it is computed.
    out.store_phase.push_back(inside || level == 0 ? level : level - 1);
    out.count = std::max(out.count, out.store_phase.back() + 1);
  }
  return out;
}

}  // namespace wl

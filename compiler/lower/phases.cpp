#include <algorithm>

#include "compiler/lower/loops.h"

namespace wl {
namespace {

// Computing a value again costs no more than a store and a load up to this many issue slots per element.
constexpr int kCheap = 9;

bool is_computed(const Graph& group, NodeId id) {
  const OpClass cls = class_of(group.nodes[id].op);
  return cls != OpClass::kLeaf && cls != OpClass::kView;
}

struct Crossing {
  const Graph& group;
  const Domain& domain;
  const int keep;
  Phases& phases;
  std::vector<std::set<NodeId>> computed;  // by phase
  std::map<NodeId, int> first;

  bool varies_inside(NodeId id) const {
    return std::any_of(domain.varies[id].begin(), domain.varies[id].end(),
                       [&](AtomId a) { return domain.atoms[a].reduced; });
  }

  int cost(NodeId id) const {
    int total = info(group.nodes[id].op).cost;
    for (const Domain::Operand& operand : domain.operands[id])
      if (operand.source >= 0 && is_computed(group, operand.source) && varies_inside(operand.source) &&
          !phases.kept.contains(operand.source))
        total += cost(operand.source);
    return total;
  }

  void demand(NodeId id, int phase) {
    if (!is_computed(group, id) || is_reduction(group, id) || !varies_inside(id)) return;
    if (computed[phase].contains(id)) return;
    const auto earlier = first.find(id);
    if (earlier != first.end() && earlier->second < phase) {
      const bool vector =
          std::find(domain.varies[id].begin(), domain.varies[id].end(), domain.vector) != domain.varies[id].end();
      if (phases.kept.contains(id)) return;
      if (vector && (keep >= 1 || cost(id) > kCheap)) {
        phases.kept[id] = earlier->second;
        return;
      }
    }
    computed[phase].insert(id);
    first.try_emplace(id, phase);
    for (const Domain::Operand& operand : domain.operands[id])
      if (operand.source >= 0) demand(operand.source, phase);
  }
};

}  // namespace

Phases phases_of(const Graph& group, const Domain& domain, int keep) {
  Phases out;
  const int n = static_cast<int>(group.nodes.size());
  out.level.assign(n, 0);
  out.uses.assign(n, 0);
  for (NodeId id = 0; id < n; ++id) {
    if (!is_computed(group, id)) continue;
    for (const Domain::Operand& operand : domain.operands[id]) {
      if (operand.source < 0) continue;
      out.level[id] = std::max(out.level[id], out.level[operand.source]);
      ++out.uses[operand.source];
    }
    if (is_reduction(group, id)) {
      ++out.level[id];
      out.reduces.push_back(id);
      out.count = std::max(out.count, out.level[id]);
    }
  }
  for (const Domain::Store& store : domain.stores) {
    if (store.source >= 0) ++out.uses[store.source];
    const int level = store.source >= 0 ? out.level[store.source] : 0;
    const bool inside =
        store.source >= 0 && std::any_of(domain.varies[store.source].begin(), domain.varies[store.source].end(),
                                         [&](AtomId a) { return domain.atoms[a].reduced; });
    // A value outside the reduced loops is stored when the phase before it has ended.
    const int phase = inside || level == 0 ? level : level - 1;
    out.count = std::max(out.count, phase + 1);
    if (static_cast<int>(out.stores.size()) <= phase) out.stores.resize(phase + 1);
    out.stores[phase].push_back(static_cast<int>(&store - domain.stores.data()));
  }
  out.stores.resize(out.count);
  Crossing crossing{group, domain, keep, out, std::vector<std::set<NodeId>>(out.count), {}};
  for (int phase = 0; phase < out.count; ++phase) {
    for (NodeId r : out.reduces)
      if (out.level[r] - 1 == phase && domain.operands[r][0].source >= 0)
        crossing.demand(domain.operands[r][0].source, phase);
    for (int s : out.stores[phase])
      if (domain.stores[s].source >= 0) crossing.demand(domain.stores[s].source, phase);
  }
  // A column tile's values live over the whole reduced range: too much to keep.
  if (domain.cls == LoopClass::kColumns) out.kept.clear();
  return out;
}

}  // namespace wl

#include "compiler/schedule/nest/phases.h"

#include <algorithm>
#include <set>

namespace wl {
namespace {

// If a value takes at most this many issue slots per element, computing it again costs no more than storing and loading
// it.
constexpr int kCheap = 9;

bool is_computed(const Graph& group, NodeId id) {
  const OpClass cls = class_of(group.nodes[id].op);
  return cls != OpClass::kLeaf && cls != OpClass::kView;
}

// Finds the values that each phase computes, and those that it loads because an earlier phase has kept them in a row
// buffer.
struct Crossing {
  const Graph& group;
  const Domain& domain;
  const bool keep_all;
  NestPhases& phases;
  std::vector<std::set<NodeId>> computed;  // for each phase: the values that it computes
  std::map<NodeId, int> first;             // for each value: the phase that computes it first

  bool varies_inside(NodeId id) const {
    return std::any_of(domain.varies[id].begin(), domain.varies[id].end(),
                       [&](AtomId a) { return domain.atoms[a].reduced; });
  }

  // The number of issue slots per element that it takes to compute a value from inputs and kept values.
  int cost(NodeId id) const {
    int total = info(group.nodes[id].op).cost;
    for (const Domain::Operand& operand : domain.operands[id])
      if (operand.source >= 0 && is_computed(group, operand.source) && varies_inside(operand.source) &&
          !phases.kept.contains(operand.source))
        total += cost(operand.source);
    return total;
  }

  // Records that a phase needs a value. If an earlier phase computes the value, either a row buffer keeps it from that
  // phase on, or this phase computes it again.
  void demand(NodeId id, int phase) {
    if (!is_computed(group, id) || is_reduction(group, id) || !varies_inside(id)) return;
    if (computed[phase].contains(id)) return;
    const auto earlier = first.find(id);
    if (earlier != first.end() && earlier->second < phase) {
      const bool vector =
          std::find(domain.varies[id].begin(), domain.varies[id].end(), domain.vector) != domain.varies[id].end();
      if (phases.kept.contains(id)) return;
      if (vector && (keep_all || cost(id) > kCheap)) {
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

NestPhases nest_phases(const Graph& group, const Domain& domain, bool keep_all, bool online) {
  NestPhases out{row_phases(group, domain, online), {}, {}, {}};
  out.uses.assign(group.nodes.size(), 0);
  for (const std::vector<Domain::Operand>& operands : domain.operands)
    for (const Domain::Operand& operand : operands)
      if (operand.source >= 0) ++out.uses[operand.source];
  out.stores.resize(out.count);
  for (size_t i = 0; i < domain.stores.size(); ++i) {
    if (domain.stores[i].source >= 0) ++out.uses[domain.stores[i].source];
    out.stores[out.store_phase[i]].push_back(static_cast<int>(i));
  }
  Crossing crossing{group, domain, keep_all, out, std::vector<std::set<NodeId>>(out.count), {}};
  for (int phase = 0; phase < out.count; ++phase) {
    for (NodeId r : out.reduces)
      if (out.level[r] - 1 == phase && !out.online.contains(r))
        for (const Domain::Operand& operand : domain.operands[r])
          if (operand.source >= 0) crossing.demand(operand.source, phase);
    for (int s : out.stores[phase])
      if (domain.stores[s].source >= 0) crossing.demand(domain.stores[s].source, phase);
  }
  // Row buffers keep nothing for column reductions: they have no room for the values of a tile over the whole reduced
  // range.
  if (domain.cls == LoopClass::kColumns) out.kept.clear();
  return out;
}

}  // namespace wl

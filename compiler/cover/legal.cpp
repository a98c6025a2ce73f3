#include "compiler/cover/legal.h"

#include <algorithm>

#include "compiler/plan/masks.h"
#include "compiler/plan/reads.h"

namespace wl {
namespace {

constexpr int kCheapPrologue = 2;  // kCheapWork for an operand of a contraction, whose elements are read more than once
constexpr int64_t kLongReduction = 1 << 16;
constexpr int kMaskPrologue = 3 * kCheapWork;  // what conditions on places and a select take
constexpr double kMasked = 0.75;               // so few of a contraction's products count that masks pay for packing
constexpr int64_t kMaskedTile = 16;            // rows, and columns, that a mask may leave of a loop it cuts

// Whether an operand of the contraction is made of narrower elements along the depth, as a weight that is converted or
// dequantised is. Storing it would move more bytes than computing it again reads.
bool is_widened(const Graph& group, const Domain& domain, int position) {
  const Node& operand = group.nodes[group.nodes[domain.contract].operands[position]];
  bool widened = false;
  for (const Access& read : reads_of(domain, domain.contract, position)) {
    if (std::ranges::none_of(domain.reduced, [&](AtomId atom) { return read.strides[atom] != 0; })) continue;
    if (size_of(group.nodes[read.input].dtype) >= size_of(operand.dtype)) return false;
    widened = true;
  }
  return widened;
}

// Whether masks of the factors leave so many products out that they are worth a packed operand, and loops of their own
// that would otherwise be one with the batch's.
bool is_masked(const Graph& group, const Domain& domain, int prologue) {
  if (prologue > kMaskPrologue) return false;
  const auto is_tile = [&](const std::vector<AtomId>& role) {
    return !role.empty() && domain.atoms[role.back()].extent >= kMaskedTile;
  };
  if (!is_tile(domain.m) || !is_tile(domain.n)) return false;
  Region region = counted_products(group, domain);
  std::erase_if(region, [&](const Condition& condition) {
    return std::ranges::none_of(domain.reduced, [&](AtomId atom) { return condition.strides[atom] != 0; });
  });
  return share_of(region, domain) <= kMasked;
}

}  // namespace

bool worthwhile(const Graph& group, const Domain& domain, const Machine& machine, size_t contract_atoms) {
  if (domain.cls == LoopClass::kContract) {
    std::vector<char> before(group.nodes.size(), 0);
    before[domain.contract] = 1;
    int prologue = 0, along_depth = 0;  // that of values which move along the depth
    for (NodeId id = domain.contract; id >= 0; --id) {
      if (!before[id]) continue;
      for (NodeId operand : group.nodes[id].operands) before[operand] = 1;
      if (id == domain.contract || domain.operands[id].empty()) continue;
      const int cost = info(group.nodes[id].op).cost;
      prologue += cost;
      if (std::ranges::any_of(domain.varies[id], [&](AtomId atom) { return holds(domain.reduced, atom); }))
        along_depth += cost;
    }
    if (is_masked(group, domain, prologue)) return true;
    if (domain.atoms.size() > contract_atoms) return false;  // the epilogue would split the tiles
    // The rows' operand is read in place. Work on it would need a packed copy, which costs about as much as 200
    // columns.
    if (domain.operands[domain.contract][domain.swapped ? 1 : 0].source >= 0) return false;
    return prologue <= kCheapPrologue ||
           (along_depth <= kCheapWork && is_widened(group, domain, domain.right_operand()));
  }
  if (domain.cls != LoopClass::kMap && extent_of(domain, domain.parallel) < machine.threads &&
      extent_of(domain, domain.reduced) > kLongReduction &&
      domain.atoms[shared_atom(domain)].extent < machine.threads * machine.target->lanes)
    return false;  // one thread would do the work of all, and no loop is long enough to be divided
  for (size_t id = 0; id < domain.operands.size(); ++id) {
    if (domain.operands[id].empty() || info(group.nodes[id].op).cost <= kCheapWork) continue;
    if (domain.vector < 0 || !holds(domain.varies[id], domain.vector)) continue;
    for (AtomId atom : domain.parallel)
      if (!holds(domain.varies[id], atom) && domain.atoms[atom].extent > 1) return false;
  }
  return true;
}

}  // namespace wl

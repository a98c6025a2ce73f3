#include "compiler/cover/legal.h"

#include <algorithm>

#include "compiler/domain/masks.h"
#include "compiler/domain/reads.h"

namespace wl {
namespace {

// The largest total cost of ops that may compute a contraction's operands within its kernel. It is below kCheapWork,
// since the kernel reads operands, and so computes them, repeatedly.
constexpr int kCheapPrologue = 2;
constexpr int64_t kLongReduction = 1 << 16;
constexpr int kMaskPrologue = 3 * kCheapWork;  // cost of the ops of a mask: two conditions on coordinates, and a select
// Masks for which an operand must be packed are fused if they leave at most this share of the contraction's products.
constexpr double kMasked = 0.75;
// The innermost loops over rows and columns of a masked contraction must be at least this long.
constexpr int64_t kMaskedTile = 16;

// Whether an operand of the contraction is computed from narrower elements that vary along the reduced axes, as a
// converted or dequantised weight is. Storing such an operand would move more bytes than reading the narrow elements
// repeatedly.
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

// Whether the contraction's operands have masks that leave out many of its products. Fusing such masks pays, although
// an operand must then be packed, and although the loops over rows and over the batch, which could otherwise be one
// loop, stay separate.
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
    // The total cost of the ops that compute the contraction's operands, and of those among them whose values vary
    // along the reduced axes.
    int prologue = 0, along_depth = 0;
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
    // A group is refused if its epilogue has further loops, since these would cut the contraction's tiles into smaller
    // ones.
    if (domain.atoms.size() > contract_atoms) return false;
    // The operand that the rows of the result depend on is read in place. A group that computes this operand is
    // refused: the kernel would have to pack it, which costs about as much as 200 further columns of the result.
    if (domain.operands[domain.contract][domain.swapped ? 1 : 0].source >= 0) return false;
    return prologue <= kCheapPrologue ||
           (along_depth <= kCheapWork && is_widened(group, domain, domain.right_operand()));
  }
  if (domain.cls != LoopClass::kMap && extent_of(domain, domain.parallel) < machine.threads &&
      extent_of(domain, domain.reduced) > kLongReduction &&
      domain.atoms[shared_atom(domain)].extent < machine.threads * machine.target->lanes)
    // There are fewer parallel iterations than threads, and no loop is long enough to be divided among the threads.
    return false;
  for (size_t id = 0; id < domain.operands.size(); ++id) {
    if (domain.operands[id].empty() || info(group.nodes[id].op).cost <= kCheapWork) continue;
    if (domain.vector < 0 || !holds(domain.varies[id], domain.vector)) continue;
    for (AtomId atom : domain.parallel)
      if (!holds(domain.varies[id], atom) && domain.atoms[atom].extent > 1) return false;
  }
  return true;
}

}  // namespace wl

#include "compiler/plan/moves.h"

#include <algorithm>
#include <map>

namespace wl {
namespace {

// No two points of the domain meet the same element.
bool injective(const Domain& domain, const Access& access) {
  std::vector<std::pair<int64_t, int64_t>> steps;  // stride, extent
  for (size_t atom = 0; atom < domain.atoms.size(); ++atom)
    if (domain.atoms[atom].extent > 1) steps.emplace_back(std::abs(access.strides[atom]), domain.atoms[atom].extent);
  std::sort(steps.begin(), steps.end());
  int64_t reach = 0;
  for (const auto& [stride, extent] : steps) {
    if (stride <= reach) return false;
    reach += stride * (extent - 1);
  }
  return true;
}

}  // namespace

std::vector<NodeId> inputs_read_once(const Graph& group, const Domain& domain) {
  std::map<NodeId, std::vector<Access>> reads;
  std::map<NodeId, bool> otherwise;  // by an index, or in part
  const auto note = [&](const Access& access, bool plain) {
    if (access.input < 0 || access.strides.size() != domain.atoms.size()) return;
    reads[access.input].push_back(access);
    otherwise[access.input] |= !plain;
  };
  const auto note_pieces = [&](const std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces)
      if (!piece.constant && piece.source < 0) note(piece.access, false);
  };
  for (const std::vector<Domain::Operand>& operands : domain.operands)
    for (const Domain::Operand& operand : operands) {
      note_pieces(operand.pieces);
      if (operand.pieces.empty() && operand.source < 0) note(operand.access, operand.gather_extent == 0);
    }
  for (const Domain::Store& store : domain.stores) {
    note_pieces(store.pieces);
    if (store.pieces.empty() && store.source < 0) note(store.copy, true);
  }
  std::vector<NodeId> out;
  for (const auto& [input, accesses] : reads) {
    const bool same = std::all_of(accesses.begin(), accesses.end(),
                                  [&, &first = accesses[0]](const Access& access) { return access == first; });
    if (same && !otherwise[input] && group.nodes[input].op == Op::input && injective(domain, accesses[0]))
      out.push_back(input);
  }
  return out;
}

}  // namespace wl

#include "compiler/domain/reads.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace wl {
namespace {

// Whether `access` accesses a different element at each point of the domain. Returns false if its strides do not prove
// this.
bool injective(const Domain& domain, const Access& access) {
  std::vector<std::pair<int64_t, int64_t>> steps;  // the stride and the extent of each loop of more than one iteration
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

void collect(const Domain& domain, NodeId node, int position, std::set<NodeId>& seen, std::vector<Access>& out) {
  const Domain::Operand& operand = domain.operands[node][position];
  for (const Piece& piece : operand.pieces)
    if (piece.source < 0 && !piece.constant) out.push_back(piece.access);
  if (!operand.pieces.empty()) return;
  if (operand.source < 0) return out.push_back(operand.access);
  if (!seen.insert(operand.source).second) return;
  for (size_t i = 0; i < domain.operands[operand.source].size(); ++i)
    collect(domain, operand.source, static_cast<int>(i), seen, out);
}

}  // namespace

std::vector<NodeId> inputs_read_once(const Graph& group, const Domain& domain) {
  std::map<NodeId, std::vector<Access>> reads;
  // Whether an input is also read by a computed index, or as a piece of a padded or joined operand.
  std::map<NodeId, bool> otherwise;
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

const Access* copied_operand(const Graph& group, const Domain& domain, int position, DType dtype) {
  const Domain::Operand& operand = domain.operands[domain.contract][position];
  const std::vector<Piece>& pieces = operand.pieces;
  const bool padded = pieces.size() == 2 && !pieces[0].constant && pieces[0].source < 0 && pieces[1].constant &&
                      pieces[1].value == 0 && !std::signbit(pieces[1].value);
  if (!padded && !operand.is_direct()) return nullptr;
  const Access& access = padded ? pieces[0].access : operand.access;
  const bool in_reach =
      std::find(domain.uncopied.begin(), domain.uncopied.end(), access.input) == domain.uncopied.end();
  return in_reach && group.nodes[access.input].dtype == dtype ? &access : nullptr;
}

bool copies_rows(const Graph& group, const Domain& domain, const Access& access, int64_t vector) {
  if (domain.vector < 0 || access.strides[domain.vector] != 1 || domain.atoms[domain.vector].extent <= 1) return false;
  bool moves = false, aligned = access.offset % vector == 0 && domain.atoms[domain.vector].extent % vector == 0;
  for (size_t atom = 0; atom < domain.atoms.size(); ++atom) {
    if (static_cast<AtomId>(atom) == domain.vector || domain.atoms[atom].extent == 1) continue;
    moves = moves || (!domain.atoms[atom].reduced && access.strides[atom] != 0);
    aligned = aligned && access.strides[atom] % vector == 0;
  }
  const int64_t size = size_of(group.nodes[access.input].dtype);
  return moves && (size >= 4 || (aligned && vector * size >= 4));
}

int64_t copied_bytes(const Graph& group, const Domain& domain) {
  std::vector<Access> seen;
  int64_t bytes = 0;
  const auto note = [&](const Access& access) {
    if (access.input < 0 || access.strides.size() != domain.atoms.size()) return;
    const auto copies = [&](int64_t vector) { return copies_rows(group, domain, access, vector); };
    if (!copies(1) && !copies(2) && !copies(4)) return;
    if (std::find(seen.begin(), seen.end(), access) != seen.end()) return;
    seen.push_back(access);
    bytes += size_of(group.nodes[access.input].dtype);
  };
  for (const std::vector<Domain::Operand>& operands : domain.operands)
    for (const Domain::Operand& operand : operands)
      if (operand.is_direct()) note(operand.access);
  for (const Domain::Store& store : domain.stores)
    if (store.pieces.empty() && store.source < 0) note(store.copy);
  return bytes;
}

std::vector<Access> reads_of(const Domain& domain, NodeId node, int position) {
  std::vector<Access> out;
  std::set<NodeId> seen;
  collect(domain, node, position, seen, out);
  return out;
}

bool aligned_along(const Domain& domain, const std::vector<Access>& reads, AtomId atom, int64_t vector) {
  return atom >= 0 && std::all_of(reads.begin(), reads.end(), [&](const Access& access) {
           if (access.strides[atom] != 1) return true;
           if (access.offset % vector != 0) return false;
           for (size_t a = 0; a < access.strides.size(); ++a)
             if (static_cast<AtomId>(a) != atom && domain.atoms[a].extent > 1 && access.strides[a] % vector != 0)
               return false;
           return true;
         });
}

}  // namespace wl

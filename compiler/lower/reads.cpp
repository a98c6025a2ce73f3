#include "compiler/lower/reads.h"

#include <algorithm>
#include <set>

namespace wl {
namespace {

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

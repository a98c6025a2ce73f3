#include "compiler/plan/walk.h"

#include <algorithm>
#include <utility>

namespace wl {
namespace {

// What one turn of the reduced loops reads.
std::vector<const Access*> reads_of(const Domain& domain) {
  std::vector<const Access*> reads;
  const auto add = [&](const Access& access) {
    const auto moves = [&](AtomId atom) { return access.moves_along(atom); };
    if (moves(domain.vector) && std::any_of(domain.reduced.begin(), domain.reduced.end(), moves))
      reads.push_back(&access);
  };
  for (const std::vector<Domain::Operand>& operands : domain.operands)
    for (const Domain::Operand& operand : operands) {
      if (operand.access.input >= 0 && operand.gather_extent == 0) add(operand.access);
      for (const Piece& piece : operand.pieces) add(piece.access);
    }
  return reads;
}

}  // namespace

AtomId tall_atom(const Domain& domain) {
  if (domain.cls != LoopClass::kColumns || domain.vector < 0) return -1;
  const std::vector<const Access*> reads = reads_of(domain);
  AtomId best = -1;
  std::pair<size_t, size_t> most = {0, 0};
  for (AtomId atom : domain.parallel) {
    if (atom == domain.vector || domain.atoms[atom].extent < 2) continue;
    std::pair<size_t, size_t> stay = {0, 0};  // reads, and conditions of those that do not
    for (const Access* access : reads) {
      const auto rests = [&](const Guard& guard) { return guard.strides[atom] == 0; };
      if (!access->moves_along(atom))
        ++stay.first;
      else if (!access->guards.empty() && std::all_of(access->guards.begin(), access->guards.end(), rests))
        ++stay.second;
    }
    if (stay >= most && stay > std::pair<size_t, size_t>{0, 0}) {  // of equals the innermost
      most = stay;
      best = atom;
    }
  }
  return best;
}

void add_height(Space& space, const Domain& domain) {
  const AtomId atom = tall_atom(domain);
  if (atom < 0) return;
  Axis axis{"height", {1}};
  for (int64_t height : {2, 4, 8, 16})
    if (domain.atoms[atom].extent % height == 0) axis.values.push_back(height);
  if (axis.values.size() > 1) space.axes.push_back(std::move(axis));
}

// Accumulators, beside them a row of what stays and some to compute with.
bool fits_registers(const Schedule& schedule, const Machine& machine) {
  const int64_t height = schedule.get("height", 1), tile = schedule.get("tile", 1);
  return height == 1 || height * tile + tile + 2 <= machine.target->vector_registers;
}

}  // namespace wl

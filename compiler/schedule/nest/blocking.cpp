#include "compiler/schedule/nest/blocking.h"

#include <algorithm>
#include <utility>

namespace wl {
namespace {

// Returns the reads that vary along the vectorised axis. Gathers are left out.
std::vector<const Access*> reads_of(const Domain& domain) {
  std::vector<const Access*> reads;
  const auto add = [&](const Access& access) {
    if (access.moves_along(domain.vector)) reads.push_back(&access);
  };
  for (const std::vector<Domain::Operand>& operands : domain.operands)
    for (const Domain::Operand& operand : operands) {
      if (operand.access.input >= 0 && operand.gather_extent == 0) add(operand.access);
      for (const Piece& piece : operand.pieces) add(piece.access);
    }
  return reads;
}

}  // namespace

AtomId register_rows_atom(const Domain& domain) {
  if (domain.cls != LoopClass::kColumns || domain.vector < 0) return -1;
  std::vector<const Access*> reads = reads_of(domain);
  // Drops reads that are the same in all iterations of all reduced loops.
  std::erase_if(reads, [&](const Access* access) {
    return std::none_of(domain.reduced.begin(), domain.reduced.end(), [&](AtomId a) { return access->moves_along(a); });
  });
  AtomId best = -1;
  std::pair<size_t, size_t> most = {0, 0};
  for (AtomId atom : domain.parallel) {
    if (atom == domain.vector || domain.atoms[atom].extent < 2) continue;
    // How many reads are the same in all iterations of the loop over `atom`; and of the other reads, how many have
    // guards that are the same in all these iterations.
    std::pair<size_t, size_t> stay = {0, 0};
    for (const Access* access : reads) {
      const auto rests = [&](const Guard& guard) { return guard.strides[atom] == 0; };
      if (!access->moves_along(atom))
        ++stay.first;
      else if (!access->guards.empty() && std::all_of(access->guards.begin(), access->guards.end(), rests))
        ++stay.second;
    }
    // If several loops have the same two numbers, the innermost of these loops is chosen.
    if (stay >= most && stay > std::pair<size_t, size_t>{0, 0}) {
      most = stay;
      best = atom;
    }
  }
  return best;
}

void add_register_rows(Space& space, const Domain& domain) {
  const AtomId atom = register_rows_atom(domain);
  if (atom < 0) return;
  Axis axis(kRegisterRows, {1});
  for (int64_t height : {2, 4, 8, 16})
    if (domain.atoms[atom].extent % height == 0) axis.values.push_back(height);
  if (axis.values.size() > 1) space.axes.push_back(std::move(axis));
}

// A tile needs registers for its accumulators, for one row of values that all rows of the tile share, and for two
// temporaries.
bool fits_registers(const Schedule& schedule, const Machine& machine) {
  const int64_t height = schedule[kRegisterRows], tile = schedule[kTileVectors];
  return height == 1 || height * tile + tile + 2 <= machine.target->vector_registers;
}

AtomId cache_block_atom(const Graph& group, const Domain& domain, const Machine& machine, int64_t* bytes) {
  if (domain.cls != LoopClass::kMap || domain.vector < 0) return -1;
  const std::vector<const Access*> reads = reads_of(domain);
  AtomId best = -1;
  int64_t most = machine.l2_bytes / 2;
  for (size_t i = 0; i < domain.parallel.size(); ++i) {
    const AtomId atom = domain.parallel[i];
    if (atom == domain.vector || domain.atoms[atom].extent < 2) continue;
    int64_t staying = 0;
    for (const Access* access : reads) {
      if (access->moves_along(atom) || access->input < 0) continue;
      int64_t each = size_of(group.nodes[access->input].dtype);
      for (size_t k = 0; k < domain.parallel.size(); ++k) {
        const AtomId within = domain.parallel[k];
        if ((k > i || within == domain.vector) && access->strides[within] != 0) each *= domain.atoms[within].extent;
      }
      staying += each;
    }
    if (staying <= most) continue;
    most = staying;
    best = atom;
  }
  if (bytes != nullptr && best >= 0) *bytes = most;
  return best;
}

int64_t rows_within(const Domain& domain, AtomId atom, int64_t tile) {
  int64_t rows = (domain.atoms[domain.vector].extent + tile - 1) / tile;
  for (size_t i = domain.parallel.size(); i-- > 0 && domain.parallel[i] != atom;)
    if (domain.parallel[i] != domain.vector) rows *= domain.atoms[domain.parallel[i]].extent;
  return rows;
}

void add_cache_block_rows(Space& space) {
  space.axes.push_back({kCacheBlockRows, {0, 1, 4, 16, 64, 256}});
}

bool divides_cache_blocks(const Domain& domain, AtomId blocked, const Schedule& schedule) {
  const int64_t band = schedule[kCacheBlockRows];
  if (band == 0) return true;
  const int64_t rows = rows_within(domain, blocked, schedule[kTileElements]);
  return band < rows && rows % band == 0;
}

}  // namespace wl

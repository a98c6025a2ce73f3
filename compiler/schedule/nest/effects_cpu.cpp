// Tells which values of a choice give the same kernel of a loop nest on CPUs.
#include <algorithm>

#include "compiler/schedule/nest/nest.h"
#include "compiler/schedule/nest/phases.h"

namespace wl {
namespace {

// What the lowering of a nest can obey of the choices that fetch and keep values.
struct NestFacts {
  NestFacts(const Graph& group, const Domain& domain);

  // Whether vectors of some input move from one row to the next, and whether any input is read in vectors. A row is one
  // point of the parallel loops other than the vectorised axis.
  bool moves_by_row = false, reads_vectors = false;
  // Whether row buffers keep a value under kKeepCostly and under kKeepAll, and whether they keep the same values under
  // both.
  bool keeps_costly = false, keeps_any = false, keeps_alike = true;
};

NestFacts::NestFacts(const Graph& group, const Domain& domain) {
  const auto read = [&](const Access& access) {
    if (domain.vector < 0 || access.strides[domain.vector] == 0) return;
    reads_vectors = true;
    for (const AtomId atom : domain.parallel)
      moves_by_row = moves_by_row || (atom != domain.vector && access.strides[atom] != 0);
  };
  // Pieces of padded and joined operands are read under guards, and are not fetched ahead.
  for (const std::vector<Domain::Operand>& operands : domain.operands)
    for (const Domain::Operand& operand : operands)
      if (operand.is_direct()) read(operand.access);
  for (const Domain::Store& store : domain.stores)
    if (store.source < 0 && store.pieces.empty()) read(store.copy);
  if (domain.cls != LoopClass::kRows) return;
  const auto costly = nest_phases(group, domain, false, false).kept, all = nest_phases(group, domain, true, false).kept;
  keeps_costly = !costly.empty();
  keeps_any = !all.empty();
  keeps_alike = costly == all;
}

}  // namespace

void add_cpu_nest_effects(Space& space, const Graph& group, const Domain& domain) {
  const NestFacts facts(group, domain);
  const bool is_parallel = domain.vector >= 0 && !domain.atoms[domain.vector].reduced;
  const int64_t extent = domain.vector >= 0 ? domain.atoms[domain.vector].extent : 1;
  const auto tile_of = [columns = domain.cls == LoopClass::kColumns](const Schedule& s) {
    return columns ? s[kTileVectors] * s[kVector] : s[kTileElements];
  };
  // Prefetches are of vectors that another row reads elsewhere.
  const auto fetches = [=](const Schedule& s) {
    return facts.reads_vectors && (facts.moves_by_row || (is_parallel && tile_of(s) < extent));
  };
  // The rows that a block has, where a row is one point of the parallel loops with a tile of the vectorised axis.
  const int64_t outer = extent_of(domain, domain.parallel) / (is_parallel ? std::max<int64_t>(1, extent) : 1);
  space.add_effect(kTasksPerThread, [=](const Schedule& s, int64_t tasks) -> int64_t {
    if (s[kRegisterRows] > 1 || s[kCacheBlockRows] > 0) return -tasks;
    const int64_t tile = std::max<int64_t>(1, tile_of(s)), blocks = std::max<int64_t>(1, s[kThreads] * tasks);
    const int64_t rows = outer * (is_parallel ? (extent + tile - 1) / tile : 1);
    return (rows + blocks - 1) / blocks;
  });
  // A tile holds a whole row at most.
  space.add_effect(kTileElements, [=](const Schedule&, int64_t tile) { return std::min(tile, extent); });
  space.add_effect(kPrefetch, [=](const Schedule& s, int64_t ahead) { return fetches(s) ? ahead : 0; });
  space.add_effect(kPrefetchLevel,
                   [=](const Schedule& s, int64_t level) { return s[kPrefetch] > 0 && fetches(s) ? level : 1; });
  space.add_effect(kKeep, [=](const Schedule&, int64_t keep) { return facts.keeps_alike ? kKeepCostly : keep; });
  space.add_effect(kStagger, [=](const Schedule& s, int64_t bytes) {
    return (s[kKeep] == kKeepAll ? facts.keeps_any : facts.keeps_costly) ? bytes : 0;
  });
}

}  // namespace wl

// The search space of column reductions on CPUs: a tile of several vectors of columns is reduced in registers.
#include <algorithm>

#include "compiler/schedule/axes.h"
#include "compiler/schedule/nest/blocking.h"
#include "compiler/schedule/nest/nest.h"
#include "compiler/schedule/nest/row_parts.h"

namespace wl {

Space space_columns(const Graph& group, const Domain& domain, const Machine& machine) {
  const int64_t lanes = machine.target->lanes;
  const int64_t extent = domain.vector >= 0 ? domain.atoms[domain.vector].extent : 1;
  const int64_t columns = extent_of(domain, domain.parallel);
  Space space;
  space.kind = "columns";
  space.axes = {
      axis(kVector, {lanes}),
      axis(kTileVectors, {1, 2, 4, 8}, [&](int64_t t) { return (t - 1) * lanes < extent; }),
      stream_axis(group, domain, machine),
      axis(kPrefetch, {0, 1, 2, 4}),
      axis(kPrefetchLevel, {1, 2}),
      axis(kTasksPerThread, {1, 4, 16}, [&](int64_t t) { return t * machine.threads * lanes <= columns; }),
      threads_axis(machine),
      compiler_axis(machine),
  };
  add_listed_axes(space, machine);
  // The number of columns in the widest tile that has at most 8 vectors.
  const int64_t most = largest_up_to(values_of(space, kTileVectors), 8) * lanes;
  const int64_t blocks = std::max<int64_t>(1, columns / most);
  if (machine.threads > 1) add_parts(space, domain, machine, blocks, 4 * machine.threads);
  add_last(space, group, domain, columns);
  add_register_rows(space, domain);
  const AtomId atom = shared_atom(domain);
  const int64_t shared = atom >= 0 ? domain.atoms[atom].extent : 1;
  space.legal = [shared, machine](const Schedule& s) {
    if (!may_join(s) || !fits_registers(s, machine)) return false;
    if (const int64_t parts = s[kReductionBlocks]; parts > 1) {
      if (s[kRegisterRows] > 1) return false;
      if (s[kPrefetch] != 0 || s[kTasksPerThread] != 1 || s[kThreads] == 1 || !shares_out(shared, parts, 1))
        return false;
    }
    return s[kPrefetch] != 0 || s[kPrefetchLevel] == 1;
  };
  add_cpu_nest_effects(space, group, domain);
  const int64_t threads = footprint(group) < 64 << 10 ? 1 : machine.threads;
  for (int64_t wanted : {machine.threads, 4 * machine.threads}) {
    const int64_t parts = blocks < machine.threads ? parts_for(space, blocks, wanted) : 1;
    if (parts > 1)
      for (int64_t tile : {8, 4, 2, 1})
        add_seed(space, {{kTileVectors, tile}, {kThreads, threads}, {kReductionBlocks, parts}});
  }
  for (const auto& [height, tile] : {std::pair(8, 2), {4, 4}, {8, 1}, {4, 2}})
    add_seed(space, {{kTileVectors, tile}, {kRegisterRows, height}, {kThreads, threads}});
  for (int64_t tile : {8, 4, 2, 1}) add_seed(space, {{kTileVectors, tile}, {kThreads, threads}});
  return space;
}

}  // namespace wl

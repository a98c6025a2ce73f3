// Row reductions: the row is walked once for each phase, kept in an L1 buffer or read again; one thread owns a range of
// rows.
#include <bit>

#include "compiler/plan/phases.h"
#include "compiler/schedule/axes.h"
#include "compiler/schedule/nest/nest.h"
#include "compiler/schedule/nest/parts.h"

namespace wl {

Space space_rows(const Graph& group, const Domain& domain, const Machine& machine) {
  const int64_t rows = extent_of(domain, domain.parallel);
  const int64_t row = domain.vector >= 0 ? domain.atoms[domain.vector].extent : 1;
  const int64_t vectors = std::max<int64_t>(1, row / machine.target->lanes);
  const int phases = row_phases(group, domain).count;
  // As many row buffers as phases, beside the row that is being read.
  const int64_t buffers = (phases + 1) * extent_of(domain, domain.reduced) * 4;
  const bool fits_l1 = buffers <= machine.l1_bytes, fits_l2 = buffers <= machine.l2_bytes;
  Space space;
  space.kind = "rows";
  space.axes = {
      axis(kVector, {machine.target->lanes}),
      axis(kUnroll, {1, 2, 4, 8}, [&](int64_t u) { return u <= vectors; }),
      axis(kAccumulators, {1, 2, 4, 8}, [&](int64_t a) { return a <= vectors; }),
      axis(kKeep, {kKeepCostly, kKeepAll}, [&](int64_t) { return phases > 1; }),
      axis(kPipeline, {0, 1}, [&](int64_t) { return phases > 1 && rows >= 2 * phases; }),
      axis(kStagger, {0, 704}, [&](int64_t) { return phases > 1; }),
      stream_axis(group, domain, machine),
      axis(kPrefetch, {0, 1, 2, 4}, [&](int64_t p) { return p < rows; }),
      axis(kPrefetchLevel, {1, 2}),
      axis(kTasksPerThread, {1, 4, 16}, [&](int64_t t) { return t * machine.threads <= rows; }),
      threads_axis(machine),
      compiler_axis(machine),
  };
  add_listed_axes(space, machine);
  if (machine.threads > 1) add_parts(space, domain, machine, rows, 4 * machine.threads);
  add_last(space, group, domain, rows);
  // Where rows on their way would push out the one that is computed: whether they are sent in the last phase.
  if (phases > 1 && rows > 1 && !fits_l1) space.axes.push_back({kPrefetchLastPhase, {0, 1}});
  // Elements of a chunk whose maximum and sums are taken while it lies in the first cache.
  if (!fits_l1 && domain.reduced.size() == 1 && row_phases(group, domain, true).count < phases) {
    const int64_t most = std::bit_floor(static_cast<uint64_t>(machine.l1_bytes / 4));
    space.axes.push_back(axis(kOnlineChunk, {0, most, most / 2, most / 4}, [&](int64_t elements) {
      return elements == 0 || (elements >= machine.target->lanes && elements < row);
    }));
  }
  const AtomId atom = shared_atom(domain);
  const int64_t shared = atom >= 0 ? domain.atoms[atom].extent : 1;
  const int64_t step = atom == domain.vector ? machine.target->lanes : 1;
  space.legal = [shared, step](const Schedule& s) {
    // What crosses a pass is computed again; what is fetched ahead is another row's.
    const bool plain = s[kKeep] == 0 && s[kPipeline] == 0 && s[kStagger] == 0 && s[kPrefetch] == 0;
    if (!may_join(s)) return false;
    if (const int64_t parts = s[kReductionBlocks]; parts > 1) {
      if (!plain || s[kTasksPerThread] != 1 || s[kThreads] == 1 || !shares_out(shared, parts, step)) return false;
    }
    if (s[kAccumulators] > s[kUnroll]) return false;
    if (s[kOnlineChunk] != 0 && (s[kKeep] != 0 || s[kPipeline] != 0 || s[kStagger] != 0 || s[kReductionBlocks] > 1))
      return false;
    if (s[kPrefetch] == 0 && (s[kPrefetchLevel] != 1 || s[kPrefetchLastPhase] != 0)) return false;
    if (s[kPipeline] != 0 && s[kPrefetchLastPhase] != 0) return false;  // all phases run at once
    return true;
  };
  const int64_t unroll = largest_up_to(values_of(space, kUnroll), 4);
  const int64_t accumulators = largest_up_to(values_of(space, kAccumulators), 4);
  const int64_t ahead = largest_up_to(values_of(space, kPrefetch), 2);
  const int64_t one_ahead = largest_up_to(values_of(space, kPrefetch), 1);
  const int64_t threads = footprint(group) < 64 << 10 ? 1 : machine.threads;
  const bool large = footprint(group) > cache_share(machine) && values_of(space, kStreamStores).size() > 1;
  const int64_t stream = large ? 1 : 0;
  const bool pipelines = values_of(space, kPipeline).size() > 1;
  const auto seed = [&](int64_t pipeline, int64_t keep, int64_t prefetch, int64_t level, const Chosen& more = {}) {
    const size_t before = space.seeds.size();
    add_seed(space, {{kUnroll, unroll},
                     {kAccumulators, accumulators},
                     {kKeep, keep},
                     {kPipeline, pipeline},
                     {kStagger, pipeline ? 704 : 0},
                     {kStreamStores, stream},
                     {kPrefetch, prefetch},
                     {kPrefetchLevel, level},
                     {kThreads, threads}});
    for (size_t i = before; i < space.seeds.size(); ++i)
      for (const auto& [choice, value] : more) set_choice(space, space.seeds[i], choice, value);
  };
  // A thread each, and several: as much for every thread where the parts are no multiple of them.
  for (int64_t wanted : {machine.threads, 4 * machine.threads}) {
    const int64_t parts = rows < machine.threads ? parts_for(space, rows, wanted) : 1;
    if (parts == 1) continue;
    seed(0, 0, 0, 1, {{kReductionBlocks, parts}});
  }
  // Measured on Zen 5: pipelined rows still want their loads fetched ahead (softmax 0.55 -> 1.0 of the copy limit).
  if (pipelines && fits_l1) {
    seed(1, 0, ahead, 1);
    seed(1, 1, ahead, 1);
    seed(1, 0, one_ahead, 2);
  }
  // Rows of the second level, from memory: the next one comes while the last phase computes.
  if (!fits_l1 && fits_l2 && phases > 1 && footprint(group) > 4 * machine.l2_bytes * machine.threads) {
    const int64_t past = largest_up_to(values_of(space, kStreamStores), 1);
    seed(0, 0, one_ahead, 2, {{kPrefetchLastPhase, 1}, {kStreamStores, past}});
    if (pipelines) seed(1, 0, one_ahead, 2, {{kStreamStores, past}});
  }
  if (const Axis* online = axis_of(space.axes, kOnlineChunk); online != nullptr && online->values.size() > 1)
    seed(0, 0, one_ahead, 2, {{kPrefetchLastPhase, rows > 1}, {kOnlineChunk, online->values[1]}});
  seed(0, 0, ahead, fits_l1 ? 1 : 2);
  seed(0, 0, 0, 1);
  seed(0, 1, one_ahead, 2);
  return space;
}

}  // namespace wl

// The search space of row reductions on CPUs. A block, which one thread runs, owns a range of rows. A row is walked
// once for each phase, and a later walk finds it in a buffer, in a cache or in memory.
#include <bit>

#include "compiler/domain/phases.h"
#include "compiler/schedule/axes.h"
#include "compiler/schedule/nest/nest.h"
#include "compiler/schedule/nest/row_parts.h"

namespace wl {
namespace {

// Facts about a row reduction that decide which schedules are tried.
struct CpuRowReduction {
  CpuRowReduction(const Graph& group, const Domain& domain, const Machine& machine);

  // rows: the number of rows. row, vectors: the number of elements, and of vectors, of one row along the vectorised
  // axis.
  int64_t rows = 1, row = 1, vectors = 1;
  int phases = 1;
  // fits_l1, fits_l2: whether a row and one row buffer for each phase fit the L1 cache, the L2 cache.
  bool fits_l1 = false, fits_l2 = false;
  bool online = false;  // whether one walk can compute the maximum and the sums of exponentials
  int64_t bytes = 0;    // the bytes of the group's inputs and outputs
};

CpuRowReduction::CpuRowReduction(const Graph& group, const Domain& domain, const Machine& machine)
    : rows(extent_of(domain, domain.parallel)),
      row(domain.vector >= 0 ? domain.atoms[domain.vector].extent : 1),
      vectors(std::max<int64_t>(1, row / machine.target->lanes)),
      phases(row_phases(group, domain).count),
      bytes(footprint(group)) {
  const int64_t buffers = (phases + 1) * extent_of(domain, domain.reduced) * 4;
  fits_l1 = buffers <= machine.l1_bytes;
  fits_l2 = buffers <= machine.l2_bytes;
  online = domain.reduced.size() == 1 && row_phases(group, domain, true).count < phases;
}

void add_cpu_row_axes(Space& space, const Graph& group, const Domain& domain, const Machine& machine,
                      const CpuRowReduction& of) {
  const bool several = of.phases > 1;
  space.axes = {
      axis(kVector, {machine.target->lanes}),
      axis(kUnroll, {1, 2, 4, 8}, [&](int64_t u) { return u <= of.vectors; }),
      axis(kAccumulators, {1, 2, 4, 8}, [&](int64_t a) { return a <= of.vectors; }),
      axis(kKeep, {kKeepCostly, kKeepAll}, [&](int64_t) { return several; }),
      axis(kPipeline, {0, 1}, [&](int64_t) { return several && of.rows >= 2 * of.phases; }),
      axis(kStagger, {0, 704}, [&](int64_t) { return several; }),
      stream_axis(group, domain, machine),
      axis(kPrefetch, {0, 1, 2, 4}, [&](int64_t p) { return p < of.rows; }),
      axis(kPrefetchLevel, {1, 2}),
      axis(kTasksPerThread, {1, 4, 16}, [&](int64_t t) { return t * machine.threads <= of.rows; }),
      threads_axis(machine),
      compiler_axis(machine),
  };
  add_listed_axes(space, machine);
  if (machine.threads > 1) add_parts(space, domain, machine, of.rows, 4 * machine.threads);
  add_last(space, group, domain, of.rows);
  // If a row does not fit the L1 cache, prefetching the next row during an earlier phase would evict the current row.
  // So there is a choice that moves prefetches to the last phase.
  if (several && of.rows > 1 && !of.fits_l1) space.axes.push_back({kPrefetchLastPhase, {0, 1}});
  if (!of.fits_l1 && of.online) {  // the values of online_chunk are chunks of elements that fit the L1 cache
    const int64_t most = std::bit_floor(static_cast<uint64_t>(machine.l1_bytes / 4));
    space.axes.push_back(axis(kOnlineChunk, {0, most, most / 2, most / 4}, [&](int64_t elements) {
      return elements == 0 || (elements >= machine.target->lanes && elements < of.row);
    }));
  }
}

std::function<bool(const Schedule&)> legal_cpu_rows(const Domain& domain, const Machine& machine) {
  const AtomId atom = shared_atom(domain);
  const int64_t shared = atom >= 0 ? domain.atoms[atom].extent : 1;
  const int64_t step = atom == domain.vector ? machine.target->lanes : 1;
  return [shared, step](const Schedule& s) {
    // If blocks share rows, the choices keep, pipeline, stagger and prefetch must be off: scratch loses its contents at
    // the end of a pass, and a block with a part of one row has no next row to prefetch.
    const bool plain = s[kKeep] == 0 && s[kPipeline] == 0 && s[kStagger] == 0 && s[kPrefetch] == 0;
    if (!may_join(s)) return false;
    if (const int64_t parts = s[kReductionBlocks]; parts > 1) {
      if (!plain || s[kTasksPerThread] != 1 || s[kThreads] == 1 || !shares_out(shared, parts, step)) return false;
    }
    if (s[kAccumulators] > s[kUnroll]) return false;
    if (s[kOnlineChunk] != 0 && (s[kKeep] != 0 || s[kPipeline] != 0 || s[kStagger] != 0 || s[kReductionBlocks] > 1))
      return false;
    if (s[kPrefetch] == 0 && (s[kPrefetchLevel] != 1 || s[kPrefetchLastPhase] != 0)) return false;
    // In each iteration, pipelined phases all run together, so there is no last phase to which prefetches could be
    // moved.
    if (s[kPipeline] != 0 && s[kPrefetchLastPhase] != 0) return false;
    return true;
  };
}

void add_cpu_row_seeds(Space& space, const Machine& machine, const CpuRowReduction& of) {
  const int64_t unroll = largest_up_to(values_of(space, kUnroll), 4);
  const int64_t accumulators = largest_up_to(values_of(space, kAccumulators), 4);
  const int64_t ahead = largest_up_to(values_of(space, kPrefetch), 2);
  const int64_t one_ahead = largest_up_to(values_of(space, kPrefetch), 1);
  const int64_t threads = of.bytes < 64 << 10 ? 1 : machine.threads;
  const bool large = of.bytes > cache_share(machine) && values_of(space, kStreamStores).size() > 1;
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
  // Adds seeds with at least one part for each thread, and seeds with at least four parts for each thread. If the
  // number of threads does not divide the number of parts, more parts divide the work more evenly.
  for (int64_t wanted : {machine.threads, 4 * machine.threads}) {
    const int64_t parts = of.rows < machine.threads ? parts_for(space, of.rows, wanted) : 1;
    if (parts == 1) continue;
    seed(0, 0, 0, 1, {{kReductionBlocks, parts}});
  }
  // Measured on Zen 5: prefetching also helps pipelined rows (softmax rose from 0.55 to 1.0 of the speed of a copy).
  if (pipelines && of.fits_l1) {
    seed(1, 0, ahead, 1);
    seed(1, 1, ahead, 1);
    seed(1, 0, one_ahead, 2);
  }
  // Where rows fit the L2 cache but come from memory, the next row is prefetched while the last phase computes.
  if (!of.fits_l1 && of.fits_l2 && of.phases > 1 && of.bytes > 4 * machine.l2_bytes * machine.threads) {
    const int64_t past = largest_up_to(values_of(space, kStreamStores), 1);
    seed(0, 0, one_ahead, 2, {{kPrefetchLastPhase, 1}, {kStreamStores, past}});
    if (pipelines) seed(1, 0, one_ahead, 2, {{kStreamStores, past}});
  }
  if (const Axis* online = axis_of(space.axes, kOnlineChunk); online != nullptr && online->values.size() > 1)
    seed(0, 0, one_ahead, 2, {{kPrefetchLastPhase, of.rows > 1}, {kOnlineChunk, online->values[1]}});
  seed(0, 0, ahead, of.fits_l1 ? 1 : 2);
  seed(0, 0, 0, 1);
  seed(0, 1, one_ahead, 2);
}

}  // namespace

Space space_rows(const Graph& group, const Domain& domain, const Machine& machine) {
  const CpuRowReduction of(group, domain, machine);
  Space space;
  space.kind = "rows";
  add_cpu_row_axes(space, group, domain, machine, of);
  space.legal = legal_cpu_rows(domain, machine);
  add_cpu_nest_effects(space, group, domain);
  add_cpu_row_seeds(space, machine, of);
  return space;
}

}  // namespace wl

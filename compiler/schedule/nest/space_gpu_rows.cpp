// The search space of row reductions on GPUs: a team of threads owns a row.
#include <algorithm>

#include "compiler/domain/phases.h"
#include "compiler/domain/reads.h"
#include "compiler/schedule/axes.h"
#include "compiler/schedule/nest/nest.h"
#include "compiler/schedule/nest/phases.h"
#include "compiler/schedule/nest/row_parts.h"
#include "compiler/schedule/nest/space_gpu.h"

namespace wl {
namespace {

// The most elements of a row that one thread may keep in registers. More may not fit beside the other values of a phase
// (measured on sm_80: 192 floats fit, 256 spill to memory).
constexpr int64_t kResidentElements = 128;

// Facts about a row reduction that decide which schedules are tried.
struct GpuRowReduction {
  GpuRowReduction(const Graph& group, const Domain& domain, const Machine& machine);

  int64_t row = 1;       // the extent of the vectorised axis, in elements
  int64_t whole = 1;     // elements of a row in all reduced loops
  int64_t rows = 1;      // number of rows, each of which has one result
  int64_t longest = 1;   // extent of the outermost reduced loop around the row
  bool plain = false;    // whether the reduction has only the loop along the row, none around it
  bool along = false;    // whether blocks that share a row divide it along the vectorised axis
  bool several = false;  // whether there are several phases
  int phases = 1;
  bool online = false;           // whether one walk can compute the maximum and the sums of exponentials
  int64_t vector = 1, team = 1;  // first values of the axes vector (in elements) and team (in threads)

  // Returns the elements of a row, along the vectorised axis, that a block has under a schedule.
  int64_t own_row(const Schedule& s) const {
    if (s[kReductionBlocks] == 1 || !along) return row;
    return share_of(row, s[kReductionBlocks], s[kTileVectors] * s[kTeam] * s[kVector]);
  }
};

// The number of threads that compute a row in the default schedule. As in tuned normalization kernels, short rows get
// few threads, for example 8 threads for 64 elements.
int64_t threads_for(int64_t row, const Machine& machine) {
  if (row <= 1) return 1;
  const int64_t wanted = row <= 64      ? 8
                         : row <= 128   ? 16
                         : row <= 3072  ? machine.target->gpu.wave
                         : row <= 6144  ? 64
                         : row <= 16384 ? 128
                                        : 256;
  return std::max<int64_t>(std::min(wanted, power_of_two_from(row)), 2);
}

GpuRowReduction::GpuRowReduction(const Graph& group, const Domain& domain, const Machine& machine)
    : row(domain.vector >= 0 ? domain.atoms[domain.vector].extent : 1),
      whole(extent_of(domain, domain.reduced)),
      rows(extent_of(domain, domain.parallel)),
      plain(domain.reduced.size() == 1),
      along(shared_atom(domain) == domain.vector),
      vector(std::min(aligned_vector(group, domain), power_of_two_from(row))),
      team(threads_for(row, machine)) {
  phases = row_phases(group, domain).count;
  several = phases > 1;
  online = plain && row_phases(group, domain, true).count < phases;
  for (AtomId atom : domain.reduced)
    if (atom != domain.vector && longest == 1) longest = domain.atoms[atom].extent;
}

void add_row_axes(Space& space, const Graph& group, const Domain& domain, const Machine& machine,
                  const GpuRowReduction& of) {
  space.axes = thread_axes(group, of.row, of.vector, of.team, std::max<int64_t>(1, 128 / of.team), machine);
  Axis storage(kRowStorage, {});
  if (of.plain) storage.values.push_back(kRowInRegisters);
  storage.values.push_back(kRowRecomputed);
  if (of.several) storage.values.push_back(kRowInShared);
  space.axes.push_back(std::move(storage));
  space.axes.push_back(axis(kTileVectors, {1, 2, 4, 8}));
  space.axes.push_back(axis(kRowsPerTeam, {1, 2, 4, 8}));
  space.axes.push_back(axis(kStreamStores, {0, 1}));
  space.axes.push_back(teams_share_axis(!of.plain));
  space.axes.push_back(axis(kOnline, {0, 1}, [&](int64_t o) { return o == 0 || of.online; }));
  space.axes.push_back(stream_loads_axis(group, domain));
  add_listed_axes(space, machine);
  space.axes.push_back(persistent_axis(group, domain, machine, of.plain));
  if (of.plain && (machine.target->features & kAsyncCopy) != 0 && copied_bytes(group, domain) > 0)
    space.axes.push_back(axis(kTilesAhead, {0, 1, 2, 4}));
  add_parts(space, domain, machine, of.rows, most_blocks(machine));
  add_last(space, group, domain, of.rows);
  add_cluster(space, machine);
}

std::function<bool(const Schedule&)> legal_rows(const Graph& group, const Domain& domain, const Machine& machine,
                                                const GpuRowReduction& of) {
  const AtomId atom = shared_atom(domain);
  const int64_t shared = atom >= 0 ? domain.atoms[atom].extent : 1;
  return [machine, domain, of, copied = copied_bytes(group, domain), shared](const Schedule& s) {
    const int64_t row = of.row, lanes = s[kTeam] * s[kVector], parts = s[kReductionBlocks];
    if (!fits_block(s, machine, row) || !may_share_reduction(s, of.longest)) return false;
    if (!may_persist(domain, s, machine, row, copied)) return false;
    if (s[kPersistent] > 1 && s[kRowStorage] != kRowInRegisters) return false;
    const int64_t ahead = s[kTilesAhead], tile = s[kTileVectors] * lanes;
    if (ahead > 0 && (s[kRowStorage] == kRowInRegisters || s[kStreamLoads] != 0)) return false;
    const bool cluster = s[kCluster] != 0;
    if (!may_join(s)) return false;
    const bool reads_once = s[kRowStorage] == kRowInRegisters && (parts == 1 || cluster);
    if (s[kStreamLoads] != 0 && !reads_once && of.several) return false;
    if (parts > 1) {
      const int64_t step = of.along ? s[kTileVectors] * lanes : 1;
      if (s[kRowsPerTeam] != 1 || s[kPersistent] != 0 || !shares_out(shared, parts, step)) return false;
      // Shared memory loses its contents at the end of a pass, so a row cannot stay there for the next pass.
      if (s[kRowStorage] == kRowInShared && !(cluster && of.along)) return false;
    }
    const int64_t own = of.own_row(s);
    if (s[kOnline] != 0 && (s[kRowStorage] != kRowRecomputed || s[kTileVectors] != 1 || row <= lanes)) return false;
    if (s[kRowStorage] == kRowInRegisters)
      return s[kTileVectors] == 1 && (own + lanes - 1) / lanes * s[kVector] <= kResidentElements;
    const int64_t at_once = s[kTeamsShareReduction] ? 1 : s[kTeams];  // rows that a block computes at the same time
    // Each phase has slots of its own in shared memory for the tiles that are copied ahead.
    const int64_t slots = ahead == 0 ? 0 : of.phases * (ahead + 1) * s[kTeams] * ((tile + 63) / 64 * 64) * copied;
    if (ahead > 0 && own <= tile) return false;
    // A row buffer is as long as a multiple of 64 elements. It is counted with 16 bytes per element, since seldom more
    // than four values of four bytes are kept.
    const int64_t buffer = ((of.along ? of.whole / std::max<int64_t>(1, row) * own : of.whole) + 63) / 64 * 64;
    const int64_t kept = s[kRowStorage] == kRowInShared ? buffer * at_once * 16 : 0;
    if (kept + slots + (ahead > 0 ? 1024 : 0) > machine.target->gpu.block_shared) return false;
    return s[kTileVectors] == 1 || s[kTileVectors] * lanes <= row;
  };
}

// Adds the effects of choices that the lowering obeys only in part, or not at all.
void add_effects(Space& space, const Graph& group, const Domain& domain, const Machine& machine,
                 const GpuRowReduction& of) {
  const auto tiles = [of](const Schedule& s) {
    const int64_t tile = s[kTileVectors] * s[kTeam] * s[kVector];
    return (of.own_row(s) + tile - 1) / tile;
  };
  // A row of one tile that is walked once is never needed again, and values that no later phase reads are not kept.
  const bool keeps = !nest_phases(group, domain, false, false).kept.empty();
  space.add_effect(kRowStorage, [=](const Schedule& s, int64_t storage) -> int64_t {
    if (storage == kRowInShared) return keeps ? kRowInShared : kRowRecomputed;
    return storage == kRowInRegisters && of.phases == 1 && tiles(s) == 1 ? kRowRecomputed : storage;
  });
  space.add_effect(kTilesAhead,
                   [=](const Schedule& s, int64_t ahead) { return std::min<int64_t>(ahead, tiles(s) - 1); });
  add_nest_effects(space, group, domain, machine);
}

// Adds seeds in which several blocks share a row. With `cluster`, only seeds that keep the row in registers are added.
void add_shared_row_seeds(Space& space, const Machine& machine, const GpuRowReduction& of, bool cluster) {
  const int64_t parts = parts_for(space, of.rows, busy_blocks(machine));
  if (parts == 1) return;
  struct Walk {
    int64_t storage, online;
  };
  for (int64_t threads : {512, 256, 1024})
    for (const Walk walk : {Walk{kRowInRegisters, 0}, {kRowRecomputed, 1}, {kRowRecomputed, 0}}) {
      if (cluster && walk.storage != kRowInRegisters) continue;
      const bool in_tiles = walk.storage == kRowRecomputed && walk.online == 0 && of.row >= 4 * threads;
      Point point = point_of(space, {{kRowStorage, walk.storage},
                                     {kOnline, walk.online},
                                     {kTeam, std::min(threads, power_of_two_from(of.row))},
                                     {kTeams, std::max<int64_t>(1, threads / power_of_two_from(of.row))},
                                     {kTileVectors, in_tiles ? 4 : 1}});
      if (point.empty()) continue;
      set_choice(space, point, kReductionBlocks, cluster ? std::min(parts, kMostCluster) : parts);
      if (cluster && !point.empty()) set_choice(space, point, kCluster, 1);
      if (!cluster) add_last_block_seed(space, point);
      space.seeds.push_back(std::move(point));
    }
}

// Adds seeds for reductions over several loops: the teams of a block share the outermost loop.
void add_shared_loop_seeds(Space& space, const GpuRowReduction& of) {
  for (int64_t storage : {kRowInShared, kRowRecomputed})
    for (int64_t threads : {256, 512, 1024}) {
      const int64_t width = std::min<int64_t>(power_of_two_from((of.row + of.vector - 1) / of.vector), 128);
      space.seeds.push_back(point_of(
          space, {{kTeamsShareReduction, 1}, {kRowStorage, storage}, {kTeam, width}, {kTeams, threads / width}}));
    }
}

// Adds seeds in which a team owns a row.
void add_team_row_seeds(Space& space, const GpuRowReduction& of) {
  const auto seed = [&](int64_t storage, int64_t threads, int64_t tile, const Chosen& more = {}) {
    Point point = point_of(space, {{kRowStorage, storage},
                                   {kTeam, std::min<int64_t>(threads, power_of_two_from(of.row))},
                                   {kTeams, std::max<int64_t>(1, 128 / threads)},
                                   {kTileVectors, tile}});
    for (const auto& [choice, value] : more)
      if (!point.empty()) set_choice(space, point, choice, value);
    if (!point.empty()) space.seeds.push_back(std::move(point));
  };
  if (of.plain) {
    for (int64_t threads : {of.team, 2 * of.team, 4 * of.team}) seed(kRowInRegisters, threads, 1);
    seed(kRowInRegisters, of.team, 1, {{kStreamLoads, 1}});
    seed(kRowInRegisters, of.team, 1, {{kStreamLoads, 1}, {kPersistent, 1}, {kMinBlocks, 4}});
    seed(kRowInRegisters, of.team, 1, {{kPersistent, 2}, {kMinBlocks, 4}});
  }
  for (int64_t storage : {kRowInShared, kRowRecomputed}) {
    if (storage == kRowRecomputed && of.online)
      for (int64_t threads : {512, 1024, 256})
        space.seeds.push_back(point_of(
            space, {{kOnline, 1}, {kRowStorage, kRowRecomputed}, {kTeam, threads}, {kTeams, 1}, {kVector, of.vector}}));
    for (int64_t threads : {int64_t{256}, int64_t{512}, of.team})
      for (int64_t tile : {4, 2, 1}) seed(storage, threads, tile);
    if (axis_of(space.axes, kTilesAhead) != nullptr) seed(storage, 256, 2, {{kTilesAhead, 2}});
  }
}

}  // namespace

Space space_gpu_rows(const Graph& group, const Domain& domain, const Machine& machine) {
  const GpuRowReduction of(group, domain, machine);
  Space space;
  space.kind = "rows";
  add_row_axes(space, group, domain, machine, of);
  space.legal = legal_rows(group, domain, machine, of);
  add_effects(space, group, domain, machine, of);
  const bool clusters_fill = of.rows * kMostCluster >= machine.target->gpu.units;
  add_shared_row_seeds(space, machine, of, clusters_fill);
  add_shared_row_seeds(space, machine, of, !clusters_fill);
  if (!of.plain) add_shared_loop_seeds(space, of);
  add_team_row_seeds(space, of);
  return space;
}

}  // namespace wl

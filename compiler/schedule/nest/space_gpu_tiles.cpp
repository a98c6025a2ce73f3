// The search space of maps and column reductions on GPUs: a team of threads computes a tile along the vectorised axis.
#include <algorithm>

#include "compiler/domain/phases.h"
#include "compiler/domain/reads.h"
#include "compiler/schedule/axes.h"
#include "compiler/schedule/nest/nest.h"
#include "compiler/schedule/nest/row_parts.h"
#include "compiler/schedule/nest/space_gpu.h"

namespace wl {
namespace {

// Whether tiles of a group can be transposed through shared memory: the group must be a map without gathers, some input
// must be contiguous along another atom than the output, both atoms must have at least 8 elements, and no output may be
// a mere view of an input.
bool stages(const Graph& group, const Domain& domain) {
  if (domain.cls != LoopClass::kMap || domain.second < 0 || domain.vector < 0) return false;
  if (domain.atoms[domain.second].extent < 8 || domain.atoms[domain.vector].extent < 8) return false;
  const bool gathers = std::any_of(group.nodes.begin(), group.nodes.end(),
                                   [](const Node& node) { return class_of(node.op) == OpClass::kGather; });
  return !gathers && std::all_of(domain.stores.begin(), domain.stores.end(),
                                 [](const Domain::Store& store) { return store.source >= 0; });
}

// Facts about a group that decide which schedules are tried.
struct GpuTiles {
  GpuTiles(const Graph& group, const Domain& domain);

  bool columns = false, staged = false;
  int64_t row = 1;               // the extent of the vectorised axis, in elements
  int64_t vector = 1, team = 1;  // first values of the axes vector (in elements) and team (in threads)
  int64_t tiles = 1;             // number of tiles of the whole group with these values of vector and team
};

GpuTiles::GpuTiles(const Graph& group, const Domain& domain)
    : columns(domain.cls == LoopClass::kColumns),
      staged(stages(group, domain)),
      row(domain.vector >= 0 ? domain.atoms[domain.vector].extent : 1),
      vector(std::min(aligned_vector(group, domain), power_of_two_from(row))) {
  const int64_t vectors = (row + vector - 1) / vector;
  team = row <= 1 ? 1 : std::clamp<int64_t>(power_of_two_from(vectors), 1, 256);
  if (vector == 1 && row > 1) team = std::max<int64_t>(2, team);
  const int64_t rows = extent_of(domain, domain.parallel) / std::max<int64_t>(1, row);
  tiles = rows * ((row + team * vector - 1) / (team * vector));
}

std::function<bool(const Schedule&)> legal_tiles(const Graph& group, const Domain& domain, const Machine& machine,
                                                 const GpuTiles& of) {
  const int64_t longest = of.columns && !domain.reduced.empty() ? domain.atoms[domain.reduced[0]].extent : 1;
  const int64_t shared = of.columns && shared_atom(domain) >= 0 ? domain.atoms[shared_atom(domain)].extent : 1;
  const bool reads_twice = of.columns && row_phases(group, domain).count > 1;
  return [machine, domain, row = of.row, longest, reads_twice, copied = copied_bytes(group, domain),
          shared](const Schedule& s) {
    if (!fits_block(s, machine, row) || !may_share_reduction(s, longest)) return false;
    if (s[kStreamLoads] != 0 && reads_twice) return false;
    const int64_t lanes = s[kTeam] * s[kVector], parts = s[kReductionBlocks];
    if (!may_persist(domain, s, machine, std::min(row, s[kTileVectors] * lanes), copied)) return false;
    if (parts > 1 && (s[kRowsPerTeam] != 1 || s[kStaged] != 0 || s[kPersistent] != 0 || !shares_out(shared, parts, 1)))
      return false;
    if (!may_join(s)) return false;
    if (s[kStaged])
      return s[kVector] == 1 && s[kTeam] == kStagedSide && s[kTeams] <= kStagedSide && s[kTileVectors] == 1 &&
             s[kRowsPerTeam] == 1 && s[kPersistent] == 0;
    if (s[kTeamsShareReduction] && s[kTeams] * s[kTileVectors] * lanes * 8 > machine.target->gpu.block_shared)
      return false;
    return s[kTileVectors] == 1 || s[kTileVectors] * lanes <= row;
  };
}

// Adds seeds for column reductions in which teams share the reduced rows. Where there are few columns, seeds in which
// several blocks share a column come first.
void add_shared_column_seeds(Space& space, const Machine& machine, const GpuTiles& of) {
  const auto add = [&](int64_t threads, int64_t each, int64_t parts) {
    const int64_t width = std::min<int64_t>(machine.target->gpu.wave, power_of_two_from((of.row + each - 1) / each));
    Point point =
        point_of(space, {{kTeamsShareReduction, 1}, {kVector, each}, {kTeam, width}, {kTeams, threads / width}});
    if (parts > 1 && !point.empty()) {
      set_choice(space, point, kReductionBlocks, parts);
      add_last_block_seed(space, point);
    }
    space.seeds.push_back(std::move(point));
  };
  const int64_t parts = parts_for(space, of.tiles, busy_blocks(machine));
  for (int64_t threads : {512, 256})
    if (parts > 1) add(threads, of.vector, parts);
  for (int64_t threads : {512, 256, 1024, 128})
    for (int64_t each : {of.vector, int64_t{1}}) add(threads, each, 1);
}

}  // namespace

Space space_gpu_tiles(const Graph& group, const Domain& domain, const Machine& machine) {
  const GpuTiles of(group, domain);
  Space space;
  space.kind = of.columns ? "columns" : "map";
  space.axes = thread_axes(group, of.row, of.vector, of.team, std::max<int64_t>(1, 256 / of.team), machine);
  space.axes.push_back(
      axis(kTileVectors, {1, 2, 4, 8}, [&](int64_t t) { return t == 1 || t * of.vector * of.team <= of.row; }));
  space.axes.push_back(axis(kRowsPerTeam, {1, 2, 4, 8}));
  space.axes.push_back(axis(kStreamStores, {0, 1}));
  space.axes.push_back(teams_share_axis(of.columns));
  space.axes.push_back(axis(kStaged, {0, 1}, [&](int64_t s) { return s == 0 || of.staged; }));
  space.axes.push_back(stream_loads_axis(group, domain));
  add_listed_axes(space, machine);
  space.axes.push_back(persistent_axis(group, domain, machine, domain.cls == LoopClass::kMap));
  if (of.columns) add_parts(space, domain, machine, of.tiles, most_blocks(machine));
  add_last(space, group, domain, of.tiles);
  add_cluster(space, machine);
  space.legal = legal_tiles(group, domain, machine, of);
  add_nest_effects(space, group, domain, machine);
  for (int64_t teams : {8, 16, 4})
    if (of.staged)
      space.seeds.push_back(point_of(space, {{kStaged, 1}, {kVector, 1}, {kTeam, kStagedSide}, {kTeams, teams}}));
  if (of.columns) add_shared_column_seeds(space, machine, of);
  space.seeds.push_back(Point(space.axes.size(), 0));
  for (int64_t tile : {2, 4}) space.seeds.push_back(point_of(space, {{kTileVectors, tile}}));
  space.seeds.push_back(point_of(space, {{kStreamStores, 1}}));
  space.seeds.push_back(point_of(space, {{kRowsPerTeam, 2}}));
  space.seeds.push_back(point_of(space, {{kStreamLoads, 1}}));
  space.seeds.push_back(point_of(space, {{kPersistent, 1}, {kMinBlocks, 4}}));
  return space;
}

}  // namespace wl

#include <algorithm>
#include <numeric>

#include "compiler/plan/phases.h"
#include "compiler/plan/reads.h"
#include "compiler/schedule/axes.h"
#include "compiler/schedule/nest/nest.h"
#include "compiler/schedule/nest/parts.h"

namespace wl {
namespace {

// Beyond this many elements a lane's share of the row spills (measured on sm_80: 192 floats fit, 256 do not).
constexpr int64_t kResidentElements = 128;

int64_t power_up(int64_t n) {
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

// Elements that one load of 16 bytes holds, by the widest type that is read or written.
int64_t widest_vector(const Graph& group) {
  int64_t bytes = 4;
  for (const Output& output : group.outputs)
    bytes = std::max<int64_t>(1, std::min<int64_t>(bytes, size_of(group.nodes[output.node].dtype)));
  return std::min<int64_t>(8, 16 / bytes);
}

// The widest vector of at most `widest` elements that is aligned wherever the group reads or writes along the vector
// atom: narrower ones would be moved element by element, lanes apart.
int64_t aligned_vector(const Domain& domain, int64_t widest) {
  int64_t common = widest;
  const auto meet = [&](const Access& access) {
    if (domain.vector < 0 || access.strides.empty() || access.strides[domain.vector] != 1) return;
    common = std::gcd(common, access.offset);
    for (size_t atom = 0; atom < access.strides.size(); ++atom)
      if (static_cast<AtomId>(atom) != domain.vector && domain.atoms[atom].extent > 1)
        common = std::gcd(common, access.strides[atom]);
  };
  for (const std::vector<Domain::Operand>& operands : domain.operands)
    for (const Domain::Operand& operand : operands) meet(operand.access);
  for (const Domain::Store& store : domain.stores) meet(store.access);
  return common;
}

Axis team_axis(int64_t row, int64_t wanted, const Machine& machine) {
  Axis axis{kTeam, {}};
  // A wave is never too many: it may be all that a block has.
  const Gpu& gpu = machine.target->gpu;
  const int64_t most = std::min<int64_t>(gpu.block_threads, std::max<int64_t>(gpu.wave, power_up(row)));
  for (int64_t team : {wanted, int64_t{8}, int64_t{16}, int64_t{32}, int64_t{64}, int64_t{128}, int64_t{256},
                       int64_t{512}, int64_t{1024}, int64_t{1}})
    if (team <= most && std::find(axis.values.begin(), axis.values.end(), team) == axis.values.end())
      axis.values.push_back(team);
  return axis;
}

std::vector<Axis> common_axes(const Graph& group, int64_t row, int64_t vector, int64_t team, int64_t teams,
                              const Machine& machine) {
  const int64_t widest = widest_vector(group);
  std::vector<Axis> axes;
  Axis vectors{kVector, {vector}};
  for (int64_t v : {4, 8, 2, 1})
    if (v <= widest && v <= power_up(row) && v != vector) vectors.values.push_back(v);
  axes.push_back(std::move(vectors));
  axes.push_back(team_axis(row, team, machine));
  Axis many{kTeams, {teams}};
  for (int64_t n : {1, 2, 4, 8, 16, 32, 64, 128, 256})
    if (n != teams) many.values.push_back(n);
  axes.push_back(std::move(many));
  return axes;
}

bool fits_block(const Schedule& s, const Machine& machine, int64_t row) {
  const int64_t threads = s[kTeam] * s[kTeams];
  if (!may_reside(s[kMinBlocks], threads, machine.target->gpu)) return false;
  if (threads > machine.target->gpu.block_threads || threads < machine.target->gpu.wave) return false;
  return row <= 1 || s[kTeam] * s[kVector] > 1;
}

// Whether a map reads something along another atom than it writes, and nothing that only loops can read.
bool stages(const Graph& group, const Domain& domain) {
  if (domain.cls != LoopClass::kMap || domain.second < 0 || domain.vector < 0) return false;
  if (domain.atoms[domain.second].extent < 8 || domain.atoms[domain.vector].extent < 8) return false;
  const bool gathers = std::any_of(group.nodes.begin(), group.nodes.end(),
                                   [](const Node& node) { return class_of(node.op) == OpClass::kGather; });
  return !gathers && std::all_of(domain.stores.begin(), domain.stores.end(),
                                 [](const Domain::Store& store) { return store.source >= 0; });
}

// Whether the teams of a block share the outermost reduced loop instead of owning rows.
Axis split_axis(bool loops) {
  return axis(kTeamsShareReduction, {0, 1}, [loops](int64_t s) { return s == 0 || loops; });
}
// Whether what a kernel reads once is to go past the caches.
Axis load_past_axis(const Graph& group, const Domain& domain) {
  const bool once = !inputs_read_once(group, domain).empty();
  return axis(kStreamLoads, {0, 1}, [once](int64_t l) { return l == 0 || once; });
}
// Rows, or tiles of the vector atom, that blocks share out.
int64_t tiles_of(const Domain& domain, const Schedule& s) {
  int64_t tiles = extent_of(domain, domain.parallel);
  if (domain.vector >= 0 && !domain.atoms[domain.vector].reduced) {
    const int64_t extent = std::max<int64_t>(1, domain.atoms[domain.vector].extent);
    const int64_t tile = std::min(extent, s[kTileVectors] * s[kTeam] * s[kVector]);
    tiles = tiles / extent * ((extent + tile - 1) / tile);
  }
  return tiles;
}
// 1: the blocks that are resident (axis `blocks`) stay and take row after row; more: and copy rows to shared memory
// while they compute one, so that they have so many at once.
Axis persistent_axis(const Graph& group, const Domain& domain, const Machine& machine, bool copies) {
  const bool many = 2 * machine.multiprocessors() < extent_of(domain, domain.parallel);
  const bool ahead = copies && (machine.target->gpu.features & kAsyncCopy) != 0 && copied_bytes(group, domain) > 0;
  return axis(kPersistent, {0, 1, 2, 3}, [=](int64_t p) { return p == 0 || (many && (p == 1 || ahead)); });
}
// row: elements that a team has of one; bytes: copied for each.
bool persists(const Domain& domain, const Schedule& s, const Machine& machine, int64_t row, int64_t bytes) {
  const int64_t slots = s[kPersistent], at_once = s[kTeamsShareReduction] != 0 ? 1 : s[kTeams];
  if (slots == 0) return true;
  if (s[kMinBlocks] == 0 || s[kRowsPerTeam] != 1) return false;
  if ((tiles_of(domain, s) + at_once - 1) / at_once <= s[kMinBlocks] * machine.multiprocessors()) return false;
  if (slots == 1) return true;
  const int64_t shared = slots * at_once * ((row + 63) / 64 * 64) * bytes + 1024;
  const Gpu& gpu = machine.target->gpu;
  return s[kStreamLoads] == 0 && shared <= gpu.block_shared && s[kMinBlocks] * shared <= gpu.unit_shared;
}
bool splits(const Schedule& s, int64_t longest) {
  return s[kTeamsShareReduction] == 0 || (s[kTeams] > 1 && s[kTeams] <= 32 && s[kTeams] <= longest);
}

// Blocks that keep every unit busy, and more than which parts do not make.
int64_t busy_blocks(const Machine& machine) {
  return 2 * machine.multiprocessors();
}
int64_t most_blocks(const Machine& machine) {
  return 4 * machine.multiprocessors();
}
// Where the last block of a row may combine its parts, that is tried first: a launch less.
void add_counted(Space& space, Point point) {
  set_choice(space, point, kLastBlockCombines, 1);
  if (!point.empty()) space.seeds.push_back(std::move(point));
}

}  // namespace

Space space_team_tiles(const Graph& group, const Domain& domain, const Machine& machine) {
  const int64_t row = domain.vector >= 0 ? domain.atoms[domain.vector].extent : 1;
  const int64_t vector = std::min(aligned_vector(domain, widest_vector(group)), power_up(row));
  const int64_t team = row <= 1 ? 1 : std::clamp<int64_t>(power_up((row + vector - 1) / vector), 1, 256);
  const int64_t least = vector == 1 && row > 1 ? std::max<int64_t>(2, team) : team;
  const bool columns = domain.cls == LoopClass::kColumns;
  const int64_t longest = columns && !domain.reduced.empty() ? domain.atoms[domain.reduced[0]].extent : 1;
  Space space;
  space.kind = columns ? "columns" : "map";
  space.axes = common_axes(group, row, vector, least, std::max<int64_t>(1, 256 / least), machine);
  space.axes.push_back(
      axis(kTileVectors, {1, 2, 4, 8}, [&](int64_t t) { return t == 1 || t * vector * least <= row; }));
  space.axes.push_back(axis(kRowsPerTeam, {1, 2, 4, 8}));
  space.axes.push_back(axis(kStreamStores, {0, 1}));
  space.axes.push_back(split_axis(columns));
  const bool staged = stages(group, domain);
  space.axes.push_back(axis(kStaged, {0, 1}, [staged](int64_t s) { return s == 0 || staged; }));
  space.axes.push_back(load_past_axis(group, domain));
  add_listed_axes(space, machine);
  space.axes.push_back(persistent_axis(group, domain, machine, domain.cls == LoopClass::kMap));
  const int64_t copied = copied_bytes(group, domain);
  const bool walks = columns && row_phases(group, domain).count > 1;  // more than once
  const int64_t tiles =
      extent_of(domain, domain.parallel) / std::max<int64_t>(1, row) * ((row + least * vector - 1) / (least * vector));
  if (columns) add_parts(space, domain, machine, tiles, most_blocks(machine));
  add_last(space, group, domain, tiles);
  add_cluster(space, machine);
  const int64_t shared = columns && shared_atom(domain) >= 0 ? domain.atoms[shared_atom(domain)].extent : 1;
  space.legal = [machine, domain, row, longest, walks, copied, shared](const Schedule& s) {
    if (!fits_block(s, machine, row) || !splits(s, longest) || (s[kStreamLoads] != 0 && walks)) return false;
    if (!persists(domain, s, machine, std::min(row, s[kTileVectors] * s[kTeam] * s[kVector]), copied)) return false;
    const int64_t lanes = s[kTeam] * s[kVector], parts = s[kReductionBlocks];
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
  for (int64_t teams : {8, 16, 4})
    if (staged)
      space.seeds.push_back(point_of(space, {{kStaged, 1}, {kVector, 1}, {kTeam, kStagedSide}, {kTeams, teams}}));
  const auto split_seed = [&](int64_t threads, int64_t each, int64_t parts) {
    const int64_t width = std::min<int64_t>(machine.target->gpu.wave, power_up((row + each - 1) / each));
    Point point =
        point_of(space, {{kTeamsShareReduction, 1}, {kVector, each}, {kTeam, width}, {kTeams, threads / width}});
    if (parts > 1 && !point.empty()) {
      set_choice(space, point, kReductionBlocks, parts);
      add_counted(space, point);
    }
    space.seeds.push_back(std::move(point));
  };
  const int64_t parts = parts_for(space, tiles, busy_blocks(machine));
  for (int64_t threads : {512, 256})
    if (columns && parts > 1) split_seed(threads, vector, parts);
  if (columns)
    for (int64_t threads : {512, 256, 1024, 128})
      for (int64_t each : {vector, int64_t{1}}) split_seed(threads, each, 1);
  space.seeds.push_back(Point(space.axes.size(), 0));
  for (int64_t tile : {2, 4}) space.seeds.push_back(point_of(space, {{kTileVectors, tile}}));
  space.seeds.push_back(point_of(space, {{kStreamStores, 1}}));
  space.seeds.push_back(point_of(space, {{kRowsPerTeam, 2}}));
  space.seeds.push_back(point_of(space, {{kStreamLoads, 1}}));
  space.seeds.push_back(point_of(space, {{kPersistent, 1}, {kMinBlocks, 4}}));
  return space;
}

Space space_team_rows(const Graph& group, const Domain& domain, const Machine& machine) {
  const int64_t row = domain.vector >= 0 ? domain.atoms[domain.vector].extent : 1;
  const bool plain = domain.reduced.size() == 1;  // one loop along the row, no loops around it
  const int phases = row_phases(group, domain).count;
  const bool several = phases > 1;
  // Sums that depend on a maximum need no walk of their own.
  const bool online = plain && row_phases(group, domain, true).count < phases;
  const int64_t vector = std::min(aligned_vector(domain, widest_vector(group)), power_up(row));
  // The ladder of the norms that others tuned: 8 threads for 64 elements, a wave to 3072, 256 beyond 16384.
  const int64_t wanted = row <= 1       ? 1
                         : row <= 64    ? 8
                         : row <= 128   ? 16
                         : row <= 3072  ? machine.target->gpu.wave
                         : row <= 6144  ? 64
                         : row <= 16384 ? 128
                                        : 256;
  const int64_t team = row <= 1 ? 1 : std::max<int64_t>(std::min(wanted, power_up(row)), 2);
  Space space;
  space.kind = "rows";
  space.axes = common_axes(group, row, vector, team, std::max<int64_t>(1, 128 / team), machine);
  space.axes.push_back(Axis(kRowStorage, {}));
  if (plain) space.axes.back().values.push_back(kRowInRegisters);
  space.axes.back().values.push_back(kRowRecomputed);
  if (several) space.axes.back().values.push_back(kRowInShared);
  space.axes.push_back(axis(kTileVectors, {1, 2, 4, 8}));
  space.axes.push_back(axis(kRowsPerTeam, {1, 2, 4, 8}));
  space.axes.push_back(axis(kStreamStores, {0, 1}));
  int64_t longest = 1;  // of the loops around the row, the outermost
  for (AtomId atom : domain.reduced)
    if (atom != domain.vector && longest == 1) longest = domain.atoms[atom].extent;
  space.axes.push_back(split_axis(!plain));
  space.axes.push_back(axis(kOnline, {0, 1}, [online](int64_t o) { return o == 0 || online; }));
  space.axes.push_back(load_past_axis(group, domain));
  add_listed_axes(space, machine);
  space.axes.push_back(persistent_axis(group, domain, machine, plain));
  const int64_t whole = extent_of(domain, domain.reduced), many = extent_of(domain, domain.parallel);
  const int64_t copied = copied_bytes(group, domain);
  add_parts(space, domain, machine, many, most_blocks(machine));
  add_last(space, group, domain, many);
  add_cluster(space, machine);
  const AtomId atom = shared_atom(domain);
  const int64_t shared = atom >= 0 ? domain.atoms[atom].extent : 1;
  const bool along = atom == domain.vector;
  space.legal = [machine, domain, row, longest, whole, several, copied, shared, along](const Schedule& s) {
    if (!fits_block(s, machine, row) || !splits(s, longest) || !persists(domain, s, machine, row, copied)) return false;
    if (s[kPersistent] > 1 && s[kRowStorage] != kRowInRegisters) return false;
    const int64_t lanes = s[kTeam] * s[kVector], parts = s[kReductionBlocks];
    const bool cluster = s[kCluster] != 0;
    const bool once = s[kRowStorage] == kRowInRegisters && (parts == 1 || cluster);  // not read again in every phase
    if (!may_join(s)) return false;
    if (s[kStreamLoads] != 0 && !once && several) return false;
    int64_t own = row;  // of a block
    if (parts > 1) {
      const int64_t step = along ? s[kTileVectors] * lanes : 1;
      if (s[kRowsPerTeam] != 1 || s[kPersistent] != 0 || !shares_out(shared, parts, step)) return false;
      if (s[kRowStorage] == kRowInShared && !(cluster && along)) return false;  // nothing stays from pass to pass
      if (along) own = share_of(shared, parts, step);
    }
    if (s[kOnline] != 0 && (s[kRowStorage] != kRowRecomputed || s[kTileVectors] != 1 || row <= lanes)) return false;
    if (s[kRowStorage] == kRowInRegisters)
      return s[kTileVectors] == 1 && (own + lanes - 1) / lanes * s[kVector] <= kResidentElements;
    const int64_t rows = s[kTeamsShareReduction] ? 1 : s[kTeams];  // that a block has at once
    // A row's buffer is a multiple of 64 elements long, and there are seldom more than four values of four bytes.
    const int64_t buffer = ((along ? whole / std::max<int64_t>(1, row) * own : whole) + 63) / 64 * 64;
    if (s[kRowStorage] == kRowInShared && buffer * rows * 16 > machine.target->gpu.block_shared) return false;
    return s[kTileVectors] == 1 || s[kTileVectors] * lanes <= row;
  };
  const auto seed = [&](int64_t storage, int64_t threads, int64_t tile, int64_t past = 0, int64_t persistent = 0,
                        int64_t blocks = 0) {
    Point point = point_of(space, {{kRowStorage, storage},
                                   {kTeam, std::min<int64_t>(threads, power_up(row))},
                                   {kTeams, std::max<int64_t>(1, 128 / threads)},
                                   {kTileVectors, tile},
                                   {kStreamLoads, past},
                                   {kPersistent, persistent},
                                   {kMinBlocks, blocks}});
    if (!point.empty()) space.seeds.push_back(std::move(point));
  };
  const int64_t parts = parts_for(space, many, busy_blocks(machine));
  const auto share_seeds = [&](bool cluster) {
    for (int64_t threads : {512, 256, 1024})
      for (int64_t mode : {2, 1, 0}) {  // in registers, one walk for a maximum and its sums, neither
        if (cluster && mode != 2) continue;
        Point point = point_of(space, {{kRowStorage, mode == 2 ? kRowInRegisters : kRowRecomputed},
                                       {kOnline, mode == 1 ? 1 : 0},
                                       {kTeam, std::min(threads, power_up(row))},
                                       {kTeams, std::max<int64_t>(1, threads / power_up(row))},
                                       {kTileVectors, mode == 0 && row >= 4 * threads ? 4 : 1}});
        if (parts == 1 || point.empty()) continue;
        set_choice(space, point, kReductionBlocks, cluster ? std::min(parts, kMostCluster) : parts);
        if (cluster && !point.empty()) set_choice(space, point, kCluster, 1);
        if (!cluster) add_counted(space, point);
        space.seeds.push_back(std::move(point));
      }
  };
  const bool clusters_fill = many * kMostCluster >= machine.target->gpu.units;
  share_seeds(clusters_fill);
  share_seeds(!clusters_fill);
  if (!plain)
    for (int64_t storage : {kRowInShared, kRowRecomputed})
      for (int64_t threads : {256, 512, 1024}) {
        const int64_t width = std::min<int64_t>(power_up((row + vector - 1) / vector), 128);
        space.seeds.push_back(point_of(
            space, {{kTeamsShareReduction, 1}, {kRowStorage, storage}, {kTeam, width}, {kTeams, threads / width}}));
      }
  for (int64_t threads : {team, 2 * team, 4 * team})
    if (plain) seed(kRowInRegisters, threads, 1);
  if (plain) seed(kRowInRegisters, team, 1, 1);
  if (plain) seed(kRowInRegisters, team, 1, 1, 1, 4);
  if (plain) seed(kRowInRegisters, team, 1, 0, 2, 4);
  for (int64_t storage : {kRowInShared, kRowRecomputed}) {
    if (storage == kRowRecomputed && online)
      for (int64_t threads : {512, 1024, 256})
        space.seeds.push_back(point_of(
            space, {{kOnline, 1}, {kRowStorage, kRowRecomputed}, {kTeam, threads}, {kTeams, 1}, {kVector, vector}}));
    for (int64_t threads : {int64_t{256}, int64_t{512}, team})
      for (int64_t tile : {4, 2, 1}) seed(storage, threads, tile);
  }
  return space;
}

}  // namespace wl

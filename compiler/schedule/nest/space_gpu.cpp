#include "compiler/schedule/nest/space_gpu.h"

#include <algorithm>
#include <numeric>

#include "compiler/domain/reads.h"
#include "compiler/schedule/axes.h"

namespace wl {
namespace {

// The number of elements in a vector of 16 bytes, at most 8. An element counts as large as the narrowest dtype of an
// output, but as 4 bytes at most.
int64_t widest_vector(const Graph& group) {
  int64_t bytes = 4;
  for (const Output& output : group.outputs)
    bytes = std::max<int64_t>(1, std::min<int64_t>(bytes, size_of(group.nodes[output.node].dtype)));
  return std::min<int64_t>(8, 16 / bytes);
}

Axis team_axis(int64_t row, int64_t wanted, const Machine& machine) {
  Axis axis{kTeam, {}};
  // A block must have at least the threads of one wave. So a team, which may be the only one of its block, may have as
  // many threads as a wave even if its row is shorter.
  const Gpu& gpu = machine.target->gpu;
  const int64_t most = std::min<int64_t>(gpu.block_threads, std::max<int64_t>(gpu.wave, power_of_two_from(row)));
  for (int64_t team : {wanted, int64_t{8}, int64_t{16}, int64_t{32}, int64_t{64}, int64_t{128}, int64_t{256},
                       int64_t{512}, int64_t{1024}, int64_t{1}})
    if (team <= most && std::find(axis.values.begin(), axis.values.end(), team) == axis.values.end())
      axis.values.push_back(team);
  return axis;
}

// How many rows, or tiles of a parallel vectorised axis, all blocks of a kernel compute together.
int64_t tiles_of(const Domain& domain, const Schedule& s) {
  int64_t tiles = extent_of(domain, domain.parallel);
  if (domain.vector >= 0 && !domain.atoms[domain.vector].reduced) {
    const int64_t extent = std::max<int64_t>(1, domain.atoms[domain.vector].extent);
    const int64_t tile = std::min(extent, s[kTileVectors] * s[kTeam] * s[kVector]);
    tiles = tiles / extent * ((extent + tile - 1) / tile);
  }
  return tiles;
}

}  // namespace

int64_t power_of_two_from(int64_t n) {
  int64_t p = 1;
  while (p < n) p *= 2;
  return p;
}

int64_t aligned_vector(const Graph& group, const Domain& domain) {
  int64_t common = widest_vector(group);
  const auto divide = [&](const Access& access) {
    if (domain.vector < 0 || access.strides.empty() || access.strides[domain.vector] != 1) return;
    common = std::gcd(common, access.offset);
    for (size_t atom = 0; atom < access.strides.size(); ++atom)
      if (static_cast<AtomId>(atom) != domain.vector && domain.atoms[atom].extent > 1)
        common = std::gcd(common, access.strides[atom]);
  };
  for (const std::vector<Domain::Operand>& operands : domain.operands)
    for (const Domain::Operand& operand : operands) divide(operand.access);
  for (const Domain::Store& store : domain.stores) divide(store.access);
  return common;
}

std::vector<Axis> thread_axes(const Graph& group, int64_t row, int64_t vector, int64_t team, int64_t teams,
                              const Machine& machine) {
  const int64_t widest = widest_vector(group);
  std::vector<Axis> axes;
  Axis vectors{kVector, {vector}};
  for (int64_t v : {4, 8, 2, 1})
    if (v <= widest && v <= power_of_two_from(row) && v != vector) vectors.values.push_back(v);
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

Axis teams_share_axis(bool loops) {
  return axis(kTeamsShareReduction, {0, 1}, [loops](int64_t s) { return s == 0 || loops; });
}

Axis stream_loads_axis(const Graph& group, const Domain& domain) {
  const bool once = !inputs_read_once(group, domain).empty();
  return axis(kStreamLoads, {0, 1}, [once](int64_t l) { return l == 0 || once; });
}

// Returns the axis persistent. With a value above 0, the grid has only as many blocks as are resident at once (choice
// min_blocks), and each block computes row after row. With a value n above 1, a block also copies the elements of later
// rows to shared memory ahead of time, into n slots for each row that it computes at the same time.
Axis persistent_axis(const Graph& group, const Domain& domain, const Machine& machine, bool copies) {
  const bool many = 2 * machine.multiprocessors() < extent_of(domain, domain.parallel);
  const bool ahead = copies && (machine.target->features & kAsyncCopy) != 0 && copied_bytes(group, domain) > 0;
  return axis(kPersistent, {0, 1, 2, 3}, [=](int64_t p) { return p == 0 || (many && (p == 1 || ahead)); });
}

bool may_persist(const Domain& domain, const Schedule& s, const Machine& machine, int64_t row, int64_t bytes) {
  const int64_t slots = s[kPersistent], at_once = s[kTeamsShareReduction] != 0 ? 1 : s[kTeams];
  if (slots == 0) return true;
  if (s[kMinBlocks] == 0 || s[kRowsPerTeam] != 1) return false;
  if ((tiles_of(domain, s) + at_once - 1) / at_once <= s[kMinBlocks] * machine.multiprocessors()) return false;
  if (slots == 1) return true;
  const int64_t shared = slots * at_once * ((row + 63) / 64 * 64) * bytes + 1024;
  const Gpu& gpu = machine.target->gpu;
  return s[kStreamLoads] == 0 && shared <= gpu.block_shared && s[kMinBlocks] * shared <= gpu.unit_shared;
}

bool may_share_reduction(const Schedule& s, int64_t longest) {
  return s[kTeamsShareReduction] == 0 || (s[kTeams] > 1 && s[kTeams] <= 32 && s[kTeams] <= longest);
}

void add_nest_effects(Space& space, const Graph& group, const Domain& domain, const Machine& machine) {
  // Whether some access of single elements streams, and whether some of vectors does. Vectors of elements that are no
  // neighbours are moved element by element, around no cache.
  struct Streams {
    bool elements = false, vectors = false;
    void add(const Access& access, AtomId vector) {
      elements = true;
      vectors = vectors || vector < 0 || access.strides[vector] == 0 || access.strides[vector] == 1;
    }
  };
  Streams loads, stores;
  const std::vector<NodeId> once = inputs_read_once(group, domain);
  const auto add_load = [&](const Access& access) {
    if (std::find(once.begin(), once.end(), access.input) != once.end()) loads.add(access, domain.vector);
  };
  for (const std::vector<Domain::Operand>& operands : domain.operands)
    for (const Domain::Operand& operand : operands) add_load(operand.access);
  for (const Domain::Store& store : domain.stores) {
    if (store.source < 0 && store.pieces.empty()) add_load(store.copy);
    stores.add(store.access, domain.vector);
  }
  for (const auto& [choice, streams] : {std::pair{kStreamLoads, loads}, {kStreamStores, stores}})
    space.add_effect(choice, [streams = streams](const Schedule& s, int64_t value) {
      return s[kVector] == 1 ? value * streams.elements : value * streams.vectors;
    });
  add_residency_effect(space, machine, [](const Schedule& s) { return s[kTeam] * s[kTeams]; });
}

int64_t busy_blocks(const Machine& machine) {
  return 2 * machine.multiprocessors();
}

int64_t most_blocks(const Machine& machine) {
  return 4 * machine.multiprocessors();
}

void add_last_block_seed(Space& space, Point point) {
  set_choice(space, point, kLastBlockCombines, 1);
  if (!point.empty()) space.seeds.push_back(std::move(point));
}

}  // namespace wl

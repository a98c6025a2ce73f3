// The search space of a stitched group: the rows of a block, the axes that all stages share, and for every stage the
// axes that matter most for its speed; its other choices have the values of its first seed. On a GPU the block is one
// team in all stages, and a contraction's tile has all rows of the block.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <span>
#include <tuple>

#include "compiler/schedule/axes.h"
#include "compiler/schedule/resident/resident.h"
#include "compiler/schedule/single/single.h"
#include "compiler/schedule/stitched/stitched.h"
#include "compiler/schedule/stitched/tables.h"
#include "compiler/target/matrix.h"

namespace wl {
namespace {

// The step along K, in elements, that seeds with matrix instructions prefer, and the buffers of those that copy ahead.
constexpr int64_t kSeedStep = 32, kSeedStages = 3;
constexpr int64_t kMostStages = 4;    // the most buffers of a stage's operand
constexpr size_t kMostSeeds = 64;     // on GPUs, where each is lowered for its price
constexpr size_t kSeedsOfLevels = 2;  // the most numbers of rows that have seeds with other levels of values

// The bytes of all values in scratch.
int64_t kept_bytes(const Stitched& choice) {
  int64_t bytes = 0;
  for (const StitchKept& kept : choice.kept)
    if (kept.in_scratch) bytes += kept.bytes();
  return bytes;
}

// Returns the indices of the ways to stitch a group (Stitch::choices), best first. Those that hold values in registers
// come before others, even if they have few blocks, because all their waves use matrix instructions. Of the others,
// those come first that have enough blocks for the machine and whose values in scratch fill at most half of the L2
// cache or, on a GPU, of a block's shared memory.
std::vector<size_t> best_first(const Stitch& stitch, const Machine& machine) {
  const Target& target = *machine.target;
  const int64_t near = target.is_gpu() ? target.gpu.block_shared : machine.l2_bytes;
  const int64_t enough = target.is_gpu() ? target.gpu.units : 2 * machine.threads;
  std::vector<size_t> order;
  for (size_t c = 0; c < stitch.choices.size(); ++c) order.push_back(c);
  const auto order_of = [&](size_t c) {
    const Stitched& choice = stitch.choices[c];
    const bool too_large = !choice.turns.resident && kept_bytes(choice) > near / 2;
    const bool misfit = too_large || choice.blocks() < enough;
    // If values are resident, shorter turns (iterations along the reduced axis) come first, since registers hold few
    // values; otherwise more rows come first, unless a GPU then has too few blocks.
    const bool fewer_rows = misfit && target.is_gpu();
    const int64_t many = choice.turns.resident ? choice.turns.length : fewer_rows ? choice.rows : -choice.rows;
    return std::tuple(!choice.turns.resident, misfit, many);
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return order_of(a) < order_of(b); });
  // Seeds are few, so of further levels of values only the best numbers of rows have some.
  std::map<std::vector<ValueLevel>, size_t> taken;
  std::erase_if(order, [&](size_t c) {
    const std::vector<ValueLevel>& levels = stitch.choices[c].levels;
    return ++taken[levels] > kSeedsOfLevels && levels != stitch.choices[0].levels &&
           stitch.choices[c].turns.length == 0;
  });
  return order;
}

// Sets the axes of a stage in a point of the whole space to `seed`, a point of the stage's own space.
void place_stage(const Space& space, size_t stage, const Space& own, const Point& seed, Point& point) {
  for (size_t i = 0; i < own.axes.size(); ++i) {
    const Axis& axis = own.axes[i];
    if (in_group(axis, false) == InGroup::kFixed) continue;
    set_value(space, point, axis_named(space.axes, axis_in_whole(stage, axis, false).name),
              axis.values[static_cast<size_t>(seed[i])]);
  }
}

// Adds seeds for CPUs. Each of them consists of the seeds with one number, one seed from every stage; a stage that has
// fewer seeds contributes its last one.
void add_seeds(Space& space, const std::vector<std::vector<Space>>& own, const Stitch& stitch, const Machine& machine,
               const Tables& tables) {
  for (size_t c : best_first(stitch, machine)) {
    for (size_t seed : {0, 1, 2, 4}) {
      Point point = tables.start(c);
      for (size_t k = 0; k < own[c].size(); ++k) {
        const std::vector<Point>& seeds = own[c][k].seeds;
        if (seeds.empty()) break;
        place_stage(space, k, own[c][k], seeds[std::min(seed, seeds.size() - 1)], point);
      }
      space.seeds.push_back(std::move(point));
    }
  }
}

// What the products of a seed's stages prefer, the strongest wish first.
struct Wishes {
  bool matrices = false;   // matrix instructions
  bool in_memory = false;  // those that read their factors in shared memory
  bool copies = false;     // asynchronous copies, some steps ahead
};
// The wishes of seeds, best first. With matrix instructions: as products alone begin on an H200, then those of single
// waves with copies and without; and lanes. Without matrix instructions: lanes, without copies and with them.
constexpr Wishes kOfMatrices[] = {{true, true, true}, {true, false, true}, {true, false, false}, {false, false, false}};
constexpr Wishes kOfLanes[] = {{false, false, false}, {false, false, true}};

// How well a stage's schedule suits a seed; the least one is the best.
struct Promise {
  int denied = 0;     // the wishes that the schedule does not grant, the strongest of which counts most
  int64_t far = 0;    // how far its step along K and its buffers are from kSeedStep and kSeedStages
  size_t number = 0;  // its number in the stage's table
  auto operator<=>(const Promise&) const = default;
};

// `number`: the number in the stage's table of the schedule that `point` has. Stages that are no products grant every
// wish.
Promise promise_of(const Space& space, const StageTable& table, size_t number, Wishes wishes, const Point& point) {
  Wishes granted;
  bool is_product = false;
  int64_t step = kSeedStep, stages = kSeedStages;
  for (const size_t i : table.axes) {
    const Axis& axis = space.axes[i];
    const int64_t value = axis.values[static_cast<size_t>(point[i])];
    if (axis.choice == kMatrix && value != kNoMatrix) {
      granted.matrices = true;
      granted.in_memory = multiplies_in_memory(matrices()[static_cast<size_t>(value - 1)].op);
    }
    if (axis.choice == kAsyncCopies) granted.copies = value != 0;
    if (axis.choice == kStages) stages = value;
    if (axis.choice == kStepK) step = value;
    is_product = is_product || axis.choice == kMatrix || axis.choice == kStepK;
  }
  Promise out{.number = number};
  if (is_product)
    out.denied = (granted.matrices != wishes.matrices ? 4 : 0) + (granted.in_memory != wishes.in_memory ? 2 : 0) +
                 (granted.copies != wishes.copies ? 1 : 0);
  if (granted.matrices) out.far += std::abs(step - kSeedStep);
  if (granted.copies) out.far += std::abs(stages - kSeedStages);
  return out;
}

// Returns a stage's most promising schedule for each number of threads that it has one for. `start`: a point that names
// the choice whose stage this is.
std::map<int64_t, Promise> promises_of(const Space& space, const StageTable& table, Wishes wishes, const Point& start) {
  std::map<int64_t, Promise> best;
  const auto at = static_cast<size_t>(axis_of(space.axes, kTeam) - space.axes.data());
  if (std::find(table.axes.begin(), table.axes.end(), at) == table.axes.end()) return best;
  Point one = start;
  for (size_t n = 0; n < table.legal.size(); ++n) {
    if (table.legal[n] == 0) continue;
    table.put(n, space.axes, one);
    const Promise promise = promise_of(space, table, n, wishes, one);
    const auto [known, is_new] = best.try_emplace(space.axes[at].values[static_cast<size_t>(one[at])], promise);
    if (promise < known->second) known->second = promise;
  }
  return best;
}

// Adds seeds that grant these wishes, best first: for each number of threads, every stage has its most promising
// schedule. Seeds that grant more come first.
void add_team_seeds(Space& space, const std::vector<size_t>& order, const Tables& tables, Wishes wishes) {
  std::vector<std::pair<int, Point>> found;
  for (const size_t c : order) {
    std::vector<std::map<int64_t, Promise>> stages;
    for (const StageTable& table : tables.of[c]) stages.push_back(promises_of(space, table, wishes, tables.start(c)));
    for (const int64_t threads : {256, 128, 512, 64, 32}) {
      int denied = 0;
      Point point = tables.start(c);
      bool all = has_value(*axis_of(space.axes, kTeam), threads);
      for (size_t k = 0; all && k < stages.size(); ++k) {
        const auto promise = stages[k].find(threads);
        all = promise != stages[k].end();
        if (!all) break;
        denied += promise->second.denied;
        tables.of[c][k].put(promise->second.number, space.axes, point);
      }
      if (all) found.emplace_back(denied, std::move(point));
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [denied, point] : found)
    if (space.seeds.size() < kMostSeeds &&
        std::find(space.seeds.begin(), space.seeds.end(), point) == space.seeds.end())
      space.seeds.push_back(std::move(point));
}

void add_team_seeds(Space& space, const Stitch& stitch, const Machine& machine, const Tables& tables) {
  const std::vector<size_t> order = best_first(stitch, machine);
  const bool matrices = std::any_of(space.axes.begin(), space.axes.end(),
                                    [](const Axis& axis) { return axis.choice == kMatrix && axis.values.size() > 1; });
  for (const Wishes wishes : matrices ? std::span<const Wishes>(kOfMatrices) : std::span<const Wishes>(kOfLanes))
    add_team_seeds(space, order, tables, wishes);
  // The first seed again, with waves that only copy: as boxes, and as vectors (where that is legal).
  if (space.seeds.empty() || axis_of(space.axes, kCopyingWaves) == nullptr) return;
  for (const int64_t boxes : {0, 1}) {
    Point point = space.seeds[0];
    set_choice(space, point, kCopyingWaves, values_of(space, kCopyingWaves).back());
    set_choice(space, point, kTma, boxes);
    space.seeds.insert(space.seeds.begin() + 1, std::move(point));
  }
}

size_t most_stages(const Stitch& stitch) {
  size_t most = 0;
  for (const Stitched& choice : stitch.choices) most = std::max(most, choice.stages.size());
  return most;
}

// Leaves out the values of a choice that `keep` does not return true for, and seeds that have them.
void keep_values(Space& space, Choice choice, bool (*keep)(int64_t)) {
  if (axis_of(space.axes, choice) == nullptr) return;
  Axis& axis = space.axes[static_cast<size_t>(axis_of(space.axes, choice) - space.axes.data())];
  const auto at = static_cast<size_t>(&axis - space.axes.data());
  const std::vector<int64_t> before = axis.values;
  const auto value = [&](const Point& seed) { return before[static_cast<size_t>(seed[at])]; };
  std::erase_if(axis.values, [keep](int64_t v) { return !keep(v); });
  std::erase_if(space.seeds, [&](const Point& seed) { return !keep(value(seed)); });
  for (Point& seed : space.seeds)
    seed[at] = static_cast<int>(std::find(axis.values.begin(), axis.values.end(), value(seed)) - axis.values.begin());
}

// Leaves out the axis of a choice, and seeds that are not at its first value.
void leave_out(Space& space, Choice choice) {
  const Axis* const axis = axis_of(space.axes, choice);
  if (axis == nullptr) return;
  const auto at = axis - space.axes.data();
  std::erase_if(space.seeds, [at](const Point& seed) { return seed[static_cast<size_t>(at)] != 0; });
  for (Point& seed : space.seeds) seed.erase(seed.begin() + at);
  space.axes.erase(space.axes.begin() + at);
}

}  // namespace

Space stage_space(const Stage& stage, const Machine& machine) {
  const Machine own = stage_machine(machine, stage);
  Space space = space_single(stage.graph, stage.domain, own);
  // All stages of a block have the same number of threads, and a stage's tiles must have all rows of its block. Tiles
  // of matrix instructions seldom fit that, so seeds with such instructions are left out.
  for (Point& seed : space.seeds) seed = space.settled(std::move(seed));
  std::erase_if(space.seeds,
                [&](const Point& seed) { return !space.is_legal(seed) || space.schedule(seed)[kMatrix] != kNoMatrix; });
  // Waves copy for the loop over turns only (resident_space()).
  for (const Choice choice : {kCopyingWaves, kTma}) leave_out(space, choice);
  // Without copies a stage loads one step ahead, and kept values leave room for few buffers.
  keep_values(space, kStages, [](int64_t stages) { return stages >= 2 && stages <= kMostStages; });
  return finished(std::move(space), own);
}

Schedule stage_schedule(const Space& space, size_t stage, const Schedule& whole, bool teams) {
  Schedule own = space.schedule(space.seeds[0]);
  const Schedule& mine = whole.part(static_cast<int>(stage));
  for (const Axis& axis : space.axes) {
    const InGroup where = in_group(axis, teams);
    const Schedule& from = where == InGroup::kShared ? whole : mine;
    if (where != InGroup::kFixed && from.has(*axis.choice)) own.set(*axis.choice, from[*axis.choice]);
  }
  if (teams) complete_stage(space, whole[kTeam], own);
  return own;
}

std::vector<Axis> naming_axes(const Stitch& stitch) {
  const auto some = [&](auto test) { return std::any_of(stitch.choices.begin(), stitch.choices.end(), test); };
  std::vector<Axis> axes = {{kBlockRows, {}}};
  size_t values = 0;
  for (const Stitched& choice : stitch.choices) values = std::max(values, choice.levels.size());
  for (size_t i = 0; i < values; ++i)
    if (some([i](const Stitched& s) { return s.level(i) != ValueLevel::kScratch; }))
      axes.push_back(axis_in_part('v', static_cast<int>(i), {kLevel, {static_cast<int64_t>(ValueLevel::kScratch)}}));
  if (some([](const Stitched& s) { return s.turns.length > 0; }))
    axes.emplace_back(kTurnLength, std::vector<int64_t>());
  if (some([](const Stitched& s) { return s.turns.resident; })) axes.emplace_back(kTurnValues, std::vector<int64_t>());
  return axes;
}

int64_t naming_value(const Stitched& stitched, const Axis& axis) {
  if (axis.choice == kLevel) return static_cast<int64_t>(stitched.level(static_cast<size_t>(axis.path[0])));
  if (axis.choice == kBlockRows) return stitched.rows;
  return axis.choice == kTurnLength ? stitched.turns.length : stitched.turns.resident ? kInRegisters : kInShared;
}

const Stitched* named_choice(const Stitch& stitch, const Schedule& schedule) {
  const std::vector<Axis> axes = naming_axes(stitch);
  for (const Stitched& stitched : stitch.choices)
    if (std::all_of(axes.begin(), axes.end(),
                    [&](const Axis& axis) { return naming_value(stitched, axis) == schedule.find(axis).value_or(0); }))
      return &stitched;
  return nullptr;
}

Space space_stitched(const Domain& domain, const Machine& machine) {
  const Stitch& stitch = *domain.stitch;
  const bool teams = machine.target->is_gpu();
  Space space;
  space.kind = "stitched";
  auto tables = std::make_shared<Tables>();
  space.axes = naming_axes(stitch);
  for (const Stitched& choice : stitch.choices) {
    tables->values.emplace_back();
    for (Axis& axis : space.axes) {
      const int64_t value = naming_value(choice, axis);
      const auto at = std::find(axis.values.begin(), axis.values.end(), value) - axis.values.begin();
      if (at == std::ssize(axis.values)) axis.values.push_back(value);
      tables->values.back().push_back(static_cast<int>(at));
    }
  }
  space.axes.push_back(teams ? axis(kTeam, {256, 128, 512, 64, 32, 1024}) : threads_axis(machine));
  std::vector<std::vector<Space>> own(stitch.choices.size());
  for (size_t c = 0; c < stitch.choices.size(); ++c) {
    const Space resident = resident_space(stitch.choices[c], machine);
    for (size_t k = 0; k < stitch.choices[c].stages.size(); ++k) {
      const Stage& stage = stitch.choices[c].stages[k];
      Space of_stage = stitch.choices[c].is_resident(k) ? resident : stage_space(stage, machine);
      of_stage.keep_effects_of_part([teams](Choice choice) { return info(choice).stitched[teams ? 1 : 0]; });
      for (const Axis& axis : of_stage.axes) {
        if (in_group(axis, teams) == InGroup::kFixed || (teams && axis.choice == kTeam)) continue;
        Axis whole = axis_in_whole(k, axis, teams);
        auto at =
            std::find_if(space.axes.begin(), space.axes.end(), [&](const Axis& a) { return a.name == whole.name; });
        if (at == space.axes.end()) {
          whole.values.clear();
          at = space.axes.insert(space.axes.end(), std::move(whole));
        }
        for (int64_t value : axis.values)
          if (!has_value(*at, value)) at->values.push_back(value);
      }
      own[c].push_back(std::move(of_stage));
    }
  }
  tables->axes = space.axes;
  for (size_t i = tables->naming(); i < space.axes.size(); ++i)
    if (space.axes[i].path.empty()) tables->shared.push_back(i);
  for (const std::vector<Space>& stages : own) {
    tables->of.emplace_back();
    tables->has.emplace_back(space.axes.size(), 0);
    for (size_t k = 0; k < stages.size(); ++k) {
      tables->of.back().push_back(table_of(space.axes, k, stages[k], teams));
      for (size_t axis : tables->of.back().back().axes) tables->has.back()[axis] = 1;
    }
  }
  if (tables->naming() > 1)
    space.matters = [tables](const Point& point, size_t axis) { return tables->matters(point, axis); };
  space.legal_point = [tables](const Point& point) { return tables->legal(point); };
  size_t end = tables->naming();
  for (size_t k = 0; k < most_stages(stitch); ++k) {
    end = std::max(end, tables->end_of(k));
    space.parts.push_back({end, [tables, k](const Schedule& schedule) { return tables->legal(k, schedule); }});
  }
  space.counted = [tables] { return tables->count(); };
  space.first = [tables] { return tables->first(); };
  if (teams)
    add_team_seeds(space, stitch, machine, *tables);
  else
    add_seeds(space, own, stitch, machine, *tables);
  return space;
}

absl::StatusOr<Space> space_of_connected(const Graph& group, const Domain& domain, const Machine& machine) {
  const bool stitched = domain.cls == LoopClass::kStitched;
  Space space = finished(stitched ? space_stitched(domain, machine) : space_single(group, domain, machine), machine);
  if (space.seeds.empty())
    return unimplemented("no schedule of class ", space.kind, " is legal on ", machine.target->name, " for the group");
  return space;
}

}  // namespace wl

// The space of a stitched group: rows of a block, what all stages have in common, and of every stage what decides its
// speed; the rest of a stage's choices stays at its own default. On a machine with lanes the block is one team for all
// stages, and a contraction's tile has all of the block's rows.
#include <algorithm>
#include <span>

#include "compiler/schedule/axes.h"
#include "compiler/schedule/single/single.h"
#include "compiler/schedule/stitched/stitched.h"

namespace wl {
namespace {

// Of the whole kernel: one value for all stages that have such an axis.
constexpr std::string_view kCommon[] = {"compiler", "unroll", "accumulators"};
constexpr std::string_view kCommonTeams[] = {"team", "blocks"};
// A stage's results stay near, and what it reads was just written.
constexpr std::string_view kFixed[] = {"threads",      "stream", "prefetch", "prefetch_level", "tasks", "row_tasks",
                                       "column_tasks", "kc",     "nc",       "stagger"};
constexpr std::string_view kFixedTeams[] = {"teams", "stream",    "vector",    "stages",    "unroll",     "rows",
                                            "split", "tile_rows", "rows_each", "load_past", "persistent", "async"};

enum class Part { kShared, kDefault, kOwn };

Part part_of(std::string_view axis, bool teams) {
  const auto in = [axis](std::span<const std::string_view> list) {
    return std::find(list.begin(), list.end(), axis) != list.end();
  };
  if (teams ? in(kFixedTeams) : in(kFixed)) return Part::kDefault;
  return (teams ? in(kCommonTeams) : in(kCommon)) ? Part::kShared : Part::kOwn;
}

// What the whole space calls a stage's axis.
std::string name_in_whole(size_t stage, const std::string& axis, bool teams) {
  return part_of(axis, teams) == Part::kShared ? axis : cat("s", stage, ".", axis);
}

// What follows from the threads of a block, and that other blocks may read the same; copies are from device memory.
void complete(const Space& space, int64_t team, Schedule& own) {
  for (const std::string_view whole : {"load_past", "persistent", "async"})
    if (axis_named(space.axes, whole) != nullptr) own.set(std::string(whole), 0);
  if (axis_named(space.axes, "teams") != nullptr) {
    own.set("teams", 1);
    if (axis_named(space.axes, "split") != nullptr) own.set("split", 0);
    return;
  }
  const std::vector<int64_t>& rows = axis_named(space.axes, "tile_rows")->values;
  own.set("tile_rows", *std::max_element(rows.begin(), rows.end()));
  own.set("rows_each", own["tile_rows"] * own["tile_columns"] / (team * own["columns_each"]));
}

bool legal_stage(const Space& space, const Schedule& own, int64_t team) {
  for (const Axis& axis : space.axes)
    if (!has_value(axis, own[axis.name])) return false;
  if (team > 0 && axis_named(space.axes, "teams") == nullptr &&
      own["rows_each"] * team * own["columns_each"] != own["tile_rows"] * own["tile_columns"])
    return false;
  return !space.legal || space.legal(own);
}

// Which values of the whole's axes are a legal schedule of one stage.
struct StageTable {
  std::vector<size_t> axes;  // of the whole space
  std::vector<char> legal;   // by mixed-radix number of their values
};

struct Tables {
  std::vector<Axis> axes;
  std::vector<size_t> shared;               // axes of several stages
  std::vector<std::vector<StageTable>> of;  // by choice and stage

  // Every choice, and every value of what stages share: the product of what each stage then has.
  uint64_t count() const {
    uint64_t all = 0;
    for (const std::vector<StageTable>& stages : of) {
      std::vector<uint64_t> products;
      for (const StageTable& stage : stages) {
        std::vector<uint64_t> mine;
        for (size_t n = 0; n < stage.legal.size(); ++n) add(stage, n, stage.legal[n] != 0 ? 1 : 0, mine);
        if (products.empty()) products.assign(mine.size(), 1);
        for (size_t i = 0; i < mine.size(); ++i) products[i] *= mine[i];
      }
      for (uint64_t product : products) all += product;
    }
    return all;
  }

  // Adds `n`'s weight to all values of the shared axes that it goes with; those that its stage lacks are free.
  void add(const StageTable& stage, size_t n, uint64_t weight, std::vector<uint64_t>& to) const {
    std::vector<int> at(axes.size(), -1);
    for (size_t i = stage.axes.size(); i-- > 0;) {
      at[stage.axes[i]] = static_cast<int>(n % axes[stage.axes[i]].values.size());
      n /= axes[stage.axes[i]].values.size();
    }
    std::vector<size_t> places = {0};
    for (size_t axis : shared) {
      std::vector<size_t> next;
      for (size_t place : places)
        for (size_t v = 0; v < axes[axis].values.size(); ++v)
          if (at[axis] < 0 || at[axis] == static_cast<int>(v)) next.push_back(place * axes[axis].values.size() + v);
      places = std::move(next);
    }
    size_t size = 1;
    for (size_t axis : shared) size *= axes[axis].values.size();
    to.resize(size, 0);
    for (size_t place : places) to[place] += weight;
  }

  bool legal(const Schedule& s) const {
    std::vector<size_t> at(axes.size());
    for (size_t i = 0; i < axes.size(); ++i) {
      const std::vector<int64_t>& values = axes[i].values;
      const auto value = std::find(values.begin(), values.end(), s.knobs()[i].second);
      if (value == values.end()) return false;
      at[i] = static_cast<size_t>(value - values.begin());
    }
    return std::all_of(of[at[0]].begin(), of[at[0]].end(), [&](const StageTable& stage) {
      size_t number = 0;
      for (size_t axis : stage.axes) number = number * axes[axis].values.size() + at[axis];
      return stage.legal[number] != 0;
    });
  }
};

StageTable table_of(const std::vector<Axis>& axes, size_t stage, const Space& own, bool teams) {
  StageTable table;
  std::vector<std::pair<std::string, const Axis*>> names;  // of the stage's axes, and what they are in the whole
  const auto take = [&](const std::string& name) {
    names.emplace_back(name, axis_named(axes, name_in_whole(stage, name, teams)));
    table.axes.push_back(static_cast<size_t>(names.back().second - axes.data()));
  };
  for (const Axis& axis : own.axes)
    if (part_of(axis.name, teams) != Part::kDefault) take(axis.name);
  if (teams && axis_named(own.axes, "team") == nullptr) take("team");
  size_t size = 1;
  for (const auto& [name, axis] : names) size *= axis->values.size();
  Schedule schedule = own.schedule(own.seeds[0]);
  for (size_t n = 0; n < size; ++n) {
    size_t rest = n;
    for (size_t i = names.size(); i-- > 0;) {
      const std::vector<int64_t>& values = names[i].second->values;
      schedule.set(names[i].first, values[rest % values.size()]);
      rest /= values.size();
    }
    const int64_t team = teams ? schedule["team"] : 0;
    if (teams) complete(own, team, schedule);
    table.legal.push_back(legal_stage(own, schedule, team) ? 1 : 0);
  }
  return table;
}

int64_t kept_bytes(const Stitched& choice) {
  int64_t bytes = 0;
  for (const StitchKept& kept : choice.kept) bytes += kept.bytes();
  return bytes;
}

// A block's values should stay near, and there should be enough blocks for all.
std::vector<size_t> best_first(const Stitch& stitch, const Machine& machine) {
  const Target& target = *machine.target;
  const int64_t near = target.is_gpu() ? target.gpu.block_shared : machine.l2_bytes;
  const int64_t enough = target.is_gpu() ? target.gpu.units : 2 * machine.threads;
  std::vector<size_t> order;
  for (size_t c = 0; c < stitch.choices.size(); ++c) order.push_back(c);
  const auto misfit = [&](size_t c) {
    const Stitched& choice = stitch.choices[c];
    return std::pair(kept_bytes(choice) > near / 2 || choice.blocks() < enough, -choice.rows);
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return misfit(a) < misfit(b); });
  return order;
}

// Puts a stage at one of its own schedules.
void place_stage(const Space& space, size_t stage, const Schedule& own, Point& point) {
  for (const auto& [knob, value] : own.knobs()) {
    const Axis* axis = axis_named(space.axes, name_in_whole(stage, knob, false));
    if (part_of(knob, false) == Part::kDefault || axis == nullptr) continue;
    const auto at = std::find(axis->values.begin(), axis->values.end(), value);
    point[static_cast<size_t>(axis - space.axes.data())] = static_cast<int>(at - axis->values.begin());
  }
}

void add_seeds(Space& space, const std::vector<std::vector<Space>>& own, const Stitch& stitch, const Machine& machine) {
  for (size_t c : best_first(stitch, machine)) {
    for (size_t seed : {0, 1, 2, 4}) {
      Point point(space.axes.size(), 0);
      point[0] = static_cast<int>(c);
      for (size_t k = 0; k < own[c].size(); ++k) {
        const std::vector<Point>& seeds = own[c][k].seeds;
        place_stage(space, k, own[c][k].schedule(seeds[std::min(seed, seeds.size() - 1)]), point);
      }
      space.seeds.push_back(std::move(point));
    }
  }
}

// For each number of threads, every stage's first legal schedule.
void add_team_seeds(Space& space, const Stitch& stitch, const Machine& machine, const Tables& tables) {
  const Axis& team = *axis_named(space.axes, "team");
  const auto team_axis = static_cast<size_t>(&team - space.axes.data());
  for (size_t c : best_first(stitch, machine)) {
    for (int64_t threads : {256, 128, 512, 64, 32}) {
      if (!has_value(team, threads)) continue;
      const auto wanted =
          static_cast<size_t>(std::find(team.values.begin(), team.values.end(), threads) - team.values.begin());
      Point point(space.axes.size(), 0);
      point[0] = static_cast<int>(c);
      bool all = true;
      for (const StageTable& table : tables.of[c]) {
        bool placed = false;
        for (size_t n = 0; n < table.legal.size() && !placed; ++n) {
          if (table.legal[n] == 0) continue;
          Point here = point;
          for (size_t i = table.axes.size(), rest = n; i-- > 0;) {
            const size_t values = space.axes[table.axes[i]].values.size();
            here[table.axes[i]] = static_cast<int>(rest % values);
            rest /= values;
          }
          placed = here[team_axis] == static_cast<int>(wanted);
          if (placed) point = std::move(here);
        }
        all = all && placed;
      }
      if (all) space.seeds.push_back(std::move(point));
    }
  }
}

}  // namespace

Space stage_space(const Stage& stage, const Machine& machine) {
  const Machine own = stage_machine(machine, stage);
  return finished(space_single(stage.graph, stage.domain, own), stage.domain, own);
}

Schedule stage_schedule(const Space& space, size_t stage, const Schedule& whole, bool teams) {
  Schedule own = space.schedule(space.seeds[0]);
  for (const Axis& axis : space.axes)
    if (part_of(axis.name, teams) != Part::kDefault)
      own.set(axis.name, whole.get(name_in_whole(stage, axis.name, teams), own[axis.name]));
  if (teams) complete(space, whole["team"], own);
  return own;
}

Space space_stitched(const Domain& domain, const Machine& machine) {
  const Stitch& stitch = *domain.stitch;
  const bool teams = machine.target->is_gpu();
  Space space;
  space.axes = {{"rows", {}}};
  space.axes.push_back(teams ? axis_of("team", {256, 128, 512, 64, 32, 1024}) : threads_axis(machine));
  std::vector<std::vector<Space>> own(stitch.choices.size());
  for (size_t c = 0; c < stitch.choices.size(); ++c) {
    space.axes[0].values.push_back(stitch.choices[c].rows);
    for (size_t k = 0; k < stitch.choices[c].stages.size(); ++k) {
      const Stage& stage = stitch.choices[c].stages[k];
      Space of_stage = stage_space(stage, machine);
      for (const Axis& axis : of_stage.axes) {
        if (part_of(axis.name, teams) == Part::kDefault || (teams && axis.name == "team")) continue;
        const std::string name = name_in_whole(k, axis.name, teams);
        auto at = std::find_if(space.axes.begin(), space.axes.end(), [&](const Axis& a) { return a.name == name; });
        if (at == space.axes.end()) at = space.axes.insert(space.axes.end(), Axis{name, {}});
        for (int64_t value : axis.values)
          if (!has_value(*at, value)) at->values.push_back(value);
      }
      own[c].push_back(std::move(of_stage));
    }
  }
  auto tables = std::make_shared<Tables>();
  tables->axes = space.axes;
  for (size_t i = 1; i < space.axes.size(); ++i)
    if (part_of(space.axes[i].name, teams) == Part::kShared || space.axes[i].name == "threads")
      tables->shared.push_back(i);
  for (const std::vector<Space>& stages : own) {
    tables->of.emplace_back();
    for (size_t k = 0; k < stages.size(); ++k) tables->of.back().push_back(table_of(space.axes, k, stages[k], teams));
  }
  space.legal = [tables](const Schedule& s) { return tables->legal(s); };
  space.counted = [tables] { return tables->count(); };
  if (teams)
    add_team_seeds(space, stitch, machine, *tables);
  else
    add_seeds(space, own, stitch, machine);
  return space;
}

absl::StatusOr<Space> space_of_connected(const Graph& group, const Domain& domain, const Machine& machine) {
  const bool stitched = domain.cls == LoopClass::kStitched;
  return finished(stitched ? space_stitched(domain, machine) : space_single(group, domain, machine), domain, machine);
}

}  // namespace wl

#include "compiler/schedule/stitched/tables.h"

#include <algorithm>

#include "compiler/schedule/axes.h"
#include "compiler/schedule/contract/contract.h"

namespace wl {
namespace {

// Whether the value of a choice in a schedule has another effect than the first one of its axis.
bool has_effect(const Space& space, Choice choice, const Schedule& own) {
  return std::any_of(space.effects.begin(), space.effects.end(), [&](const Space::Effect& effect) {
    return effect.choice == choice && effect.of(own, own[choice]) != effect.of(own, effect.values[0]);
  });
}

// Whether a stage's schedule is legal. `team`: the number of threads of a block, which the tiles of a contraction must
// occupy exactly; 0 on CPUs.
bool legal_stage(const Space& space, const Schedule& own, int64_t team) {
  for (const Axis& axis : space.axes)
    if (!has_value(axis, own[*axis.choice])) return false;
  if (team > 0 && axis_of(space.axes, kTeams) == nullptr &&
      own[kThreadRows] * team * own[kThreadColumns] != own[kTileRows] * own[kTileColumns])
    return false;
  return (!own.has(kAsyncCopies) || own[kAsyncCopies] == 0 || has_effect(space, kAsyncCopies, own)) &&
         space.admits(own);
}

}  // namespace

InGroup in_group(const Axis& axis, bool teams) {
  return info(*axis.choice).stitched[teams ? 1 : 0];
}

Axis axis_in_whole(size_t stage, const Axis& axis, bool teams) {
  return in_group(axis, teams) == InGroup::kShared ? axis : axis_in_part('s', static_cast<int>(stage), axis);
}

void complete_stage(const Space& space, int64_t team, Schedule& own) {
  for (const Choice choice : {kStreamLoads, kPersistent, kTilesByDie})
    if (own.has(choice)) own.set(choice, 0);
  if (own.has(kTeams)) {
    own.set(kTeams, 1);
    if (own.has(kTeamsShareReduction)) own.set(kTeamsShareReduction, 0);
    return;
  }
  for (const Choice choice : {kRowRuns, kRowPlanes, kColumnRuns, kColumnPlanes, kRasterRows})
    if (own.has(choice)) own.set(choice, 1);
  const std::optional<MatrixOp> matrix = matrix_of(own);
  if (matrix && (own[kAsyncCopies] != 0 || multiplies_in_memory(*matrix))) own.set(kVector, widest_vector(*matrix));
  const std::vector<int64_t>& rows = values_of(space, kTileRows);
  own.set(kTileRows, *std::max_element(rows.begin(), rows.end()));
  own.set(kThreadRows, own[kTileRows] * own[kTileColumns] / (team * own[kThreadColumns]));
}

uint64_t Tables::count() const {
  uint64_t all = 0;
  for (size_t c = 0; c < of.size(); ++c)
    for (uint64_t product : products_of(c))
      if (__builtin_add_overflow(all, product, &all)) return UINT64_MAX;
  return all;
}

Point Tables::first() const {
  for (size_t c = 0; c < of.size(); ++c) {
    const std::vector<uint64_t> products = products_of(c);
    const auto at = std::find_if(products.begin(), products.end(), [](uint64_t points) { return points > 0; });
    if (at == products.end()) continue;
    Point point = start(c);
    auto place = static_cast<size_t>(at - products.begin());
    for (size_t i = shared.size(); i-- > 0;) {
      const size_t size = axes[shared[i]].values.size();
      point[shared[i]] = static_cast<int>(place % size);
      place /= size;
    }
    for (const StageTable& stage : of[c]) place_first(stage, point);
    return point;
  }
  return {};
}

std::vector<uint64_t> Tables::products_of(size_t chosen) const {
  std::vector<uint64_t> products(places(), 1);
  for (size_t place = 0; place < products.size(); ++place) {
    size_t rest = place;
    for (size_t i = shared.size(); i-- > 0; rest /= axes[shared[i]].values.size())
      if (rest % axes[shared[i]].values.size() != 0 && !matters(chosen, shared[i])) products[place] = 0;
  }
  for (const StageTable& stage : of[chosen]) {
    const std::vector<uint64_t> mine = agreeing(stage);
    for (size_t i = 0; i < mine.size(); ++i)
      if (__builtin_mul_overflow(products[i], mine[i], &products[i])) products[i] = UINT64_MAX;
  }
  return products;
}

void Tables::place_first(const StageTable& stage, Point& point) const {
  for (size_t n = 0; n < stage.legal.size(); ++n) {
    if (stage.legal[n] == 0) continue;
    Point at = point;
    stage.put(n, axes, at);
    if (std::any_of(shared.begin(), shared.end(), [&](size_t axis) { return at[axis] != point[axis]; })) continue;
    point = std::move(at);
    return;
  }
}

std::vector<uint64_t> Tables::agreeing(const StageTable& stage) const {
  std::vector<uint64_t> tally(places(), 0);
  // For each shared axis: how far apart two neighbouring values of the axis are in `tally`; 0: the stage lacks the
  // axis.
  std::vector<size_t> own;
  size_t step = tally.size();
  for (size_t axis : shared) {
    step /= axes[axis].values.size();
    own.push_back(std::find(stage.axes.begin(), stage.axes.end(), axis) == stage.axes.end() ? 0 : step);
  }
  Point at(axes.size(), 0);
  for (size_t n = 0; n < stage.legal.size(); ++n) {
    if (stage.legal[n] == 0) continue;
    stage.put(n, axes, at);
    size_t place = 0;
    for (size_t i = 0; i < shared.size(); ++i) place += own[i] * static_cast<size_t>(at[shared[i]]);
    ++tally[place];
  }
  std::vector<uint64_t> all(tally.size());
  for (size_t place = 0; place < all.size(); ++place) {
    size_t rest = place, known = 0;
    for (size_t i = shared.size(); i-- > 0;) {
      const size_t size = axes[shared[i]].values.size();
      known += own[i] * (rest % size);
      rest /= size;
    }
    all[place] = tally[known];
  }
  return all;
}

size_t Tables::places() const {
  size_t size = 1;
  for (size_t axis : shared) size *= axes[axis].values.size();
  return size;
}

std::optional<size_t> Tables::choice(const Point& point) const {
  for (size_t c = 0; c < values.size(); ++c)
    if (std::equal(values[c].begin(), values[c].end(), point.begin())) return c;
  return std::nullopt;
}

Point Tables::start(size_t chosen) const {
  Point point(axes.size(), 0);
  std::copy(values[chosen].begin(), values[chosen].end(), point.begin());
  return point;
}

bool Tables::matters(size_t chosen, size_t axis) const {
  const bool of_resident = axes[axis].choice == kCopyingWaves || axes[axis].choice == kTma;
  return axis < naming() || (axes[axis].path.empty() && !of_resident) || has[chosen][axis] != 0;
}

bool Tables::matters(const Point& point, size_t axis) const {
  const std::optional<size_t> chosen = choice(point);
  return chosen && matters(*chosen, axis);
}

bool Tables::legal(const Point& point) const {
  const std::optional<size_t> chosen = choice(point);
  if (!chosen) return false;
  const std::vector<StageTable>& stages = of[*chosen];
  for (size_t axis = 0; axis < axes.size(); ++axis)
    if (point[axis] != 0 && !matters(*chosen, axis)) return false;
  return std::all_of(stages.begin(), stages.end(), [&](const StageTable& stage) {
    size_t number = 0;
    for (size_t axis : stage.axes) number = number * axes[axis].values.size() + static_cast<size_t>(point[axis]);
    return stage.legal[number] != 0;
  });
}

bool Tables::legal(size_t stage, const Schedule& schedule) const {
  const auto at = [&](size_t axis) {
    const std::vector<int64_t>& all = axes[axis].values;
    const int64_t value = schedule.find(axes[axis]).value_or(all[0]);
    return static_cast<size_t>(std::find(all.begin(), all.end(), value) - all.begin());
  };
  for (size_t c = 0; c < values.size(); ++c) {
    bool named = true;
    for (size_t i = 0; i < naming(); ++i) named = named && static_cast<size_t>(values[c][i]) == at(i);
    if (!named) continue;
    if (stage >= of[c].size()) return true;
    size_t number = 0;
    for (const size_t axis : of[c][stage].axes) {
      const size_t values_of_axis = axes[axis].values.size();
      if (at(axis) == values_of_axis) return false;  // the axis does not have the schedule's value
      number = number * values_of_axis + at(axis);
    }
    return of[c][stage].legal[number] != 0;
  }
  return false;
}

size_t Tables::end_of(size_t stage) const {
  size_t end = naming();
  for (const std::vector<StageTable>& stages : of)
    if (stage < stages.size())
      for (const size_t axis : stages[stage].axes) end = std::max(end, axis + 1);
  return end;
}

StageTable table_of(const std::vector<Axis>& axes, size_t stage, const Space& own, bool teams) {
  StageTable table;
  std::vector<std::pair<Choice, const Axis*>> choices;  // the stage's choices, and their axes in the whole space
  const auto take = [&](Choice choice, const Axis* whole) {
    choices.emplace_back(choice, whole);
    table.axes.push_back(static_cast<size_t>(whole - axes.data()));
  };
  for (const Axis& axis : own.axes)
    if (in_group(axis, teams) != InGroup::kFixed)
      take(*axis.choice, axis_named(axes, axis_in_whole(stage, axis, teams).name));
  if (teams && axis_of(own.axes, kTeam) == nullptr) take(kTeam, axis_of(axes, kTeam));
  size_t size = 1;
  for (const auto& [choice, axis] : choices) size *= axis->values.size();
  if (own.seeds.empty()) {
    table.legal.assign(size, 0);
    return table;
  }
  Schedule schedule = own.schedule(own.seeds[0]);
  for (size_t n = 0; n < size; ++n) {
    size_t rest = n;
    for (size_t i = choices.size(); i-- > 0;) {
      const std::vector<int64_t>& values = choices[i].second->values;
      schedule.set(choices[i].first, values[rest % values.size()]);
      rest /= values.size();
    }
    const int64_t team = teams ? schedule[kTeam] : 0;
    if (teams) complete_stage(own, team, schedule);
    table.legal.push_back(legal_stage(own, schedule, team) ? 1 : 0);
  }
  return table;
}

}  // namespace wl

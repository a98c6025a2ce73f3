#include "compiler/schedule/space.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace wl {
namespace {

constexpr uint64_t kMostLookedAt = 1'000'000;  // the most points that finished() examines to find a legal one
constexpr uint64_t kMostTold = 50'000;         // the most points that count_text() examines
constexpr std::string_view kPlan1 = "plan 1 ", kPlan2 = "plan 2 ";

std::string value_text(const Axis& axis, int64_t value) {
  return axis.choice ? value_text(*axis.choice, value) : cat(value);
}

// Whether `name` is the axis's name in plans of version 1.
bool was_named(const Axis& axis, std::string_view name) {
  if (!axis.choice) return axis.name == name;
  const std::string_view part = std::string_view(axis.name).substr(0, axis.name.rfind('.') + 1);
  if (name.substr(0, part.size()) != part) return false;
  const std::string_view names = info(*axis.choice).plan_1;
  for (absl::string_view old : absl::StrSplit(absl::string_view(names.data(), names.size()), '|'))
    if (std::string_view(old.data(), old.size()) == name.substr(part.size())) return true;
  return false;
}

// Whether a plan is of version 1 while the plans of this space are of a later version.
bool is_older(std::string_view plan, const Space& space) {
  return plan.substr(0, kPlan1.size()) == kPlan1 && space.prefix.substr(0, kPlan1.size()) != kPlan1;
}

// The name of a kind of kernel in plans of version 1, in which transposes had no kind of their own.
std::string_view plan_1_kind(std::string_view kind) {
  return kind == "transpose" ? "map" : kind;
}

// Whether a name in a plan belongs to an axis that spaces had once and that had no effect. Column reductions, whose
// tiles are in registers, had no loop to unroll. In version 1, every map with strided reads had the axes of transposes.
bool had_no_effect(const Space& space, std::string_view name, bool old) {
  if (name == "unroll") return space.kind == "columns" || space.kind == "stitched" || space.kind == "packed";
  return old && space.kind == "map" && (name == "tile_rows" || name == "order" || name == "staged");
}

// Returns the part of a plan that follows its prefix; InvalidArgument if the plan has another prefix than the space.
absl::StatusOr<std::string_view> after_prefix(std::string_view text, const Space& space) {
  const auto rest = [text](std::string_view prefix) -> std::optional<std::string_view> {
    if (text.substr(0, prefix.size()) != prefix) return std::nullopt;
    const std::string_view left = text.substr(prefix.size());
    return left.empty() || left[0] == ' ' ? std::optional(left) : std::nullopt;
  };
  if (const auto found = rest(space.prefix)) return *found;
  if (is_older(text, space)) {
    std::string old = cat(kPlan1, space.prefix.substr(kPlan2.size()));
    old.replace(old.size() - space.kind.size(), space.kind.size(), plan_1_kind(space.kind));
    if (const auto found = rest(old)) return *found;
  }
  return invalid("expected a plan that begins with \"", space.prefix, "\", found \"", text.substr(0, 80), "\"");
}

}  // namespace

bool spells(const Axis& axis, int64_t value, std::string_view text) {
  return text == value_text(axis, value) || text == cat(value);
}

const Axis* axis_named(const std::vector<Axis>& axes, std::string_view name) {
  const auto at = std::find_if(axes.begin(), axes.end(), [name](const Axis& axis) { return axis.name == name; });
  return at == axes.end() ? nullptr : &*at;
}

const Axis* axis_of(const std::vector<Axis>& axes, Choice choice) {
  const auto at = std::find_if(axes.begin(), axes.end(),
                               [choice](const Axis& axis) { return axis.choice == choice && axis.path.empty(); });
  return at == axes.end() ? nullptr : &*at;
}

Axis axis_in_part(char prefix, int number, const Axis& axis) {
  Axis out = axis;
  out.name = cat(std::string(1, prefix), number, ".", axis.name);
  out.path.insert(out.path.begin(), number);
  return out;
}

Schedule Space::schedule(const Point& point) const {
  WL_CHECK(axes.size() == point.size(), "a point of ", point.size(), " in a space of ", axes.size(), " axes");
  Schedule schedule;
  for (size_t i = 0; i < axes.size(); ++i) {
    WL_CHECK(point[i] >= 0 && point[i] < static_cast<int>(axes[i].values.size()), "value ", point[i], " of axis ",
             axes[i].name);
    schedule.set(axes[i], axes[i].values[static_cast<size_t>(point[i])]);
  }
  return schedule;
}

int64_t Space::first_like(const Effect& effect, const Schedule& schedule) const {
  const int64_t value = schedule[effect.choice];
  if (value == effect.values.front()) return value;
  const int64_t mine = effect.of(schedule, value);
  for (const int64_t other : effect.values) {
    if (other == value) break;
    if (effect.of(schedule, other) != mine) continue;
    Schedule with = schedule;
    with.set(effect.choice, other);
    if (!legal || legal(with)) return other;
  }
  return value;
}

void Space::add_effect(Choice choice, std::function<int64_t(const Schedule&, int64_t value)> of) {
  if (const Axis* const axis = axis_of(axes, choice)) effects.push_back({choice, axis->values, std::move(of)});
}

void Space::keep_effects_of_part(const std::function<InGroup(Choice)>& where) {
  std::erase_if(effects, [&](const Effect& effect) {
    return where(effect.choice) != InGroup::kOwn && effect.choice != kMinBlocks;
  });
}

bool Space::admits(const Schedule& schedule) const {
  return (!legal || legal(schedule)) && std::all_of(effects.begin(), effects.end(), [&](const Effect& effect) {
           return first_like(effect, schedule) == schedule[effect.choice];
         });
}

bool Space::admits(const Schedule& schedule, const Point& point) const {
  return admits(schedule) && (!legal_point || legal_point(point));
}

void Space::settle_effects(Point& point) const {
  if (effects.empty() || point.empty()) return;
  Schedule current = schedule(point);
  // Where a choice is at an earlier value, `legal` may allow earlier values of another one, so all are looked at again.
  for (bool changed = true; changed;) {
    changed = false;
    for (const Effect& effect : effects) {
      const int64_t value = first_like(effect, current);
      if (value == current[effect.choice]) continue;
      const Axis& axis = *axis_of(axes, effect.choice);
      const auto at = std::find(axis.values.begin(), axis.values.end(), value);
      current.set(effect.choice, value);
      point[static_cast<size_t>(&axis - axes.data())] = static_cast<int>(at - axis.values.begin());
      changed = true;
    }
  }
}

bool Space::enumerate(const std::function<bool(const Point&)>& visit, uint64_t most) const {
  for (const Axis& axis : axes)
    if (axis.values.empty()) return true;
  Point point(axes.size(), 0);
  Schedule current = schedule(point);
  // The axis that was changed last; the axes behind it are at their first values. `matters` has already been called
  // for every earlier axis, when that axis was changed.
  size_t changed = axes.size();
  // Returns whether the point is legal, and how many leading axes decide that. If these axes make the point illegal,
  // every other point with the same values on them is illegal, too.
  const auto judged = [&] {
    if (matters && changed < axes.size() && !matters(point, changed)) return std::pair(false, changed + 1);
    // A part whose axes come before the changed one was found legal when one of its own was changed.
    for (const Part& part : parts)
      if ((changed < part.end || changed == axes.size()) && !part.legal(current)) return std::pair(false, part.end);
    // What `legal` says of a space of parts, each part has said.
    return std::pair((!parts.empty() && !legal_point) || admits(current, point), axes.size());
  };
  for (uint64_t looked = 0; looked < most; ++looked) {
    const auto [is_legal, end] = judged();
    if (is_legal && !visit(point)) return false;
    size_t i = end;
    while (i > 0 && point[i - 1] + 1 == static_cast<int>(axes[i - 1].values.size())) {
      --i;
      point[i] = 0;
      current.set(axes[i], axes[i].values[0]);
    }
    if (i == 0) return true;
    changed = i - 1;
    ++point[changed];
    current.set(axes[changed], axes[changed].values[static_cast<size_t>(point[changed])]);
  }
  return false;
}

Point Space::settled(Point point) const {
  for (size_t i = 0; matters && i < point.size(); ++i)
    if (!matters(point, i)) point[i] = 0;
  settle_effects(point);
  return point;
}

uint64_t Space::count(uint64_t limit) const {
  uint64_t legal_points = 0;
  if (limit == 0) return 0;
  if (const auto known = counted ? counted() : std::nullopt) return std::min(limit, *known);
  enumerate([&](const Point&) { return ++legal_points < limit; });
  return legal_points;
}

std::string Space::count_text() const {
  if (counted) {
    const std::optional<uint64_t> known = counted();
    return known ? cat(*known, " legal points") : "too many legal points to count";
  }
  uint64_t legal_points = 0;
  const bool all = enumerate([&](const Point&) { return ++legal_points > 0; }, kMostTold);
  return cat(all ? "" : "more than ", legal_points, " legal points");
}

bool Space::is_legal(const Point& point) const {
  if (point.size() != axes.size()) return false;
  for (size_t i = 0; i < axes.size(); ++i)
    if (point[i] < 0 || point[i] >= static_cast<int>(axes[i].values.size())) return false;
  return admits(schedule(point), point);
}

std::string Space::text(const Point& point) const {
  std::string out = prefix;
  for (size_t i = 0; i < axes.size(); ++i)
    append(&out, " ", axes[i].name, "=", value_text(axes[i], axes[i].values[static_cast<size_t>(point[i])]));
  return out;
}

bool Space::is_of_kind(std::string_view plan, std::string_view plans_kind) const {
  return plans_kind == (is_older(plan, *this) ? plan_1_kind(kind) : kind);
}

const Axis* Space::axis_in(std::string_view plan, std::string_view name) const {
  if (!is_older(plan, *this)) return axis_named(axes, name);
  const auto at = std::find_if(axes.begin(), axes.end(), [name](const Axis& axis) { return was_named(axis, name); });
  return at == axes.end() ? nullptr : &*at;
}

absl::StatusOr<Point> Space::parse(std::string_view text) const {
  WL_ASSIGN_OR_RETURN(const std::string_view rest, after_prefix(text, *this));
  const bool old = is_older(text, *this);
  Point point(axes.size(), -1);
  for (absl::string_view word : absl::StrSplit(absl::string_view(rest.data(), rest.size()), ' ', absl::SkipEmpty())) {
    const size_t equals = word.find('=');
    if (equals == absl::string_view::npos) return invalid("expected name=value, found \"", word, "\"");
    const std::string name(word.substr(0, equals)), value(word.substr(equals + 1));
    const Axis* axis = axis_in(text, name);
    if (axis == nullptr && had_no_effect(*this, name, old)) continue;
    if (axis == nullptr)
      return invalid("unknown axis \"", name, "\"", old ? " of a plan of version 1" : "", "; this space has ",
                     absl::StrJoin(axes, ", ", [](std::string* out, const Axis& a) { out->append(a.name); }));
    int& at = point[static_cast<size_t>(axis - axes.data())];
    if (at >= 0) return invalid("axis \"", name, "\" is given twice");
    for (size_t i = 0; i < axis->values.size(); ++i)
      if (spells(*axis, axis->values[i], value)) at = static_cast<int>(i);
    if (at < 0)
      return invalid(
          "axis \"", name, "\" has no value \"", value, "\"; it has ",
          absl::StrJoin(axis->values, ", ", [&](std::string* out, int64_t v) { out->append(value_text(*axis, v)); }));
  }
  // A plan may be older than an axis. Axes that the plan does not name get their first value, which means what kernels
  // did before the choice existed.
  for (int& at : point) at = std::max(at, 0);
  settle_effects(point);
  if (!is_legal(point)) return invalid("not a legal combination: \"", text.substr(0, 300), "\"");
  return point;
}

std::string axes_text(const Space& space) {
  std::string text;
  for (const Axis& axis : space.axes) {
    append(&text, "  ", axis.name, "={");
    for (size_t i = 0; i < axis.values.size(); ++i) append(&text, i == 0 ? "" : ",", value_text(axis, axis.values[i]));
    append(&text, "}");
    if (axis.choice) append(&text, "  ", info(*axis.choice).meaning);
    text += "\n";
  }
  return text;
}

Space finished(Space space, const Machine& machine) {
  space.prefix = cat(kPlan2, "target=", machine.target->name, " class=", space.kind);
  std::vector<Point> seeds;
  for (Point& seed : space.seeds) {
    space.settle_effects(seed);
    if (space.is_legal(seed) && std::find(seeds.begin(), seeds.end(), seed) == seeds.end()) seeds.push_back(seed);
  }
  if (seeds.empty() && space.first) {
    if (Point point = space.first(); !point.empty()) seeds.push_back(std::move(point));
  } else if (seeds.empty()) {
    space.enumerate(
        [&](const Point& point) {
          seeds.push_back(point);
          return false;
        },
        kMostLookedAt);
  }
  space.seeds = std::move(seeds);
  return space;
}

}  // namespace wl

#include "compiler/schedule/space.h"

#include <algorithm>
#include <charconv>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace wl {
namespace {

constexpr std::string_view kCompilers[] = {"gcc", "clang"};

std::string value_text(std::string_view axis, int64_t value) {
  if (axis == "compiler" && value >= 0 && value < 2) return std::string(kCompilers[value]);
  return cat(value);
}

Schedule first_schedule(const std::vector<Axis>& axes) {
  return Schedule(axes, Point(axes.size(), 0));
}

}  // namespace

const Axis* axis_named(const std::vector<Axis>& axes, std::string_view name) {
  const auto at = std::find_if(axes.begin(), axes.end(), [name](const Axis& axis) { return axis.name == name; });
  return at == axes.end() ? nullptr : &*at;
}

Schedule::Schedule(const std::vector<Axis>& axes, const Point& point) {
  WL_CHECK(axes.size() == point.size(), "a point of ", point.size(), " in a space of ", axes.size(), " axes");
  knobs_.reserve(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) {
    WL_CHECK(point[i] >= 0 && point[i] < static_cast<int>(axes[i].values.size()), "value ", point[i], " of axis ",
             axes[i].name);
    knobs_.emplace_back(axes[i].name, axes[i].values[point[i]]);
  }
}

int64_t Schedule::operator[](std::string_view name) const {
  for (const auto& [knob, value] : knobs_)
    if (knob == name) return value;
  WL_CHECK(false, "the schedule has no axis ", name);
}

int64_t Schedule::get(std::string_view name, int64_t otherwise) const {
  for (const auto& [knob, value] : knobs_)
    if (knob == name) return value;
  return otherwise;
}

void Schedule::set(std::string name, int64_t value) {
  for (auto& [knob, old] : knobs_)
    if (knob == name) {
      old = value;
      return;
    }
  knobs_.emplace_back(std::move(name), value);
}

void Space::enumerate(const std::function<bool(const Point&)>& visit) const {
  for (const Axis& axis : axes)
    if (axis.values.empty()) return;
  Point point(axes.size(), 0);
  Schedule current = first_schedule(axes);
  // Where a part is illegal, so are all points that begin as this one does.
  const auto judged = [&] {
    for (const Part& part : parts)
      if (!part.legal(current)) return std::pair(false, part.end);
    return std::pair(!parts.empty() || !legal || legal(current), axes.size());
  };
  while (true) {
    const auto [is_legal, end] = judged();
    if (is_legal && !visit(point)) return;
    size_t i = end;
    while (i > 0 && point[i - 1] + 1 == static_cast<int>(axes[i - 1].values.size())) {
      --i;
      point[i] = 0;
      current.set(axes[i].name, axes[i].values[0]);
    }
    if (i == 0) return;
    ++point[i - 1];
    current.set(axes[i - 1].name, axes[i - 1].values[point[i - 1]]);
  }
}

uint64_t Space::count(uint64_t limit) const {
  uint64_t legal_points = 0;
  if (limit == 0) return 0;
  if (counted) return std::min(limit, counted());
  enumerate([&](const Point&) { return ++legal_points < limit; });
  return legal_points;
}

bool Space::is_legal(const Point& point) const {
  if (point.size() != axes.size()) return false;
  for (size_t i = 0; i < axes.size(); ++i)
    if (point[i] < 0 || point[i] >= static_cast<int>(axes[i].values.size())) return false;
  return !legal || legal(schedule(point));
}

std::string Space::text(const Point& point) const {
  std::string out = prefix;
  for (size_t i = 0; i < axes.size(); ++i)
    append(&out, " ", axes[i].name, "=", value_text(axes[i].name, axes[i].values[point[i]]));
  return out;
}

absl::StatusOr<Point> Space::parse(std::string_view text) const {
  if (text.substr(0, prefix.size()) != prefix || (text.size() > prefix.size() && text[prefix.size()] != ' '))
    return invalid("expected a plan that begins with \"", prefix, "\", found \"", text.substr(0, 80), "\"");
  Point point(axes.size(), -1);
  const std::string_view rest = text.substr(prefix.size());
  for (absl::string_view word : absl::StrSplit(absl::string_view(rest.data(), rest.size()), ' ', absl::SkipEmpty())) {
    const size_t equals = word.find('=');
    if (equals == absl::string_view::npos) return invalid("expected name=value, found \"", word, "\"");
    const std::string name(word.substr(0, equals)), value(word.substr(equals + 1));
    const Axis* axis = axis_named(axes, name);
    if (axis == nullptr)
      return invalid("unknown axis \"", name, "\"; this space has ",
                     absl::StrJoin(axes, ", ", [](std::string* out, const Axis& a) { out->append(a.name); }));
    int& at = point[axis - axes.data()];
    if (at >= 0) return invalid("axis \"", name, "\" is given twice");
    for (size_t i = 0; i < axis->values.size(); ++i)
      if (value_text(name, axis->values[i]) == value) at = static_cast<int>(i);
    if (at < 0)
      return invalid(
          "axis \"", name, "\" has no value \"", value, "\"; it has ",
          absl::StrJoin(axis->values, ", ", [&](std::string* out, int64_t v) { out->append(value_text(name, v)); }));
  }
  // A plan may be older than an axis: the first value is what was done before there was a choice.
  for (int& at : point) at = std::max(at, 0);
  if (!is_legal(point)) return invalid("not a legal combination: \"", text.substr(0, 300), "\"");
  return point;
}

Space finished(Space space, const Domain& domain, const Machine& machine) {
  space.prefix = cat("plan 1 target=", machine.target->name, " class=", name_of(domain.cls));
  std::vector<Point> seeds;
  for (const Point& seed : space.seeds)
    if (space.is_legal(seed) && std::find(seeds.begin(), seeds.end(), seed) == seeds.end()) seeds.push_back(seed);
  if (seeds.empty()) {
    space.enumerate([&](const Point& point) {
      seeds.push_back(point);
      return false;
    });
  }
  WL_CHECK(!seeds.empty(), "a space without legal points: ", space.prefix);
  space.seeds = std::move(seeds);
  return space;
}

}  // namespace wl

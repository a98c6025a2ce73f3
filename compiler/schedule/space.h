// Everything that can be searched for one group, and nothing else: axes with their values, and which combinations are
// legal. Countable and enumerable. A Point names one value per axis; its text is the schedule part of a plan:
//   "plan 2 target=cpu:avx512 class=rows vector=16 unroll=4 accumulators=4 keep=costly ... threads=8 compiler=gcc"
// An axis that does not matter under the other choices must be at its first value (legal() says so), so that distinct
// legal points are distinct kernels.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/plan/domain.h"
#include "compiler/schedule/choices.h"

namespace wl {

struct Axis {
  Axis(Choice what, std::vector<int64_t> of) : name(name_of(what)), values(std::move(of)), choice(what) {}
  // Of a space that is not one of ours, e.g. a recorded one: nothing can be lowered from it.
  Axis(std::string called, std::vector<int64_t> of) : name(std::move(called)), values(std::move(of)) {}

  std::string name;  // in the text of a plan: the choice's, after "s0." for a stage's and "m0." for a member's
  std::vector<int64_t> values;
  std::optional<Choice> choice;
  std::vector<int> path;  // empty: of the whole; else the numbers of the part, and of the part within that
};

const Axis* axis_named(const std::vector<Axis>& axes, std::string_view name);  // null when there is none
const Axis* axis_of(const std::vector<Axis>& axes, Choice choice);             // the whole's; null when there is none
// The axis of a part as one of the whole: `prefix` is 's' for a stage, 'm' for a member.
Axis axis_in_part(char prefix, int number, const Axis& axis);

// Whether the text stands for the value: its number, or its name where the axis has named values.
bool spells(const Axis& axis, int64_t value, std::string_view text);

using Point = std::vector<int>;  // index into values, one per axis

struct Space {
  std::string prefix;     // "plan 2 target=cpu:avx512 class=rows"
  std::string_view kind;  // "rows"
  std::vector<Axis> axes;
  // Which combinations are legal: all for which both say so, where they are set.
  std::function<bool(const Schedule&)> legal;
  std::function<bool(const Point&)> legal_point;
  // Whether an axis matters under the values of the axes before it; those that do not are at their first values. Empty:
  // `legal` alone knows.
  std::function<bool(const Point&, size_t axis)> matters;
  // The number of legal points, where it takes no walk over all of them; nothing where it would take too long.
  std::function<std::optional<uint64_t>()> counted;
  // A legal point, where it takes no walk to find one or to know that there is none, which is an empty point.
  std::function<Point()> first;
  std::vector<Point> seeds;  // analytic first choices, best first; seeds[0] is the default schedule
  // What a cost model expects of a legal point, up to a constant; it may take a millisecond. Empty: no model.
  std::function<double(const Point&)> expected_log_ns;
  // Where choices are of several parts, one after the other: up to which axis a part reaches, and whether its own are
  // legal under what all share, which the first part begins with. `legal` asks all parts.
  struct Part {
    size_t end = 0;
    std::function<bool(const Schedule&)> legal;
  };
  std::vector<Part> parts;
  uint64_t count(uint64_t limit = 10'000'000) const;  // number of legal points, at most `limit`
  // "12 legal points"; "more than 12 legal points" or "too many legal points to count" where a walk would be long
  std::string count_text() const;
  // Calls visit for every legal point in lexicographic order until it returns false, or `most` points were looked at,
  // legal or not. Whether it came to the end.
  bool enumerate(const std::function<bool(const Point&)>& visit, uint64_t most = UINT64_MAX) const;
  bool is_legal(const Point& point) const;
  // The point with every axis that does not matter at its first value.
  Point settled(Point point) const;
  Schedule schedule(const Point& point) const;
  std::string text(const Point& point) const;
  // Whether a plan of kernels of such a kind is of this kind, whatever its target.
  bool is_of_kind(std::string_view plan, std::string_view plans_kind) const;
  // The axis that a plan of this kind of kernel calls so, whichever version the plan is of; null when there is none.
  const Axis* axis_in(std::string_view plan, std::string_view name) const;
  // Reads plans of version 1 too, in which choices had other names.
  absl::StatusOr<Point> parse(std::string_view text) const;

 private:
  bool admits(const Schedule& schedule, const Point& point) const;
};

// For people: a line for each axis, with its values and what it chooses.
std::string axes_text(const Space& space);
// The space with its prefix, and with seeds that are legal and distinct: its own, or the first legal point. No seeds:
// there is no legal point, or none among the first million points.
Space finished(Space space, const Machine& machine);

}  // namespace wl

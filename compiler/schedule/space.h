// The search space of one group: axes with their values, and rules that say which combinations of values are legal. Its
// legal points can be counted and enumerated. A Point has one value for each axis; its text is a plan:
//   "plan 2 target=cpu:avx512 class=rows vector=16 unroll=4 accumulators=4 keep=costly ... threads=8 compiler=gcc"
// A point is legal only if every axis that has no effect under the other choices is at its first value. Distinct legal
// points are therefore distinct kernels.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/domain/domain.h"
#include "compiler/schedule/choices.h"

namespace wl {

struct Axis {
  Axis(Choice what, std::vector<int64_t> of) : name(name_of(what)), values(std::move(of)), choice(what) {}
  // An axis without a Choice, as in the recorded spaces of other tuners. No kernel can be made from such a space.
  Axis(std::string called, std::vector<int64_t> of) : name(std::move(called)), values(std::move(of)) {}

  std::string name;  // the choice's name in plans, after "s0." for stage 0 or "m0." for members of kind 0
  std::vector<int64_t> values;
  std::optional<Choice> choice;
  // Numbers of the stages or members that lead to the part with the choice, outermost first; empty: the whole group.
  std::vector<int> path;
};

const Axis* axis_named(const std::vector<Axis>& axes, std::string_view name);  // the axis with this name; null: none
const Axis* axis_of(const std::vector<Axis>& axes, Choice choice);  // the whole group's axis of a choice; null: none
// Returns the axis of the whole space that stands for a part's axis. `prefix`: 's' for a stage, 'm' for a kind of
// member.
Axis axis_in_part(char prefix, int number, const Axis& axis);

// Whether `text` denotes `value`: as a number or, if the axis's choice has named values, as the value's name.
bool spells(const Axis& axis, int64_t value, std::string_view text);

using Point = std::vector<int>;  // a point has for each axis an index into the axis's values

struct Space {
  std::string prefix;     // how plans begin, such as "plan 2 target=cpu:avx512 class=rows"
  std::string_view kind;  // the word after "class=" in plans, such as "rows"
  std::vector<Axis> axes;
  // A point is legal if `legal` and `legal_point` both return true. A function that is not set allows every point.
  std::function<bool(const Schedule&)> legal;
  std::function<bool(const Point&)> legal_point;
  // Whether an axis has an effect under the values of the axes before it. An axis without effect must be at its first
  // value. If this function is not set, only `legal` and `legal_point` check that.
  std::function<bool(const Point&, size_t axis)> matters;
  // Choices of which some values may give the kernel that another value gives, everything else being equal. Of values
  // that `legal` allows and that give the same kernel, only the first one on the axis is legal, so that distinct legal
  // points are distinct kernels. The effect of a choice may depend on other choices.
  struct Effect {
    Choice choice;
    std::vector<int64_t> values;  // those of the axis
    // Returns a number for a value of the choice in a schedule. Values with equal numbers give the same kernel.
    std::function<int64_t(const Schedule&, int64_t value)> of;
  };
  std::vector<Effect> effects;
  // Adds an effect, if the space has an axis for the choice.
  void add_effect(Choice choice, std::function<int64_t(const Schedule&, int64_t value)> of);
  // Makes the space one of a part whose choices are made in the space of the whole group: leaves out the effects of
  // choices that the parts share, or that are fixed. Such a choice may have no effect in one part and have one in
  // another. min_blocks stays, as its effect depends on the threads of a block, which the parts share, too. `where`:
  // how a choice of a part appears in the whole group.
  void keep_effects_of_part(const std::function<InGroup(Choice)>& where);
  // Returns the number of legal points without enumerating them; nullopt if that would take too long. If this function
  // is not set, count() enumerates the points.
  std::function<std::optional<uint64_t>()> counted;
  // Returns a legal point without enumerating points, or an empty point if none is legal. If this function is not set,
  // finished() enumerates them.
  std::function<Point()> first;
  std::vector<Point> seeds;  // points that a search tries first, best first; seeds[0] is the default schedule
  // The logarithm of the time in ns that a cost model expects of a legal point, up to an additive constant. A call may
  // take a millisecond. If this function is not set, there is no model.
  std::function<double(const Point&)> expected_log_ns;
  // Parts of the axes that are not legal together whatever the axes behind them are: of a stitched space a part for
  // each stage, of a packed one those of each kind of member. The first part begins with the axes that all parts share.
  // `end`: the number of the axis behind the part's last one; ends do not decrease. `legal`: whether the values of the
  // axes before `end` are legal, as far as the part says. A legal point is legal for every part.
  struct Part {
    size_t end = 0;
    std::function<bool(const Schedule&)> legal;
  };
  std::vector<Part> parts;
  uint64_t count(uint64_t limit = 10'000'000) const;  // the number of the space's legal points, at most `limit`
  // Returns "12 legal points" or, if a count would take long, "more than 12 legal points" or "too many legal points to
  // count".
  std::string count_text() const;
  // Calls visit() for every legal point in lexicographic order, until it returns false or `most` points, legal or not,
  // have been looked at. Returns whether the end of the space was reached.
  bool enumerate(const std::function<bool(const Point&)>& visit, uint64_t most = UINT64_MAX) const;
  bool is_legal(const Point& point) const;
  // Whether `legal` and `effects` allow the schedule.
  bool admits(const Schedule& schedule) const;
  // Returns the point with every axis that has no effect (`matters`) at its first value, and every choice of which
  // other values have the same effect (`effects`) at the first of them.
  Point settled(Point point) const;
  Schedule schedule(const Point& point) const;
  std::string text(const Point& point) const;
  // Whether a plan is for this kind of kernel, on any target. `plans_kind`: the word after "class=" in the plan.
  bool is_of_kind(std::string_view plan, std::string_view plans_kind) const;
  // Returns the axis that has this name in a plan of version 1 or 2 for this kind of kernel; null if there is none.
  const Axis* axis_in(std::string_view plan, std::string_view name) const;
  // Reads the text of a plan, also of version 1, in which choices had other names. An axis that the plan lacks is at
  // its first value, and a value that gives the kernel of an earlier one of its axis (`effects`) becomes that one.
  // InvalidArgument: the text is no plan of this space, or its point is not legal.
  absl::StatusOr<Point> parse(std::string_view text) const;

 private:
  friend Space finished(Space space, const Machine& machine);
  bool admits(const Schedule& schedule, const Point& point) const;
  // Returns the first value that gives the kernel that the schedule's own value of a choice gives.
  int64_t first_like(const Effect& effect, const Schedule& schedule) const;
  // Sets the choices in `effects` to the first values that give the same kernel.
  void settle_effects(Point& point) const;
};

// Returns a line for each axis, for people: its name, its values and the meaning of its choice.
std::string axes_text(const Space& space);
// Returns the space with `prefix` set and with its legal seeds only, each once. If there are none, the only seed is
// the first legal point. The space has no seeds if no point is legal, or none of the first million points.
Space finished(Space space, const Machine& machine);

}  // namespace wl

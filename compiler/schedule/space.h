// Everything that can be searched for one group, and nothing else: named axes with their values, and which combinations
// are legal. Countable and enumerable. A Point names one value per axis; its text is the schedule part of a plan:
//   "plan 1 target=cpu:avx512 class=rows vector=16 unroll=4 accumulators=4 stream=1 prefetch=2 pipeline=3 ...
//   compiler=gcc"
// An axis that does not matter under the other choices must be at its first value (legal() says so), so that distinct
// legal points are distinct kernels.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/plan/domain.h"

namespace wl {

struct Axis {
  std::string name;
  std::vector<int64_t> values;
};

const Axis* axis_named(const std::vector<Axis>& axes, std::string_view name);  // null when there is none

using Point = std::vector<int>;  // index into values, one per axis

// Named access to a point's values. Unknown names abort: what is not in the space cannot be asked for.
class Schedule {
 public:
  Schedule() = default;
  Schedule(const std::vector<Axis>& axes, const Point& point);
  int64_t operator[](std::string_view name) const;
  int64_t get(std::string_view name, int64_t otherwise) const;
  const std::vector<std::pair<std::string, int64_t>>& knobs() const { return knobs_; }
  void set(std::string name, int64_t value);

 private:
  std::vector<std::pair<std::string, int64_t>> knobs_;
};

struct Space {
  std::string prefix;  // "plan 1 target=cpu:avx512 class=rows"
  std::vector<Axis> axes;
  std::function<bool(const Schedule&)> legal;
  std::function<uint64_t()> counted;  // the number of legal points, where it takes no walk over them
  std::vector<Point> seeds;           // analytic first choices, best first; seeds[0] is the default schedule
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
  // Calls visit for every legal point in lexicographic order until it returns false.
  void enumerate(const std::function<bool(const Point&)>& visit) const;
  bool is_legal(const Point& point) const;
  Schedule schedule(const Point& point) const { return Schedule(axes, point); }
  std::string text(const Point& point) const;
  absl::StatusOr<Point> parse(std::string_view text) const;
};

// The space with its prefix, and with seeds that are legal and distinct: its own, or the first legal point.
Space finished(Space space, const Domain& domain, const Machine& machine);

}  // namespace wl

// The space of a packed group: what all members share, then for each kind of member its own axes under its number.
#include <algorithm>
#include <map>
#include <span>

#include "compiler/schedule/axes.h"
#include "compiler/schedule/packed/packed.h"
#include "compiler/schedule/stitched/stitched.h"

namespace wl {
namespace {

constexpr std::string_view kPackedCommon[] = {"threads", "compiler", "unroll", "accumulators"};
constexpr std::string_view kPackedTeams[] = {"team", "teams", "blocks"};
constexpr size_t kSeeds = 8;
constexpr uint64_t kMostCounted = 1'000'000;  // points of a kind

bool is_common(std::string_view axis, bool teams) {
  const auto in = [axis](std::span<const std::string_view> list) {
    return std::find(list.begin(), list.end(), axis) != list.end();
  };
  return teams ? in(kPackedTeams) : in(kPackedCommon);
}

std::string name_in_whole(int kind, const std::string& axis, bool teams) {
  return is_common(axis, teams) ? axis : cat("m", kind, ".", axis);
}

// A contraction's threads follow from its tiles, so one of these follows from the threads.
bool is_tiled(const Space& space) {
  return axis_named(space.axes, "tile_rows") != nullptr && axis_named(space.axes, "rows_each") != nullptr;
}
bool follows(const Space& space, std::string_view axis, bool teams) {
  return teams && axis == "rows_each" && is_tiled(space);
}

// A kind's schedule says of what all share; what it says nothing about is left out.
using Shared = std::map<std::string, int64_t>;
Shared shared_of(const Space& space, const Schedule& own, bool teams) {
  Shared shared;
  for (const Axis& axis : space.axes)
    if (is_common(axis.name, teams)) shared[axis.name] = own[axis.name];
  if (!teams) return shared;
  if (is_tiled(space))
    shared["team"] = own["tile_rows"] / own["rows_each"] * (own["tile_columns"] / own["columns_each"]);
  shared.try_emplace("teams", 1);
  return shared;
}

bool agrees(const Shared& a, const Shared& b) {
  return std::all_of(a.begin(), a.end(), [&](const auto& entry) {
    const auto other = b.find(entry.first);
    return other == b.end() || other->second == entry.second;
  });
}

// Of a kind's own schedule, under values of what is shared.
bool legal_own(const Space& space, const Schedule& own, const Shared& shared, bool teams) {
  for (const Axis& axis : space.axes)
    if (!has_value(axis, own[axis.name])) return false;
  return (!space.legal || space.legal(own)) && agrees(shared_of(space, own, teams), shared);
}

// A kind's schedule under what is shared, after one of its seeds; false where there is none.
bool follow(const Space& space, const Shared& shared, bool teams, Schedule& found) {
  for (const Point& seed : space.seeds) {
    Schedule own = space.schedule(seed);
    for (const auto& [name, value] : shared)
      if (axis_named(space.axes, name) != nullptr) own.set(name, value);
    found = own;
    if (legal_own(space, own, shared, teams)) return true;
    if (!teams || !is_tiled(space)) continue;
    for (int64_t tile_rows : axis_named(space.axes, "tile_rows")->values)
      for (int64_t tile_columns : axis_named(space.axes, "tile_columns")->values)
        for (int64_t columns_each : axis_named(space.axes, "columns_each")->values) {
          found.set("tile_rows", tile_rows);
          found.set("tile_columns", tile_columns);
          found.set("columns_each", columns_each);
          found.set("rows_each", tile_rows * tile_columns / (shared.at("team") * columns_each));
          if (legal_own(space, found, shared, teams)) return true;
        }
  }
  return false;
}

class PackedSpace {
 public:
  PackedSpace(const Packed& packed, const Machine& machine) : teams_(machine.target->is_gpu()) {
    const Machine own = member_machine(machine);
    for (int kind = 0; kind < packed.kinds; ++kind) {
      const Member& member = packed.first_of(kind);
      absl::StatusOr<Space> space = space_of_connected(member.graph, member.domain, own);
      WL_CHECK(space.ok(), space.status().ToString());
      own_.push_back(*std::move(space));
    }
    axes(machine);
    seeds();
    space_.counted = [whole = *this] { return whole.count(); };
  }

  Space take() { return std::move(space_); }

 private:
  void axes(const Machine& machine) {
    const bool one_team = std::any_of(own_.begin(), own_.end(),
                                      [](const Space& own) { return axis_named(own.axes, "teams") == nullptr; });
    std::vector<Axis> common;
    if (teams_ && std::any_of(own_.begin(), own_.end(), is_tiled))
      common.push_back(axis_of("team", {256, 128, 512, 64, 32, 1024}));
    for (const Space& own : own_)
      for (const Axis& axis : own.axes) {
        if (!is_common(axis.name, teams_)) continue;
        if (axis_named(common, axis.name) == nullptr) common.push_back({axis.name, {}});
        Axis& to = *std::find_if(common.begin(), common.end(), [&](const Axis& a) { return a.name == axis.name; });
        for (int64_t value : axis.values)
          if (!has_value(to, value)) to.values.push_back(value);
      }
    std::erase_if(common, [&](const Axis& axis) { return one_team && axis.name == "teams"; });
    if (teams_ && one_team) common.push_back({"teams", {1}});
    if (!teams_ && axis_named(common, "threads") == nullptr) common.push_back(threads_axis(machine));
    space_.axes = std::move(common);
    shared_ = space_.axes.size();
    for (size_t k = 0; k < own_.size(); ++k) {
      const int kind = static_cast<int>(k);
      for (const Axis& axis : own_[k].axes)
        if (!is_common(axis.name, teams_) && !follows(own_[k], axis.name, teams_))
          space_.axes.push_back({name_in_whole(kind, axis.name, teams_), axis.values});
      space_.parts.push_back(
          {space_.axes.size(), [own = own_[k], kind, teams = teams_, count = shared_](const Schedule& whole) {
             Shared shared;
             for (size_t i = 0; i < count; ++i) shared.insert(whole.knobs()[i]);
             return legal_own(own, member_schedule(own, kind, whole, teams), shared, teams);
           }});
    }
    space_.legal = [parts = space_.parts](const Schedule& whole) {
      return std::all_of(parts.begin(), parts.end(), [&](const Space::Part& part) { return part.legal(whole); });
    };
  }

  // What all share is what one kind's seed says, or a number of threads; the others follow.
  void seeds() {
    for (size_t i = 0; i < kSeeds; ++i)
      for (size_t leader = 0; leader < own_.size(); ++leader)
        if (i < own_[leader].seeds.size()) {
          const Schedule own = own_[leader].schedule(own_[leader].seeds[i]);
          add_seed(shared_of(own_[leader], own, teams_), leader, &own);
        }
    for (int64_t threads : {256, 128, 512, 64, 32})
      if (teams_) add_seed({{"team", threads}, {"teams", 1}}, 0, nullptr);
    if (!teams_) add_seed({{"threads", axis_named(space_.axes, "threads")->values[0]}}, 0, nullptr);
  }

  void add_seed(Shared shared, size_t leader, const Schedule* leads) {
    if (space_.seeds.size() >= kSeeds) return;
    for (size_t i = 0; i < shared_; ++i) shared.try_emplace(space_.axes[i].name, space_.axes[i].values[0]);
    Point point(space_.axes.size(), 0);
    for (size_t k = 0; k < own_.size(); ++k) {
      Schedule own;
      if (leads != nullptr && k == leader && legal_own(own_[k], *leads, shared, teams_)) {
        own = *leads;
      } else if (!follow(own_[k], shared, teams_, own)) {
        return;
      }
      for (const auto& [name, value] : own.knobs())
        if (!follows(own_[k], name, teams_) && !is_common(name, teams_))
          place(name_in_whole(static_cast<int>(k), name, teams_), value, point);
    }
    for (const auto& [name, value] : shared) place(name, value, point);
    if (!point.empty() && space_.is_legal(point) &&
        std::find(space_.seeds.begin(), space_.seeds.end(), point) == space_.seeds.end())
      space_.seeds.push_back(std::move(point));
  }

  void place(const std::string& name, int64_t value, Point& point) const { set_knob(space_, point, name, value); }

  // Every value of what is shared: the product of what each kind then has.
  uint64_t count() const {
    std::vector<std::map<Shared, uint64_t>> tallies;
    for (const Space& own : own_) {
      std::map<Shared, uint64_t>& tally = tallies.emplace_back();
      uint64_t visited = 0;
      own.enumerate([&](const Point& point) {
        ++tally[shared_of(own, own.schedule(point), teams_)];
        return ++visited < kMostCounted;
      });
    }
    uint64_t all = 0;
    std::vector<size_t> at(shared_, 0);
    for (bool more = true; more;) {
      Shared shared;
      for (size_t i = 0; i < shared_; ++i) shared[space_.axes[i].name] = space_.axes[i].values[at[i]];
      uint64_t product = 1;
      for (const std::map<Shared, uint64_t>& tally : tallies) {
        uint64_t mine = 0;
        for (const auto& [own, points] : tally) mine += agrees(own, shared) ? points : 0;
        product *= mine;
      }
      all += product;
      more = false;
      for (size_t i = shared_; i-- > 0 && !more;) {
        more = ++at[i] < space_.axes[i].values.size();
        if (!more) at[i] = 0;
      }
    }
    return all;
  }

  const bool teams_;
  std::vector<Space> own_;  // by kind
  size_t shared_ = 0;       // axes, which come first
  Space space_;
};

}  // namespace

Schedule member_schedule(const Space& space, int kind, const Schedule& whole, bool teams) {
  Schedule own = space.schedule(space.seeds[0]);
  for (const Axis& axis : space.axes)
    if (!follows(space, axis.name, teams))
      own.set(axis.name, whole.get(name_in_whole(kind, axis.name, teams), own[axis.name]));
  if (teams && is_tiled(space))
    own.set("rows_each", own["tile_rows"] * own["tile_columns"] / (whole["team"] * own["columns_each"]));
  return own;
}

Space space_packed(const Domain& domain, const Machine& machine) {
  return PackedSpace(*domain.packed, machine).take();
}

}  // namespace wl

// The search space of a packed group: the axes that all members share, then for each kind of member (members with equal
// graphs) its own axes, under the number of the kind.
#include <algorithm>
#include <map>

#include "compiler/schedule/axes.h"
#include "compiler/schedule/contract/contract.h"
#include "compiler/schedule/packed/packed.h"
#include "compiler/schedule/stitched/stitched.h"

namespace wl {
namespace {

constexpr size_t kSeeds = 8;                // the most seeds of a packed space
constexpr uint64_t kMostCounted = 200'000;  // the most points of one kind that count() looks at

// Whether an axis of the space of one kind of members is shared by all kinds. `teams`: whether the kernel is for a
// GPU.
bool is_common(const Axis& axis, bool teams) {
  return axis.path.empty() && info(*axis.choice).packed[teams ? 1 : 0] == InGroup::kShared;
}

// A packed group has groups of several kinds, each kind with a space of its own. Returns the axis of the packed group's
// space by which `axis` of the space of `kind` is chosen.
Axis in_whole(int kind, const Axis& axis, bool teams) {
  return is_common(axis, teams) ? axis : axis_in_part('m', kind, axis);
}

// is_tiled: whether the tiles of a kind decide how many threads its blocks have, as in a contraction. A packed kernel
// has one number of threads for all kinds, so one extent of a thread's tile is computed from that number and from the
// tile's other extents. follows: whether `axis` is the axis of the extent that is computed.
bool is_tiled(const Space& space) {
  return axis_of(space.axes, kTileRows) != nullptr && axis_of(space.axes, kThreadRows) != nullptr;
}
bool follows(const Space& space, const Axis& axis, bool teams) {
  return teams && axis.path.empty() && axis.choice == kThreadRows && is_tiled(space);
}

// Returns the values of the shared axes in a kind's schedule, without the axes that the kind lacks.
using SharedValues = std::map<Choice, int64_t>;
SharedValues shared_of(const Space& space, const Schedule& own, bool teams) {
  SharedValues shared;
  for (const Axis& axis : space.axes)
    if (is_common(axis, teams)) shared[*axis.choice] = own[*axis.choice];
  if (!teams) return shared;
  if (is_tiled(space)) shared[kTeam] = contract_threads(own);
  shared.try_emplace(kTeams, 1);
  return shared;
}

bool agrees(const SharedValues& a, const SharedValues& b) {
  return std::all_of(a.begin(), a.end(), [&](const auto& entry) {
    const auto other = b.find(entry.first);
    return other == b.end() || other->second == entry.second;
  });
}

// Whether a kind's own schedule is legal together with the given values of the shared axes. A schedule with copying
// waves is not legal, because all threads of a block must compute the block's member.
bool legal_own(const Space& space, const Schedule& own, const SharedValues& shared, bool teams) {
  if (own[kCopyingWaves] != 0) return false;
  for (const Axis& axis : space.axes)
    if (!has_value(axis, own.find(axis).value_or(kVaries))) return false;
  return agrees(shared_of(space, own, teams), shared) && space.admits(own) &&
         (!space.legal_point || space.legal_point(point_of(space, own)));
}

// Looks for a legal schedule of a kind under the given values of the shared axes, made from one of the kind's seeds.
// Stores the schedule in `found` and returns true, or returns false if there is none; `found` is then meaningless.
bool follow(const Space& space, const SharedValues& shared, bool teams, Schedule& found) {
  for (const Point& seed : space.seeds) {
    Schedule own = space.schedule(seed);
    for (const auto& [choice, value] : shared)
      if (axis_of(space.axes, choice) != nullptr) own.set(choice, value);
    found = own;
    if (legal_own(space, own, shared, teams)) return true;
    if (!teams || !is_tiled(space)) continue;
    for (int64_t tile_rows : values_of(space, kTileRows))
      for (int64_t tile_columns : values_of(space, kTileColumns))
        for (int64_t thread_columns : values_of(space, kThreadColumns)) {
          found.set(kTileRows, tile_rows);
          found.set(kTileColumns, tile_columns);
          found.set(kThreadColumns, thread_columns);
          found.set(kThreadRows, rows_of_tile(found) * columns_of_tile(found) / (shared.at(kTeam) * thread_columns));
          if (legal_own(space, found, shared, teams)) return true;
        }
  }
  return false;
}

class PackedSpace {
 public:
  PackedSpace(const Packed& packed, const Machine& machine) : teams_(machine.target->is_gpu()) {
    space_.kind = "packed";
    const Machine own = member_machine(machine);
    for (int kind = 0; kind < packed.kinds; ++kind) {
      const Member& member = packed.first_of(kind);
      absl::StatusOr<Space> space = space_of_connected(member.graph, member.domain, own);
      if (!space.ok()) {
        space_.first = [] { return Point(); };
        return;
      }
      space->keep_effects_of_part([this](Choice choice) { return info(choice).packed[teams_ ? 1 : 0]; });
      own_.push_back(*std::move(space));
    }
    axes(machine);
    seeds();
    space_.counted = [whole = *this] { return whole.count(); };
  }

  Space take() { return std::move(space_); }

 private:
  void axes(const Machine& machine) {
    const bool one_team =
        std::any_of(own_.begin(), own_.end(), [](const Space& own) { return axis_of(own.axes, kTeams) == nullptr; });
    std::vector<Axis> common;
    if (teams_ && std::any_of(own_.begin(), own_.end(), is_tiled))
      common.push_back(axis(kTeam, {256, 128, 512, 64, 32, 1024}));
    for (const Space& own : own_)
      for (const Axis& axis : own.axes) {
        if (!is_common(axis, teams_)) continue;
        if (axis_of(common, *axis.choice) == nullptr) common.push_back({*axis.choice, {}});
        Axis& to = *std::find_if(common.begin(), common.end(), [&](const Axis& a) { return a.choice == axis.choice; });
        for (int64_t value : axis.values)
          if (!has_value(to, value)) to.values.push_back(value);
      }
    std::erase_if(common, [&](const Axis& axis) { return one_team && axis.choice == kTeams; });
    if (teams_ && one_team) common.push_back({kTeams, {1}});
    if (!teams_ && axis_of(common, kThreads) == nullptr) common.push_back(threads_axis(machine));
    space_.axes = std::move(common);
    shared_ = space_.axes.size();
    for (size_t k = 0; k < own_.size(); ++k) {
      const int kind = static_cast<int>(k);
      auto part = own_[k].parts.begin();
      for (size_t i = 0; i < own_[k].axes.size(); ++i) {
        const Axis& axis = own_[k].axes[i];
        if (!is_common(axis, teams_) && !follows(own_[k], axis, teams_))
          space_.axes.push_back(in_whole(kind, axis, teams_));
        for (; part != own_[k].parts.end() && part->end == i + 1; ++part)
          space_.parts.push_back(
              {space_.axes.size(), [own = own_[k], kind, teams = teams_, legal = part->legal](const Schedule& whole) {
                 return legal(member_schedule(own, kind, whole, teams));
               }});
      }
      space_.parts.push_back({space_.axes.size(), [own = own_[k], kind, teams = teams_,
                                                   common = choices_of_shared()](const Schedule& whole) {
                                SharedValues shared;
                                for (const Choice choice : common) shared[choice] = whole[choice];
                                return legal_own(own, member_schedule(own, kind, whole, teams), shared, teams);
                              }});
    }
    space_.legal = [parts = space_.parts](const Schedule& whole) {
      return std::all_of(parts.begin(), parts.end(), [&](const Space::Part& part) { return part.legal(whole); });
    };
  }

  std::vector<Choice> choices_of_shared() const {
    std::vector<Choice> out;
    for (size_t i = 0; i < shared_; ++i) out.push_back(*space_.axes[i].choice);
    return out;
  }

  // Adds seeds. Their shared axes have the values of a seed of one kind (the leader), or only a number of threads if
  // there is no leader. The other kinds get schedules that are legal under these values.
  void seeds() {
    for (size_t i = 0; i < kSeeds; ++i)
      for (size_t leader = 0; leader < own_.size(); ++leader)
        if (i < own_[leader].seeds.size()) {
          const Schedule own = own_[leader].schedule(own_[leader].seeds[i]);
          add_seed(shared_of(own_[leader], own, teams_), leader, &own);
        }
    for (int64_t threads : {256, 128, 512, 64, 32})
      if (teams_) add_seed({{kTeam, threads}, {kTeams, 1}}, 0, nullptr);
    if (!teams_) add_seed({{kThreads, values_of(space_, kThreads)[0]}}, 0, nullptr);
  }

  // Adds a seed with these values of the shared axes, in which the leader has the schedule `leads` (null: the seed has
  // no leader). Adds nothing if some kind has no legal schedule under these values.
  void add_seed(SharedValues shared, size_t leader, const Schedule* leads) {
    if (space_.seeds.size() >= kSeeds) return;
    for (size_t i = 0; i < shared_; ++i) shared.try_emplace(*space_.axes[i].choice, space_.axes[i].values[0]);
    Point point(space_.axes.size(), 0);
    for (size_t k = 0; k < own_.size(); ++k) {
      Schedule own;
      if (leads != nullptr && k == leader && legal_own(own_[k], *leads, shared, teams_)) {
        own = *leads;
      } else if (!follow(own_[k], shared, teams_, own)) {
        return;
      }
      for (const Axis& axis : own_[k].axes)
        if (!follows(own_[k], axis, teams_) && !is_common(axis, teams_))
          set_value(space_, point, axis_named(space_.axes, in_whole(static_cast<int>(k), axis, teams_).name),
                    own.find(axis).value_or(kVaries));
    }
    for (const auto& [choice, value] : shared) set_choice(space_, point, choice, value);
    if (!point.empty() && space_.is_legal(point) &&
        std::find(space_.seeds.begin(), space_.seeds.end(), point) == space_.seeds.end())
      space_.seeds.push_back(std::move(point));
  }

  // Returns the number of legal points: the sum, over all values of the shared axes, of the product of the kinds'
  // numbers of legal schedules; nullopt: some kind has too many points to count.
  std::optional<uint64_t> count() const {
    std::vector<std::map<SharedValues, uint64_t>> tallies;
    for (const Space& own : own_) {
      std::map<SharedValues, uint64_t>& tally = tallies.emplace_back();
      const auto add = [&](const Point& point) { return ++tally[shared_of(own, own.schedule(point), teams_)] > 0; };
      if (!own.enumerate(add, kMostCounted)) return std::nullopt;
    }
    uint64_t all = 0;
    std::vector<size_t> at(shared_, 0);
    for (bool more = true; more;) {
      SharedValues shared;
      for (size_t i = 0; i < shared_; ++i) shared[*space_.axes[i].choice] = space_.axes[i].values[at[i]];
      uint64_t product = 1;
      for (const std::map<SharedValues, uint64_t>& tally : tallies) {
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
  std::vector<Space> own_;  // the space of each kind of member
  size_t shared_ = 0;       // number of axes that all kinds share, which come first
  Space space_;
};

}  // namespace

Schedule member_schedule(const Space& space, int kind, const Schedule& whole, bool teams) {
  Schedule own = space.schedule(space.seeds[0]);
  for (const Axis& axis : space.axes) {
    if (follows(space, axis, teams)) continue;
    const Schedule& from = is_common(axis, teams) ? whole : whole.part(kind);
    if (const std::optional<int64_t> value = from.find(axis)) own.set(axis, *value);
  }
  if (teams && is_tiled(space))
    own.set(kThreadRows, rows_of_tile(own) * columns_of_tile(own) / (whole[kTeam] * own[kThreadColumns]));
  return own;
}

Space space_packed(const Domain& domain, const Machine& machine) {
  return PackedSpace(*domain.packed, machine).take();
}

}  // namespace wl

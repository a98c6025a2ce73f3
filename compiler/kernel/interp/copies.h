// The asynchronous copies that an interpreted kernel has started and that have not arrived. The elements that they
// write hold NaN until a team has waited for the copies, either for their commit group or for a phase.
#pragma once

#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "compiler/kernel/interp/number.h"
#include "compiler/kernel/kernel.h"

namespace wl {

class PendingCopies {
 public:
  explicit PendingCopies(size_t teams) : groups_(teams, std::vector<Group>(1)) {}

  // Starts a copy of `value` to the buffer element `to`, which must stay valid until the copy has arrived.
  void start(size_t team, Number* to, Number value) {
    *to = std::numeric_limits<Number>::quiet_NaN();
    groups_[team].back().emplace_back(to, value);
  }
  void commit(size_t team) { groups_[team].emplace_back(); }
  void wait(size_t team, int pending) {
    std::vector<Group>& groups = groups_[team];
    while (static_cast<int>(groups.size()) - 1 > pending) {
      land(groups.front());
      groups.erase(groups.begin());
    }
  }
  // Lets the copies in the team's open group arrive at a phase. Their values reach their destinations when a team
  // awaits that phase.
  void arrive(size_t team, BufferId phases, int64_t element) {
    Group& open = groups_[team].back();
    Group& there = arrived_[{phases, element}];
    there.insert(there.end(), open.begin(), open.end());
    open.clear();
  }
  void await(BufferId phases, int64_t element) {
    Group& there = arrived_[{phases, element}];
    land(there);
    there.clear();
  }

 private:
  using Group = std::vector<std::pair<Number*, Number>>;  // pairs (element of a shared buffer, its new value)

  static void land(const Group& group) {
    for (const auto& [to, value] : group) *to = value;
  }

  std::vector<std::vector<Group>> groups_;  // for each team, its commit groups; the last group is still open
  std::map<std::pair<BufferId, int64_t>, Group> arrived_;
};

}  // namespace wl

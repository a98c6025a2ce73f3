#include "server/jobs/wanted.h"

#include <algorithm>
#include <vector>

namespace wl {
namespace {

// At most this many kernels of the last cover are timed for the comparison of the report, or those of one group.
constexpr size_t kCompared = 8;

class Wanting {
 public:
  Wanting(const JobPlan& plan, const Records& records, const std::set<std::string>& without, const Wish& wish)
      : plan_(plan), records_(records), without_(without), promising_(wish.promising), trials_(wish.trials) {}

  // Adds the kernels of the last cover.
  void add_last_cover() {
    for (const PlannedLaunch& launch : plan_.levels.back().launches) want(launch.group, 1);
  }

  // The result if nothing is compared.
  std::map<int, int64_t> only_answer() {
    for (int launch = 0; launch < static_cast<int>(plan_.levels[0].launches.size()); ++launch) answer({0, launch});
    return wanted_;
  }

  std::map<int, int64_t> run() {
    const std::vector<PlannedLaunch>& launches = plan_.levels[0].launches;
    bool pending = false;
    for (size_t i = 0; i < launches.size(); ++i) {
      const int group = launches[i].group;
      want(group, trials_);
      const bool is_without = without_.contains(plan_.groups[group].key);
      if (is_without) consider({0, static_cast<int>(i)});
      pending |= record_of(group) == nullptr && !is_without;
    }
    if (pending) return wanted_;
    for (size_t i = 0; i < launches.size(); ++i) consider({0, static_cast<int>(i)});
    compare();
    return wanted_;
  }

 private:
  const PlannedLaunch& launch_of(Chosen at) const { return plan_.levels[at.level].launches[at.launch]; }

  const KernelRecord* record_of(int group) const {
    const auto found = records_.find(plan_.groups[group].key);
    return found == records_.end() ? nullptr : &found->second;
  }

  void want(int group, int64_t trials) {
    const PlannedGroup& planned = plan_.groups[group];
    int64_t& known = wanted_[group];
    known = std::max(known, planned.searched() ? trials : 1);
  }

  // Adds what computes a launch: its group if a search of it or a plan that promises much is known, or if nothing less
  // fused is left but one kernel per operation; otherwise its parts. Default schedules of less fused groups are the
  // safer guess.
  void answer(Chosen at) {
    const int own = launch_of(at).group;
    const KernelRecord* record = record_of(own);
    const bool is_last = at.level + 1 == static_cast<int>(plan_.levels.size());
    const bool may_split =
        !is_last && !plan_.levels[at.level].parts_of[at.launch].empty() &&
        (at.level + 2 < static_cast<int>(plan_.levels.size()) || without_.contains(plan_.groups[own].key));
    const bool promises = promising_.contains(plan_.groups[own].key) && !without_.contains(plan_.groups[own].key);
    if (!may_split || promises || (record != nullptr && record->trials_asked > 1)) return want(own, trials_);
    for (int part : plan_.levels[at.level].parts_of[at.launch]) answer({at.level + 1, part});
  }

  // Adds the parts of a launch that may replace it, and parts of these.
  void consider(Chosen at) {
    const int last = static_cast<int>(plan_.levels.size()) - 1;
    if (at.level == last) return;
    const std::vector<int>& parts = plan_.levels[at.level].parts_of[at.launch];
    const int own = launch_of(at).group;
    const KernelRecord* record = record_of(own);
    const bool same = parts.size() == 1 && launch_of({at.level + 1, parts[0]}).group == own;
    if (!same && record == nullptr) {
      if (!without_.contains(plan_.groups[own].key)) return;  // its search is not over yet
      for (int part : parts) want(launch_of({at.level + 1, part}).group, trials_);
    } else if (!same) {
      if (at.level + 1 == last || !weigh(at, *record, parts)) return;
    }
    for (int part : parts) consider({at.level + 1, part});
  }

  // Adds the parts if they may be faster than the launch that they would replace, and returns whether they may.
  bool weigh(Chosen at, const KernelRecord& record, const std::vector<int>& parts) {
    double modelled = 0, measured = 0;
    bool all = true;
    for (int part : parts) {
      const int group = launch_of({at.level + 1, part}).group;
      modelled += plan_.groups[group].model_ns;
      const KernelRecord* known = record_of(group);
      all &= known != nullptr;
      if (known != nullptr) measured += undisturbed_ns(known->default_samples_ns);
    }
    if (modelled > kModelErrs * plan_.groups[launch_of(at).group].model_ns) return false;
    const bool faster = all && measured < undisturbed_ns(record.default_samples_ns);
    for (int part : parts) want(launch_of({at.level + 1, part}).group, faster ? trials_ : 1);
    return true;
  }

  // Returns the groups that the last cover runs in place of a launch.
  void add_last(Chosen at, std::set<int>* groups) const {
    if (at.level + 1 == static_cast<int>(plan_.levels.size())) {
      groups->insert(launch_of(at).group);
      return;
    }
    for (int part : plan_.levels[at.level].parts_of[at.launch]) add_last({at.level + 1, part}, groups);
  }

  // Adds the kernels of the last cover that are compared with the groups that take most time.
  void compare() {
    std::map<int, double> time_of;   // time in ns of all launches of each group of the first cover
    std::map<int, int> launch_with;  // one of the launches of each group
    const std::vector<PlannedLaunch>& launches = plan_.levels[0].launches;
    for (size_t i = 0; i < launches.size(); ++i) {
      const KernelRecord* record = record_of(launches[i].group);
      time_of[launches[i].group] += record == nullptr ? 0 : undisturbed_ns(record->samples_ns);
      launch_with[launches[i].group] = static_cast<int>(i);
    }
    std::vector<std::pair<double, int>> order;
    for (const auto& [group, ns] : time_of) order.emplace_back(-ns, group);
    std::sort(order.begin(), order.end());
    std::set<int> compared;
    for (const auto& [ns, group] : order) {
      std::set<int> more = compared;
      add_last({0, launch_with[group]}, &more);
      if (!compared.empty() && more.size() > kCompared) break;
      compared = std::move(more);
    }
    for (int group : compared) want(group, 1);
  }

  const JobPlan& plan_;
  const Records& records_;
  const std::set<std::string>&without_, &promising_;
  const int64_t trials_;
  std::map<int, int64_t> wanted_;
};

}  // namespace

std::map<int, int64_t> wanted_trials(const JobPlan& plan, const Records& records, const std::set<std::string>& without,
                                     const Wish& wish) {
  Wanting wanting(plan, records, without, wish);
  if (wish.last_cover) wanting.add_last_cover();
  return wish.compares ? wanting.run() : wanting.only_answer();
}

double modelled_ns(const JobPlan& plan) {
  double sum = 0;
  for (const PlannedLaunch& launch : plan.levels[0].launches) {
    if (!(plan.groups[launch.group].model_ns > 0)) return 0;
    sum += plan.groups[launch.group].model_ns;
  }
  return sum;
}

}  // namespace wl

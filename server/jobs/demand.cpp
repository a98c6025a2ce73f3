#include "server/jobs/demand.h"

#include <algorithm>

#include "compiler/base/status.h"

namespace wl {
namespace {

constexpr double kUsualGuess = 0.3;  // usual_saving() if no kernel was searched
// A kernel counts as searched if it had at least this many trials. What a search still finds after n trials is
// kSearched / (kSearched + n) of what it finds in all.
constexpr double kSearched = 8;
constexpr double kTrialNs = 0.5e9;  // device time in ns that a trial takes, compilation included
constexpr double kMonth = 30;       // days in which a search has to save as much time as it takes

// The number of trials of the first search, by how much every further one multiplies the number, and the largest
// number.
constexpr int64_t kFirstTrials = 8, kMoreTrials = 4, kMostTrials = 128;

// Returns the share of the default schedule's time that the kernel's search saved; nullopt: it was not searched.
std::optional<double> saving_of(const Demand& kernel) {
  if (static_cast<double>(kernel.trials) < kSearched || !(kernel.default_ns > 0) || !(kernel.best_ns > 0))
    return std::nullopt;
  return std::max(0.0, 1 - kernel.best_ns / kernel.default_ns);
}

struct Worth {
  double saved_ns = 0;  // expected saving in ns in a day
  double cost_ns = 0;
  double each() const { return saved_ns / cost_ns; }
  bool pays() const { return kMonth * saved_ns > cost_ns; }
};

Worth worth_of(const Demand& kernel, double usual) {
  const auto trials =
      static_cast<double>(std::max<int64_t>(1, next_trials(kernel) - std::max<int64_t>(0, kernel.trials)));
  return {kernel.ns_per_day * expected_share(kernel, usual), trials * kTrialNs};
}

}  // namespace

double ns_of(const KernelUse& use, double best_ns) {
  return use.ns > 0 ? static_cast<double>(use.ns) : static_cast<double>(use.calls) * best_ns;
}

double per_day(double sum, int64_t first_day, int64_t today) {
  return sum / static_cast<double>(std::max<int64_t>(1, today - first_day + 1));
}

double usual_saving(const std::vector<Demand>& kernels) {
  std::vector<double> savings;
  for (const Demand& kernel : kernels)
    if (const auto saving = saving_of(kernel)) savings.push_back(*saving);
  if (savings.empty()) return kUsualGuess;
  const auto middle = savings.begin() + static_cast<std::ptrdiff_t>(savings.size() / 2);
  std::nth_element(savings.begin(), middle, savings.end());
  return *middle;
}

int64_t next_trials(const Demand& kernel) {
  return std::clamp(kMoreTrials * std::clamp<int64_t>(kernel.trials, 0, kMostTrials), kFirstTrials, kMostTrials);
}

double expected_share(const Demand& kernel, double usual) {
  if (kernel.trials >= kMostTrials) return 0;
  const double done = static_cast<double>(std::max<int64_t>(0, kernel.trials - 1));
  const double saved = saving_of(kernel).value_or(usual);
  const double share = saved * kSearched / (kSearched + done);
  if (!(kernel.best_ns > 0)) return share;
  return std::clamp(1 - kernel.bound_ns / kernel.best_ns, 0.0, share);
}

std::string why_not_searched(const Demand& kernel, double usual) {
  if (kernel.trials >= kMostTrials) return cat("it had ", kMostTrials, " trials, the most that a kernel is given");
  if (kernel.best_ns > 0 && kernel.bound_ns >= kernel.best_ns)
    return "it is at its bound: by the machine's peak rates none can be faster";
  if (!(expected_share(kernel, usual) > 0)) {
    return saving_of(kernel) ? "its search found nothing faster than the default schedule"
                             : "searches of other kernels found nothing faster than their default schedules";
  }
  return worth_of(kernel, usual).pays() ? "" : "a search would take longer than it saves in a month";
}

std::optional<size_t> worth_most(const std::vector<Demand>& kernels, const std::map<std::string, double>& given,
                                 const std::map<std::string, double>& weights) {
  const double usual = usual_saving(kernels);
  std::map<std::string, size_t> best;  // for each team, the kernel that is worth most
  for (size_t i = 0; i < kernels.size(); ++i) {
    const Worth worth = worth_of(kernels[i], usual);
    if (!worth.pays()) continue;
    const auto [at, is_new] = best.try_emplace(kernels[i].team, i);
    if (!is_new && worth.each() > worth_of(kernels[at->second], usual).each()) at->second = i;
  }
  const auto turn = [&](const std::string& team) {
    const auto weight = weights.find(team);
    const auto trials = given.find(team);
    return (trials == given.end() ? 0 : trials->second) / (weight == weights.end() ? 1 : weight->second);
  };
  std::optional<size_t> next;
  for (const auto& [team, index] : best) {
    const auto weight = weights.find(team);
    if (weight != weights.end() && !(weight->second > 0)) continue;
    if (!next || turn(team) < turn(kernels[*next].team)) next = index;
  }
  return next;
}

}  // namespace wl

#include "server/jobs/usage.h"

#include <algorithm>
#include <numeric>

namespace wl {
namespace {

// The largest count that a sum of calls shows, far above any that a client can report in a week.
constexpr int64_t kMostCalls = INT64_MAX / 4;

void add(UseSum& sum, const UsedKernel& kernel) {
  const auto at = static_cast<size_t>(kernel.kind);
  sum.ns[at] += ns_of(kernel.use, kernel.demand.best_ns);
  sum.calls[at] = std::min(kMostCalls, sum.calls[at]) + std::min(kMostCalls, kernel.use.calls);
}

// What the launches of a kernel would have taken longer with the default schedule, in ns.
double saved_by(const UsedKernel& kernel) {
  const Demand& demand = kernel.demand;
  if (!(demand.best_ns > 0) || !(demand.default_ns > demand.best_ns)) return 0;
  return static_cast<double>(kernel.use.calls) * (demand.default_ns - demand.best_ns);
}

// Returns the shares of most time. `more`: how many others there are.
std::vector<UsageShare> most_time(const std::map<std::string, UseSum>& sums, int64_t* more) {
  std::vector<UsageShare> shares;
  for (const auto& [name, sum] : sums) shares.push_back({name, sum});
  std::stable_sort(shares.begin(), shares.end(),
                   [](const UsageShare& a, const UsageShare& b) { return a.sum.all_ns() > b.sum.all_ns(); });
  if (shares.size() > kMostShares) {
    *more = static_cast<int64_t>(shares.size()) - kMostShares;
    shares.resize(kMostShares);
  }
  return shares;
}

KernelUsage usage_of_kernel(const UsedKernel& kernel, double usual) {
  const Demand& demand = kernel.demand;
  KernelUsage out;
  out.key = demand.key;
  out.digest = kernel.digest;
  out.name = kernel.name;
  out.team = demand.team;
  out.target = kernel.target;
  out.device = kernel.device;
  out.model = kernel.model;
  out.kind = kernel.kind;
  out.calls_per_day = kernel.calls_per_day;
  out.ns_per_day = demand.ns_per_day;
  out.best_ns = demand.best_ns;
  out.default_ns = demand.default_ns;
  out.bound_ns = demand.bound_ns;
  out.saving_per_day = demand.ns_per_day * expected_share(demand, usual);
  out.trials = demand.trials;
  out.stopped = why_not_searched(demand, usual);
  if (out.stopped.empty()) out.stopped = kernel.stopped;
  return out;
}

// Fills the list of kernels: those of the largest expected saving first, and of those without one, those of most time.
void list_kernels(const std::vector<const UsedKernel*>& kernels, size_t most, Usage* out) {
  std::vector<Demand> demands;
  demands.reserve(kernels.size());
  for (const UsedKernel* kernel : kernels) demands.push_back(kernel->demand);
  const double usual = usual_saving(demands);
  std::vector<double> savings;
  savings.reserve(kernels.size());
  for (const Demand& demand : demands) savings.push_back(demand.ns_per_day * expected_share(demand, usual));
  std::vector<size_t> order(kernels.size());
  std::iota(order.begin(), order.end(), 0);
  const auto shown = order.begin() + static_cast<std::ptrdiff_t>(std::min(most, order.size()));
  std::partial_sort(order.begin(), shown, order.end(), [&](size_t a, size_t b) {
    if (savings[a] != savings[b]) return savings[a] > savings[b];
    if (demands[a].ns_per_day != demands[b].ns_per_day) return demands[a].ns_per_day > demands[b].ns_per_day;
    return a < b;
  });
  for (auto at = order.begin(); at != shown; ++at) out->kernels.push_back(usage_of_kernel(*kernels[*at], usual));
}

}  // namespace

UseKind kind_of(const KernelRecord& record) {
  const int64_t tried = std::accumulate(record.outcomes.begin(), record.outcomes.end(), int64_t{0});
  if (record.trials_asked > 1 && tried > 1) return UseKind::kTuned;
  return record.plan == record.default_plan ? UseKind::kDefault : UseKind::kPredicted;
}

std::string why_missed(const std::string& message, const MissedFacts& facts) {
  if (facts.groups == 0) return message;
  if (facts.now.empty()) return cat(message, "; by now all ", facts.groups, " are");
  std::string out = cat(message, "; still missing: ", facts.now.size(), " of ", facts.groups, ", ", facts.now[0]);
  if (facts.now.size() > 1) out += " and others";
  if (!facts.devices.empty()) {
    out += "; records of the same kernels exist for other devices: ";
    size_t listed = 0;
    for (const std::string& device : facts.devices) {
      if (listed == 3) break;
      append(&out, listed++ == 0 ? "" : ", ", device);
    }
    if (facts.devices.size() > listed) append(&out, " and ", facts.devices.size() - listed, " more");
  }
  if (facts.other_sizes > 0)
    append(&out, "; of the same operations with other sizes the store has ", facts.other_sizes,
           facts.other_sizes == 1 ? " record" : " records");
  if (facts.devices.empty() && facts.other_sizes == 0) out += "; nothing like it was tuned";
  return out;
}

Usage usage_of(const UsageFacts& facts, const std::optional<std::string>& team, size_t most) {
  const auto seen = [&](const std::string& of) { return !team || *team == of; };
  Usage out;
  out.background = facts.background;
  std::map<std::string, TeamUsage> teams;
  std::map<std::string, UseSum> devices, models;
  std::vector<const UsedKernel*> kernels;
  for (const UsedKernel& kernel : facts.kernels) {
    if (!seen(kernel.demand.team)) continue;
    kernels.push_back(&kernel);
    out.days = std::max(out.days, facts.today - kernel.first_day + 1);
    TeamUsage& own = teams[kernel.demand.team];
    add(out.total, kernel);
    add(own.sum, kernel);
    add(devices[kernel.device.empty() ? kernel.target : cat(kernel.device, " (", kernel.target, ")")], kernel);
    add(models[kernel.model], kernel);
    own.saved_ns += saved_by(kernel);
    out.saved_ns += saved_by(kernel);
  }
  for (const auto& [name, cost] : facts.costs) {
    if (!seen(name)) continue;
    teams[name].cost_s = cost.seconds;
    teams[name].trials = cost.trials;
    out.cost_s += cost.seconds;
    out.trials += cost.trials;
  }
  for (const auto& [name, counts] : facts.missed_all) {
    if (!seen(name)) continue;
    out.missed_in_all += counts.first;
    teams[name].missed = counts.second;
  }
  for (const auto& [name, count] : facts.left_out) out.left_out += seen(name) ? count : 0;
  for (const MissedUsage& missed : facts.missed)
    if (seen(missed.team) && out.missed.size() < most) out.missed.push_back(missed);
  out.kernels_in_all = static_cast<int64_t>(kernels.size());
  list_kernels(kernels, most, &out);
  std::map<std::string, UseSum> sums;
  for (auto& [name, usage] : teams) {
    usage.team = name;
    sums[name] = usage.sum;
  }
  for (const UsageShare& share : most_time(sums, &out.more_teams)) out.teams.push_back(teams[share.name]);
  out.devices = most_time(devices, &out.more_devices);
  out.models = most_time(models, &out.more_models);
  return out;
}

}  // namespace wl

// Graphs that clients asked for in vain, and what the store has instead of their kernels.
#include "compiler/base/names.h"
#include "compiler/ir/text.h"
#include "compiler/search/nearest.h"
#include "server/engine/devices.h"
#include "server/engine/impl.h"

namespace wl {
namespace {

constexpr int kMostListed = 50;  // number of graphs of each team, those asked for most often, that are listed
constexpr auto kMissedEvery = std::chrono::minutes(1);
constexpr auto kPlanTime = std::chrono::milliseconds(500);  // time in all for planning graphs in one look
constexpr size_t kMostPlanned = 32 << 10;                   // bytes of a graph's text: longer ones are not planned
constexpr size_t kMostPlans = 1024, kMostGroupsLooked = 64;
constexpr int kMostCompared = 2000;  // number of the newest records that graphs are compared with

// Returns the name of a job's plan among those that are kept: what was asked, and the device for which.
std::string plan_name(const JobRow& job) {
  return cat(job.body_hash, " ", job.device->fingerprint(), " ", environment_of(*job.device));
}

// What the store has, for comparisons with what it lacks: teams and devices of records by the text of their graph, and
// numbers of records by kin and team.
struct Stored {
  std::map<std::string, std::vector<std::pair<std::string, Device>>> by_text;
  std::map<std::string, std::map<std::string, int64_t>> by_kin;
};

absl::StatusOr<Stored> stored_now(Store& store) {
  Stored out;
  WL_ASSIGN_OR_RETURN(const auto records, store.list_records({}, kMostCompared, {.every = true}));
  for (const RecordRow& row : records) {
    out.by_text[row.record.graph].emplace_back(row.team, row.record.device);
    ++out.by_kin[kin_of(row.record.graph)][row.team];
  }
  return out;
}

// Returns why a job for these groups found nothing. Only what the job's team may see is looked at.
absl::StatusOr<std::string> why_missed_now(Store& store, const JobRow& job, const std::vector<MissedGroup>& groups,
                                           const Stored& stored) {
  const auto is_seen = [&](const std::string& team) { return team.empty() || team == job.team; };
  MissedFacts facts;
  for (const MissedGroup& group : groups) {
    ++facts.groups;
    WL_ASSIGN_OR_RETURN(
        const auto record,
        store.record_message(
            {.key = group.key, .environment = environment_of(*job.device), .digest = {}, .reader = {.team = job.team}},
            false));
    if (record) continue;
    facts.now.push_back(group.name);
    if (const auto alike = stored.by_kin.find(group.kin); alike != stored.by_kin.end())
      for (const auto& [team, count] : alike->second) facts.other_sizes += is_seen(team) ? count : 0;
    const auto same = stored.by_text.find(group.text);
    if (same == stored.by_text.end()) continue;
    for (const auto& [team, device] : same->second) {
      if (!is_seen(team)) continue;
      --facts.other_sizes;
      if (!serves(device, *job.device))
        facts.devices.insert(cat(device.name.empty() ? "unnamed" : device.name, " (", device.target, ")"));
    }
  }
  return why_missed(std::string(job.error.message()), facts);
}

}  // namespace

absl::Status Engine::Impl::look_for_missed() {
  if (Clock::now() < usage.next_missed) return absl::OkStatus();
  WL_ASSIGN_OR_RETURN(const MissedGraphs found,
                      store->missed_graphs(unix_ms_now() - kUseDays * 86'400'000, kMostListed));
  usage.missed_all = found.all;
  usage.missed.clear();
  Stored stored;
  if (!found.graphs.empty()) {
    WL_ASSIGN_OR_RETURN(stored, stored_now(*store));
  }
  if (usage.plans.size() > kMostPlans) usage.plans.clear();
  const auto end = Clock::now() + kPlanTime;
  bool whole = true;  // whether the next graph has all of the time
  for (const MissedJobs& each : found.graphs) {
    if (loop.leaving()) return absl::CancelledError("the coordinator stops");
    WL_ASSIGN_OR_RETURN(const auto job, store->job(each.last_job));
    if (!job) continue;
    if (job->device && job->graph.size() <= kMostPlanned && !usage.plans.contains(plan_name(*job)) &&
        Clock::now() < end) {
      Work work(waiting_for(job->options, end, loop, {}));
      const absl::StatusOr<JobPlan> plan = timed_plan(*job, job->options, *compiler, {}, &work);
      // A graph that began late has all of the time at a later look.
      if (std::exchange(whole, false) || !absl::IsDeadlineExceeded(plan.status())) usage.plans[plan_name(*job)];
      if (plan.ok())
        for (std::vector<MissedGroup>& groups = usage.plans[plan_name(*job)]; const PlannedGroup& group : plan->groups)
          if (group.fused_count > 0 && groups.size() < kMostGroupsLooked)
            groups.push_back({group.key, group.name, group.text, group.kin});
    }
    const auto plan = job->device ? usage.plans.find(plan_name(*job)) : usage.plans.end();
    std::string why(job->error.message());
    if (plan != usage.plans.end()) {
      WL_ASSIGN_OR_RETURN(why, why_missed_now(*store, *job, plan->second, stored));
    }
    usage.missed.push_back({.team = each.team,
                            .model = job->label,
                            .target = job->device ? job->device->target : job->options.target,
                            .device = job->device ? job->device->name : "",
                            .count = each.count,
                            .last_unix_ms = each.last_ms,
                            .job = job_name(each.last_job),
                            .why = std::move(why)});
  }
  usage.next_missed = Clock::now() + kMissedEvery;
  return absl::OkStatus();
}

}  // namespace wl

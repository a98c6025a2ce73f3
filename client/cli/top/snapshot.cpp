#include "client/cli/top/snapshot.h"

#include <algorithm>
#include <chrono>

#include "client/program/json.h"
#include "client/remote/report.h"
#include "proto/usage.h"

namespace wl {
namespace {

constexpr int kMostOpen = 1000, kNewest = 20;
constexpr int64_t kSpanMs = 10'000;
constexpr int64_t kUsageMs = 10'000;  // the coordinator makes new sums as often
constexpr int kUsageRows = 50;

int64_t unix_ms_now() {
  using std::chrono::milliseconds;
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

double rate_of(const std::map<std::string, double>& rates, const std::string& job) {
  const auto found = rates.find(job);
  return found == rates.end() ? 0 : found->second;
}

Json job_json(const Job& job, const Rates& rates) {
  return {{"name", job.name},
          {"state", kJobStateNames[static_cast<int>(job.state)]},
          {"label", job.label},
          {"target", job.options.target},
          {"phase", job.progress.phase},
          {"trials_done", job.progress.trials_done},
          {"trials_total", job.progress.trials_total},
          {"trials_per_s", rate_of(rates, job.name)},
          {"elapsed_s", job.progress.elapsed_s},
          {"left_s", job.progress.left_s},
          {"workers", job.progress.workers},
          {"trace", job.trace}};
}

Json worker_json(const WorkerSummary& worker) {
  Json json = {{"name", worker.name},
               {"alive", worker.alive},
               {"last_seen_unix_ms", worker.last_seen_unix_ms},
               {"leases", worker.leases},
               {"doing", Json::array()}};
  for (const LeaseSummary& lease : worker.doing) {
    json["doing"].push_back({{"target", lease.target},
                             {"step", lease.step},
                             {"purpose", purpose_text(lease.phase)},
                             {"candidates", lease.candidates},
                             {"seconds", lease.seconds}});
  }
  return json;
}

Json usage_json(const Usage& usage) {
  Json json = {{"days", usage.days},     {"time", json_of(usage.total)}, {"saved_s", usage.saved_ns / 1e9},
               {"cost_s", usage.cost_s}, {"trials", usage.trials},       {"background", usage.background},
               {"teams", Json::array()}, {"kernels", Json::array()},     {"missed", Json::array()}};
  for (const TeamUsage& team : usage.teams)
    json["teams"].push_back({{"team", team.team},
                             {"time", json_of(team.sum)},
                             {"saved_s", team.saved_ns / 1e9},
                             {"cost_s", team.cost_s},
                             {"missed", team.missed}});
  for (const KernelUsage& kernel : usage.kernels) json["kernels"].push_back(json_of(kernel));
  for (const MissedUsage& missed : usage.missed) json["missed"].push_back(json_of(missed));
  return json;
}

}  // namespace

absl::StatusOr<Snapshot> take_snapshot(Service& service, const std::string& server, const Snapshot& before) {
  Snapshot out;
  out.server = server;
  WL_ASSIGN_OR_RETURN(out.about, service.server());
  WL_ASSIGN_OR_RETURN(out.open, service.list_jobs(kMostOpen, /*unfinished=*/true));
  WL_ASSIGN_OR_RETURN(out.ended, service.list_jobs(kNewest));
  // A job that ended between the two calls of list_jobs() is in both lists, and is kept only in `ended`.
  std::erase_if(out.ended, [](const Job& job) { return !is_done(job.state); });
  std::erase_if(out.open, [&](const Job& job) {
    return std::any_of(out.ended.begin(), out.ended.end(), [&](const Job& ended) { return ended.name == job.name; });
  });
  WL_ASSIGN_OR_RETURN(out.workers, service.list_workers());
  std::stable_partition(out.workers.begin(), out.workers.end(), [](const WorkerSummary& one) { return one.alive; });
  out.unix_ms = unix_ms_now();
  out.usage = before.usage;
  out.usage_unix_ms = before.usage_unix_ms;
  if (const int64_t age_ms = out.unix_ms - before.usage_unix_ms; age_ms < 0 || age_ms >= kUsageMs) {
    auto usage = service.usage(kUsageRows);
    if (!usage.ok() && !absl::IsUnimplemented(usage.status())) return usage.status();
    out.usage = usage.ok() ? std::optional(*std::move(usage)) : std::nullopt;
    out.usage_unix_ms = out.unix_ms;
  }
  return out;
}

Rates RateMeter::add(const Snapshot& snapshot) {
  // Drops samples that are too old, or whose time lies in the future because the clock was set back.
  while (!samples_.empty() &&
         (snapshot.unix_ms - samples_.front().unix_ms > kSpanMs || samples_.back().unix_ms > snapshot.unix_ms))
    samples_.pop_front();
  Rates rates;
  for (const Job& job : snapshot.open) {
    double trials = static_cast<double>(job.progress.trials_done), seconds = job.progress.elapsed_s;
    for (const Sample& sample : samples_) {
      const auto then = sample.trials.find(job.name);
      if (then == sample.trials.end() || sample.unix_ms >= snapshot.unix_ms) continue;
      trials -= static_cast<double>(then->second);
      seconds = static_cast<double>(snapshot.unix_ms - sample.unix_ms) / 1e3;
      break;
    }
    rates[job.name] = seconds > 0 ? std::max(0.0, trials / seconds) : 0;
  }
  Sample& added = samples_.emplace_back();
  added.unix_ms = snapshot.unix_ms;
  for (const Job& job : snapshot.open) added.trials[job.name] = job.progress.trials_done;
  return rates;
}

std::string purpose_text(int64_t phase) {
  if (phase <= 0) return "search";
  return confirms(phase) ? cat("confirmation of ", promotion_of(phase)) : cat("promotion ", phase);
}

std::string json_line(const Snapshot& snapshot, const Rates& rates) {
  Json json = {{"format", kReportFormat},
               {"unix_ms", snapshot.unix_ms},
               {"server", snapshot.server},
               {"version", snapshot.about.version},
               {"draining", snapshot.about.draining},
               {"groups_found", snapshot.about.groups_found},
               {"groups_missed", snapshot.about.groups_missed},
               {"saved_s", snapshot.about.saved_s},
               {"jobs", Json::array()},
               {"workers", Json::array()}};
  for (const auto* jobs : {&snapshot.open, &snapshot.ended})
    for (const Job& job : *jobs) json["jobs"].push_back(job_json(job, rates));
  for (const WorkerSummary& worker : snapshot.workers) json["workers"].push_back(worker_json(worker));
  json["usage"] = snapshot.usage ? usage_json(*snapshot.usage) : Json();
  return line_of(json);
}

std::string json_line(const std::string& server, const absl::Status& error) {
  return line_of({{"format", kReportFormat},
                  {"unix_ms", unix_ms_now()},
                  {"server", server},
                  {"error", std::string(error.message())}});
}

}  // namespace wl

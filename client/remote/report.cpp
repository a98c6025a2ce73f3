#include "client/remote/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "client/program/json.h"
#include "compiler/base/libraries.h"

namespace wl {
namespace {

Json outcomes_json(const OutcomeCounts& outcomes) {
  Json json = Json::object();
  for (int i = 0; i < kOutcomeCount; ++i) json[kOutcomeNames[i]] = outcomes[i];
  return json;
}

// Returns the sandbox in which the device's worker ran compilers and candidates.
std::string sandbox_of(const Device& device) {
  const std::string sandbox = device.detail(kSandboxDetail);
  return sandbox.empty() ? "unknown" : sandbox;
}

Json device_json(const Device& device) {
  return {{"cpu", device.name},          {"threads", device.threads},   {"l1_bytes", device.l1_bytes},
          {"l2_bytes", device.l2_bytes}, {"l3_bytes", device.l3_bytes}, {"sandbox", sandbox_of(device)}};
}

Json rates_json(const MeasuredRates& rates) {
  Json json = {{"gflops", rates.gflops}, {"memories", Json::array()}};
  for (const MeasuredRates::Memory& memory : rates.memories)
    json["memories"].push_back({{"name", memory.name}, {"bytes", memory.bytes}, {"gbps", memory.gbps}});
  return json;
}

Json covers_json(const std::vector<TimedCover>& covers) {
  Json json = Json::array();
  for (const TimedCover& cover : covers)
    json.push_back({{"name", cover.name},
                    {"kernels", cover.kernels},
                    {"bytes", cover.bytes},
                    {"kernels_ns", cover.kernels_ns},
                    {"least_ns", undisturbed_ns(cover.samples_ns)},
                    {"median_ns", median_of(cover.samples_ns)},
                    {"samples_ns", cover.samples_ns},
                    {"chosen", cover.chosen},
                    {"why", cover.why}});
  return json;
}

}  // namespace

std::set<std::string> cached_keys(const Job& job) {
  std::set<std::string> keys;
  for (const GroupProgress& group : job.progress.groups) {
    if (group.cached || job.cached) keys.insert(group.key);
  }
  return keys;
}

std::string source_of(const Job& job, const GroupResult& group, const std::set<std::string>& cached) {
  return job.cached || cached.contains(group.key) ? "cached" : group.source;
}

std::string report_json(const Job& job, const Bind& bind, const std::string& file, bool stable, bool trust_workers) {
  const JobResult& result = *job.result;
  std::set<std::string> cached = cached_keys(job);
  Json report;
  report["format"] = kReportFormat;
  report["input"] = Json::object();
  if (!stable) report["input"]["file"] = file;
  report["input"]["hash"] = result.graph_hash;
  report["input"]["bind"] = Json(bind);
  report["target"] = {
      {"name", result.device.target}, {"device", result.device.name}, {"fingerprint", result.device.fingerprint()}};
  report["groups"] = Json::array();
  for (const GroupResult& group : result.groups) {
    Json row;
    row["key"] = group.key;
    row["what"] = describe_group(group.graph);
    row["count"] = group.count;
    row["ops"] = group.ops;
    if (!stable) row["source"] = source_of(job, group, cached);
    row["kernels_default"] = group.kernels_default;
    row["kernels"] = group.kernels;
    row["bytes_default"] = group.bytes_default;
    row["bytes"] = group.bytes;
    row["flops"] = group.flops;
    row["default_ns"] = group.default_ns;
    row["default_estimated"] = group.default_estimated;
    row["best_ns"] = group.best_ns;
    row["samples_ns"] = group.samples_ns;
    row["trials"] = outcomes_json(group.trials);
    row["max_error"] = group.max_error;
    row["bound"] = group.bound;
    row["plan"] = group.plan;
    const Library* const library = library_of_plan(group.plan);
    row["library"] = library == nullptr ? "" : library->name;
    row["record"] = group.record_digest;
    row["measured_by"] = group.measured_by;
    row["confirmed_by"] = group.confirmed_by;
    row["built"] = group.built;
    report["groups"].push_back(std::move(row));
  }
  if (trust_workers) report["trust_workers"] = true;
  report["covers"] = covers_json(result.covers);
  Json& totals = report["totals"];
  totals = {{"kernels_default", result.kernels_default},
            {"kernels", result.kernels},
            {"bytes_default", result.bytes_default},
            {"bytes", result.bytes},
            {"default_ns", result.default_ns},
            {"default_estimated", result.default_estimated},
            {"best_ns", result.best_ns},
            {"whole_ns", result.whole_ns()},
            {"trials", result.trials},
            {"cover_rounds", result.cover_rounds},
            {"cover_certified", result.cover_certified},
            {"spread", spread_of(result)}};
  if (!stable) {
    totals["wall_s"] = {{"enumerate", result.enumerate_s},
                        {"compile", result.compile_s},
                        {"check", result.check_s},
                        {"measure", result.measure_s},
                        {"total", job.progress.elapsed_s}};
    report["job"] = {{"name", job.name},
                     {"state", kJobStateNames[static_cast<int>(job.state)]},
                     {"cached", job.cached},
                     {"trials_run", job.cached ? 0 : job.progress.trials_done},
                     {"trace", job.trace}};
  }
  report["environment"] = {{"warploom", result.warploom_version},
                           {"compiler", result.environment},
                           {"driver", ""},
                           {"host", device_json(result.device)}};
  if (result.rates.gflops > 0) report["environment"]["rates"] = rates_json(result.rates);
  return text_of(report);
}

std::string reports_json(const std::vector<SizedReport>& reports) {
  if (reports.size() == 1) return reports[0].report;
  Json json = {{"format", kReportFormat}, {"sizes", Json::array()}};
  for (const SizedReport& sized : reports) {
    json["sizes"].push_back({{"bind", Json(sized.bind)}, {"report", Json::parse(sized.report)}});
  }
  return text_of(json);
}

std::string record_json(const KernelRecord& record) {
  Json json = {{"format", kReportFormat},
               {"key", record.key},
               {"digest", record.digest},
               {"environment", record.environment},
               {"target", record.device.target},
               {"device", record.device.name},
               {"sandbox", sandbox_of(record.device)},
               {"what", describe_group(record.graph)},
               {"plan", record.plan},
               {"best_ns", median_of(record.samples_ns)},
               {"default_ns", median_of(record.default_samples_ns)},
               {"samples_ns", record.samples_ns},
               {"bytes", record.bytes},
               {"flops", record.flops},
               {"max_error", record.max_error},
               {"bound", record.bound},
               {"strategy", record.strategy},
               {"trials", outcomes_json(record.outcomes)}};
  json["graph"] = record.graph;
  json["object_sha256"] = record.object_sha256;
  json["check_seeds"] = record.check_seeds;
  json["measured_by"] = record.measured_by;
  json["confirmed_by"] = record.confirmed_by;
  json["built"] = !record.built_by.empty();
  json["source"] = {{"compiler", record.source.compiler},
                    {"entry", record.source.entry},
                    {"grid", record.source.grid},
                    {"threads", record.source.threads},
                    {"scratch_bytes", record.source.scratch_bytes},
                    {"passes", record.source.passes},
                    {"work_bytes", record.source.work_bytes},
                    {"text", record.source.text}};
  return text_of(json);
}

std::string time_text(double ns) {
  if (!(ns > 0)) return "-";
  if (ns < 1e3) return absl::StrFormat("%.0f ns", ns);
  if (ns < 1e6) return absl::StrFormat("%.3g us", ns / 1e3);
  if (ns < 1e9) return absl::StrFormat("%.3g ms", ns / 1e6);
  return absl::StrFormat("%.3g s", ns / 1e9);
}

std::string number_text(double x) {
  return absl::StrFormat("%.2g", x);
}

std::string found_text(const ServerSummary& server) {
  const int64_t all = server.groups_found + server.groups_missed;
  if (all <= 0) return "-";
  const double share = static_cast<double>(server.groups_found) / static_cast<double>(all);
  return cat(server.groups_found, " of ", all, " kernels of jobs (", absl::StrFormat("%.0f", 100 * share), " %)",
             server.groups_found > 0 ? cat(", which saved ", time_text(server.saved_s * 1e9), " of search") : "");
}

double spread_of(const JobResult& result) {
  double least = 0, median = 0;
  for (const GroupResult& group : result.groups) {
    if (group.samples_ns.empty()) continue;
    const auto count = static_cast<double>(group.count);
    least += count * static_cast<double>(*std::min_element(group.samples_ns.begin(), group.samples_ns.end()));
    median += count * median_of(group.samples_ns);
  }
  return least > 0 ? median / least - 1 : 0;
}

absl::Status why_no_result(const Job& job) {
  switch (job.state) {
    case JobState::kFailed:
      if (job.error.ok()) return absl::InternalError("the job failed without a reason");
      // The job's error is NotFound if no correct kernel was found. It is converted, because as the result of a
      // command NotFound would mean that a record is missing.
      if (absl::IsNotFound(job.error)) return absl::FailedPreconditionError(job.error.message());
      return job.error;
    case JobState::kCancelled:
      return absl::CancelledError(
          "interrupted before every group had a verified kernel; the measurements are kept: run the same command "
          "again");
    case JobState::kNotCached: {
      std::string what = job.error.ok() ? "some kernel is not in the store" : std::string(job.error.message());
      return absl::NotFoundError(cat(what, "; run `warploom tune ", job.label, "` first"));
    }
    default:
      return absl::InternalError("the job ended without a result");
  }
}

}  // namespace wl

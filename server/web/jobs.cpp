// Answers with the list of jobs. Also defines those functions of api.h that make JSON for several pages.
#include <algorithm>
#include <iterator>

#include "absl/strings/numbers.h"
#include "server/web/api.h"

namespace wl {
namespace {

constexpr int64_t kJobsOfPage = 50, kMostJobsOfPage = 200;

}  // namespace

absl::StatusOr<int64_t> number_parameter(const WebQuery& query, const std::string& name, int64_t least, int64_t most,
                                         int64_t otherwise) {
  const auto found = query.parameters.find(name);
  if (found == query.parameters.end() || found->second.empty()) return otherwise;
  int64_t value = 0;
  if (!absl::SimpleAtoi(found->second, &value) || value < least || value > most)
    return invalid(name, ": expected an integer from ", least, " to ", most, ", found \"", found->second, "\"");
  return value;
}

WebJson outcomes_json(const OutcomeCounts& outcomes) {
  WebJson json = WebJson::object();
  for (int i = 0; i < kOutcomeCount; ++i) json[kOutcomeNames[i]] = outcomes[i];
  return json;
}

WebJson device_json(const Device& device) {
  return {{"target", device.target}, {"name", device.name}, {"threads", device.threads}};
}

WebJson number_or_null(double value) {
  return value > 0 ? WebJson(value) : WebJson();
}

WebJson summary_json(int64_t id, const Job& job) {
  WebJson json = {
      {"id", id},
      {"label", job.label},
      {"state", kJobStateNames[static_cast<int>(job.state)]},
      {"done", is_done(job.state)},
      {"phase", job.progress.phase},
      {"cached", job.cached},
      {"cancelling", job.cancelling},
      {"target", job.device ? job.device->target : job.options.target},
      {"device", job.device ? job.device->name : ""},
      {"created_ms", job.created_unix_ms},
      {"finished_ms", job.finished_unix_ms},
      {"trials_done", job.progress.trials_done},
      {"trials_total", job.progress.trials_total},
      {"elapsed_s", job.progress.elapsed_s},
      {"left_s", job.progress.left_s},
      {"workers", job.progress.workers},
  };
  if (!job.error.ok()) json["error"] = std::string(job.error.message());
  return json;
}

absl::StatusOr<WebJson> jobs_json(WebData& data, const WebQuery& query) {
  WL_ASSIGN_OR_RETURN(const int64_t before, number_parameter(query, "before", 1, INT64_MAX, 0));
  WL_ASSIGN_OR_RETURN(const int64_t limit, number_parameter(query, "limit", 1, kMostJobsOfPage, kJobsOfPage));
  WL_ASSIGN_OR_RETURN(const std::vector<JobRow> rows,
                      data.serving.store->list_jobs(before, static_cast<int>(limit) + 1, query.reader));
  WebJson jobs = WebJson::array();
  for (const JobRow& row : rows) {
    if (jobs.size() == static_cast<size_t>(limit)) break;
    const absl::StatusOr<Job> job = is_done(row.state) ? job_of(row) : data.serving.engine->get(row.id);
    if (!job.ok()) continue;
    WebJson json = summary_json(row.id, *job);
    json["team"] = row.team;
    if (is_done(job->state) && row.started_ms > 0)
      json["elapsed_s"] = static_cast<double>(row.finished_ms - row.started_ms) / 1e3;
    jobs.push_back(std::move(json));
  }
  const LookedUp known = data.serving.looked_up->sum();
  WebJson out = {{"version", WARPLOOM_VERSION}, {"drained", data.serving.engine->draining()},
                 {"groups_found", known.hits},  {"groups_missed", known.misses},
                 {"saved_s", known.saved_s},    {"jobs", std::move(jobs)}};
  out["next"] = rows.size() > static_cast<size_t>(limit) ? WebJson(rows[limit - 1].id) : WebJson();
  return out;
}

}  // namespace wl

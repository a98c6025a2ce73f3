// Answers about a job: the job itself, its groups, and the curves of their searches.
#include "compiler/base/job.h"

#include <algorithm>

#include "compiler/ir/text.h"
#include "server/jobs/job_plan.h"
#include "server/services/watch.h"
#include "server/web/api.h"

namespace wl {
namespace {

// A group of which only the key is known is named by this number of the key's first digits.
constexpr size_t kKeyShown = 12;

int64_t sum_of(const OutcomeCounts& outcomes) {
  int64_t sum = 0;
  for (const int64_t count : outcomes) sum += count;
  return sum;
}

WebJson progress_json(const GroupProgress& group) {
  return {{"key", group.key},
          {"name", group.name},
          {"count", group.count},
          {"compared", group.is_default},
          {"done", group.done},
          {"from", group.cached ? "cached" : ""},
          {"trials_done", group.trials_done},
          {"trials_total", group.trials_total},
          {"best_ns", number_or_null(group.best_ns)},
          {"default_ns", number_or_null(group.default_ns)},
          {"outcomes", outcomes_json(group.outcomes)}};
}

// Returns the JSON of a group that the job searched, but that neither the job's result nor its progress names, because
// the group's parts took its place.
WebJson searched_json(const std::string& key, const std::optional<RecordRow>& record) {
  GroupProgress group{.key = key, .name = key.substr(0, kKeyShown), .is_default = true};
  if (record) {
    group.name = describe_group(record->record.graph);
    group.done = true;
    group.best_ns = median_of(record->record.samples_ns);
    group.default_ns = median_of(record->record.default_samples_ns);
    group.outcomes = record->record.outcomes;
    group.trials_done = group.trials_total = sum_of(group.outcomes);
  }
  return progress_json(group);
}

WebJson result_json(const GroupResult& group) {
  const int64_t trials = sum_of(group.trials);
  return {{"key", group.key},
          {"name", describe_group(group.graph)},
          {"count", group.count},
          {"compared", false},
          {"done", true},
          {"from", group.source},
          {"trials_done", trials},
          {"trials_total", trials},
          {"best_ns", number_or_null(group.best_ns)},
          {"default_ns", number_or_null(group.default_ns)},
          {"default_estimated", group.default_estimated},
          {"outcomes", outcomes_json(group.trials)},
          {"kernels_default", group.kernels_default},
          {"kernels", group.kernels},
          {"bytes_default", group.bytes_default},
          {"bytes", group.bytes},
          {"flops", group.flops},
          {"max_error", group.max_error},
          {"bound", group.bound},
          {"plan", group.plan},
          {"record", group.record_digest},
          {"measured_by", shown_name(group.measured_by)},
          {"confirmed_by", shown_name(group.confirmed_by)}};
}

WebJson totals_json(const JobResult& result) {
  return {{"kernels_default", result.kernels_default},
          {"kernels", result.kernels},
          {"bytes_default", result.bytes_default},
          {"bytes", result.bytes},
          {"default_ns", number_or_null(result.default_ns)},
          {"default_estimated", result.default_estimated},
          {"best_ns", number_or_null(result.best_ns)},
          {"whole_ns", number_or_null(result.whole_ns())},
          {"trials", result.trials},
          {"compile_s", result.compile_s},
          {"check_s", result.check_s},
          {"measure_s", result.measure_s},
          {"cover_rounds", result.cover_rounds},
          {"cover_certified", result.cover_certified}};
}

WebJson covers_json(const JobResult& result) {
  WebJson covers = WebJson::array();
  for (const TimedCover& cover : result.covers)
    covers.push_back({{"name", cover.name},
                      {"kernels", cover.kernels},
                      {"bytes", cover.bytes},
                      {"kernels_ns", number_or_null(cover.kernels_ns)},
                      {"least_ns", number_or_null(undisturbed_ns(cover.samples_ns))},
                      {"chosen", cover.chosen},
                      {"why", cover.why}});
  return covers;
}

// Returns the groups of a job: those of its result, else those of its progress, else those that it searched.
absl::StatusOr<WebJson> groups_json(WebData& data, int64_t id, const Job& job) {
  WebJson groups = WebJson::array();
  if (job.result) {
    for (const GroupResult& group : job.result->groups) groups.push_back(result_json(group));
  } else if (!job.progress.groups.empty()) {
    for (const GroupProgress& group : job.progress.groups) groups.push_back(progress_json(group));
  } else {
    WL_ASSIGN_OR_RETURN(const auto searches, data.serving.store->searches_of_job(id));
    for (const auto& [key, search_id] : searches) groups.push_back(searched_json(key, std::nullopt));
  }
  return groups;
}

struct FoundJob {
  int64_t id = 0;
  Job job;
};

absl::StatusOr<FoundJob> job_asked_for(const WebData& data, const WebQuery& query) {
  WL_ASSIGN_OR_RETURN(const int64_t id, job_for(data.serving, query.reader, query.parts.front()));
  WL_ASSIGN_OR_RETURN(Job job, data.serving.engine->get(id));
  return FoundJob{id, std::move(job)};
}

WebJson options_json(const TuneOptions& options) {
  return {{"trials", options.trials},     {"budget_s", options.budget_s}, {"seed", std::to_string(options.seed)},
          {"strategy", options.strategy}, {"effort", options.effort},     {"cover", options.cover},
          {"cold", options.cold}};
}

}  // namespace

absl::StatusOr<WebJson> job_json(WebData& data, const WebQuery& query) {
  WL_ASSIGN_OR_RETURN(const FoundJob found, job_asked_for(data, query));
  const Job& job = found.job;
  WebJson json = summary_json(found.id, job);
  json["options"] = options_json(job.options);
  json["totals"] = job.result ? totals_json(*job.result) : WebJson();
  json["covers"] = job.result ? covers_json(*job.result) : WebJson::array();
  if (job.result) json["elapsed_s"] = job.result->total_s;
  WL_ASSIGN_OR_RETURN(json["groups"], groups_json(data, found.id, job));
  return json;
}

absl::StatusOr<WebJson> curves_json(WebData& data, const WebQuery& query) {
  WL_ASSIGN_OR_RETURN(const int64_t id, job_for(data.serving, query.reader, query.parts.front()));
  WL_ASSIGN_OR_RETURN(const auto searches, data.serving.store->searches_of_job(id));
  WebJson curves = WebJson::object();
  for (const auto& [key, search_id] : searches) {
    WL_ASSIGN_OR_RETURN(const auto points, data.curves.of(search_id));
    WebJson better = WebJson::array();
    double best = 0;
    for (const TrialPoint& point : *points) {
      if (point.outcome != Outcome::kCorrect || !(point.ns > 0) || (best > 0 && point.ns >= best)) continue;
      best = point.ns;
      better.push_back({point.trial, point.ns});
    }
    curves[key] = {{"trials", points->empty() ? 0 : points->back().trial + 1}, {"better", std::move(better)}};
  }
  return WebJson{{"curves", std::move(curves)}};
}

absl::StatusOr<WebJson> group_json(WebData& data, const WebQuery& query) {
  WL_ASSIGN_OR_RETURN(const FoundJob found, job_asked_for(data, query));
  const std::string& key = query.parts[1];
  WL_ASSIGN_OR_RETURN(WebJson groups, groups_json(data, found.id, found.job));
  WL_ASSIGN_OR_RETURN(const auto searches, data.serving.store->searches_of_job(found.id));
  const auto group = std::find_if(groups.begin(), groups.end(), [&](const WebJson& one) { return one["key"] == key; });
  const auto search = searches.find(key);
  if (group == groups.end() && search == searches.end())
    return absl::NotFoundError(cat("job ", found.id, " has no group of key \"", key, "\""));
  WebJson points = WebJson::array();
  if (search != searches.end()) {
    WL_ASSIGN_OR_RETURN(const auto read, data.curves.of(search->second));
    for (const TrialPoint& point : *read)
      points.push_back({point.trial, static_cast<int>(point.outcome), number_or_null(point.ns)});
  }
  std::optional<RecordRow> record;
  if (found.job.device) {
    WL_ASSIGN_OR_RETURN(record,
                        data.serving.store->record_by_key(key, environment_of(*found.job.device), query.reader));
  }
  WebJson json = {{"job", summary_json(found.id, found.job)}, {"outcomes", kOutcomeNames}};
  json["group"] = group != groups.end() ? *group : searched_json(key, record);
  json["points"] = std::move(points);
  json["record"] = record ? record_row_json(*record) : WebJson();
  return json;
}

}  // namespace wl

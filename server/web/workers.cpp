// Answers for the page of workers: the list of workers, and what each of them is measuring.
#include <algorithm>
#include <cmath>

#include "server/web/api.h"

namespace wl {
namespace {

constexpr int64_t kWorkersOfPage = 100, kMostWorkersOfPage = 500;

const char* purpose_of(int64_t phase) {
  return confirms(phase) ? "confirmation" : phase > 0 ? "promotion" : "search";
}

// Returns the JSON of a lease. Only readers that may see the lease's job are told which job it is.
absl::StatusOr<WebJson> doing_json(const WebData& data, const WebQuery& query, const WorkerDoing& doing) {
  WebJson json = {{"purpose", purpose_of(doing.phase)},
                  {"step", doing.step},
                  {"target", doing.target},
                  {"candidates", doing.candidates},
                  {"seconds", std::floor(doing.seconds)},
                  {"job", WebJson()}};
  WL_ASSIGN_OR_RETURN(const auto job, data.serving.store->job_of_search(doing.search_id, query.reader));
  if (!job) return json;
  json["job"] = *job;
  WL_ASSIGN_OR_RETURN(const auto searches, data.serving.store->searches_of_job(*job));
  const auto search =
      std::find_if(searches.begin(), searches.end(), [&](const auto& one) { return one.second == doing.search_id; });
  if (search == searches.end()) return json;
  json["key"] = search->first;
  const absl::StatusOr<Job> view = data.serving.engine->get(*job);
  if (!view.ok()) return json;
  json["label"] = view->label;
  for (const GroupProgress& group : view->progress.groups)
    if (group.key == search->first) json["group"] = group.name;
  return json;
}

}  // namespace

absl::StatusOr<WebJson> workers_json(WebData& data, const WebQuery& query) {
  WL_ASSIGN_OR_RETURN(const int64_t limit, number_parameter(query, "limit", 1, kMostWorkersOfPage, kWorkersOfPage));
  const auto after = query.parameters.find("after");
  WebJson workers = WebJson::array(), next;
  std::string last;
  for (const WorkerView& worker : data.serving.engine->workers()) {
    if (!sees_worker(query.reader, worker)) continue;
    if (after != query.parameters.end() && worker.name <= after->second) continue;
    if (workers.size() == static_cast<size_t>(limit)) {
      next = last;
      break;
    }
    WebJson devices = WebJson::array();
    for (const Device& device : worker.devices) devices.push_back(device_json(device));
    WebJson doing = WebJson::array();
    for (const WorkerDoing& one : worker.doing) {
      WL_ASSIGN_OR_RETURN(WebJson json, doing_json(data, query, one));
      doing.push_back(std::move(json));
    }
    last = worker.name;
    workers.push_back({{"name", shown_name(worker.name)},
                       {"team", worker.team},
                       {"alive", worker.alive},
                       {"seen_ms", worker.last_seen_ms},
                       {"devices", std::move(devices)},
                       {"doing", std::move(doing)}});
  }
  WebJson waiting = WebJson::object();
  for (const auto& [target, count] : data.serving.engine->ready_candidates()) waiting[target] = count;
  return WebJson{{"workers", std::move(workers)},
                 {"next", std::move(next)},
                 {"waiting", std::move(waiting)},
                 {"drained", data.serving.engine->draining()}};
}

}  // namespace wl

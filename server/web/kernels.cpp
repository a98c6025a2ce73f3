// Answers with a job's kernels and the machine's rates, which a page compares, and with the picture of the job's
// graph.
#include "compiler/base/code.h"
#include "compiler/ir/text.h"
#include "compiler/model/rates.h"
#include "compiler/model/roofline.h"
#include "proto/wire.h"
#include "server/jobs/job_plan.h"
#include "server/services/watch.h"
#include "server/web/api.h"

namespace wl {
namespace {

struct KernelPoint {
  std::string key, graph;
  int64_t count = 1;
  double flops = 0;
  int64_t bytes = 0, bytes_default = 0;
  double best_ns = 0, default_ns = 0;
};

std::vector<KernelPoint> points_of(const JobResult& result) {
  std::vector<KernelPoint> points;
  for (const GroupResult& group : result.groups) {
    points.push_back({.key = group.key,
                      .graph = group.graph,
                      .count = group.count,
                      .flops = group.flops,
                      .bytes = group.bytes,
                      .bytes_default = group.bytes_default,
                      .best_ns = group.best_ns,
                      .default_ns = group.default_ns});
  }
  return points;
}

// Returns the kernels of a job that has no result yet: those of its groups that have a record. The kernel with the
// default schedule is taken to move as many bytes as the kernel of the record.
absl::StatusOr<std::vector<KernelPoint>> points_so_far(const WebData& data, const WebQuery& query, const Job& job) {
  std::vector<KernelPoint> points;
  for (const GroupProgress& group : job.progress.groups) {
    if (!group.done || group.is_default) continue;
    WL_ASSIGN_OR_RETURN(
        const auto bytes,
        data.serving.store->record_message(
            {.key = group.key, .environment = environment_of(*job.device), .reader = query.reader}, false));
    v1::KernelRecord message;
    if (!bytes || !message.ParseFromString(bytes->bytes)) continue;
    const absl::StatusOr<KernelRecord> record = manifest_from_proto(message);
    if (!record.ok()) continue;
    points.push_back({.key = group.key,
                      .graph = record->graph,
                      .count = group.count,
                      .flops = record->flops,
                      .bytes = record->bytes,
                      .bytes_default = record->bytes,
                      .best_ns = median_of(record->samples_ns),
                      .default_ns = median_of(record->default_samples_ns)});
  }
  return points;
}

WebJson point_json(const KernelPoint& point, const Machine& machine) {
  WebJson json = {{"key", point.key},
                  {"count", point.count},
                  {"flops", point.flops},
                  {"bytes", point.bytes},
                  {"bytes_default", point.bytes_default},
                  {"best_ns", number_or_null(point.best_ns)},
                  {"default_ns", number_or_null(point.default_ns)}};
  const absl::StatusOr<Graph> graph = parse(point.graph);
  const bool drawn = graph.ok() && !graph->outputs.empty();
  json["name"] = drawn ? describe_group(*graph) : "?";
  json["bound_ns"] = drawn ? number_or_null(roofline(*graph, machine).ns()) : WebJson();
  return json;
}

}  // namespace

absl::StatusOr<WebJson> kernels_json(WebData& data, const WebQuery& query) {
  WL_ASSIGN_OR_RETURN(const int64_t id, job_for(data.serving, query.reader, query.parts.front()));
  WL_ASSIGN_OR_RETURN(const Job job, data.serving.engine->get(id));
  WebJson json = {{"machine", WebJson()}, {"rates", WebJson::array()}, {"kernels", WebJson::array()}};
  if (!job.device) return json;
  WL_ASSIGN_OR_RETURN(const Machine machine, machine_of(*job.device));
  Ceilings ceilings = ceilings_of(machine);
  const bool measured = job.result && job.result->rates.gflops > 0 && !job.result->rates.memories.empty();
  if (measured) {
    ceilings = {job.result->rates.gflops, {}};
    for (const MeasuredRates::Memory& memory : job.result->rates.memories)
      ceilings.memories.emplace_back(memory.name, memory.gbps);
  }
  json["measured"] = measured;
  json["machine"] = device_json(*job.device);
  json["gflops"] = ceilings.gflops;
  for (const auto& [name, rate] : ceilings.memories) json["rates"].push_back({{"name", name}, {"gbps", rate}});
  std::vector<KernelPoint> points;
  if (job.result) {
    points = points_of(*job.result);
  } else {
    WL_ASSIGN_OR_RETURN(points, points_so_far(data, query, job));
  }
  for (const KernelPoint& point : points) json["kernels"].push_back(point_json(point, machine));
  return json;
}

absl::StatusOr<WebJson> graph_json(WebData& data, const WebQuery& query) {
  WL_ASSIGN_OR_RETURN(const int64_t id, job_for(data.serving, query.reader, query.parts.front()));
  WL_ASSIGN_OR_RETURN(const Job job, data.serving.engine->get(id));
  std::shared_ptr<const Drawing> drawing = data.drawings.find(id, job.result.has_value());
  if (drawing == nullptr) {
    WL_ASSIGN_OR_RETURN(const std::optional<JobRow> row, data.serving.store->job(id));
    if (!row) return absl::NotFoundError(cat("there is no job ", id));
    if (row->graph.empty())
      return absl::NotFoundError("this job has no graph: it verifies kernels again that were made by other compilers");
    if (!row->device) {
      return absl::NotFoundError(
          "no machine is known for this job yet; its graph is drawn once a worker serves its target");
    }
    WL_ASSIGN_OR_RETURN(drawing, data.drawings.make(*row));
  }
  if (drawing == nullptr) return WebJson{{"drawing", true}};
  WL_RETURN_IF_ERROR(drawing->status);
  WebJson kernels = WebJson::array();
  for (const Drawing::Kernel& kernel : drawing->kernels)
    kernels.push_back({{"key", kernel.key}, {"name", kernel.name}, {"ops", kernel.ops}, {"reasons", kernel.reasons}});
  return WebJson{{"drawing", false},
                 {"summary", drawing->summary},
                 {"picture", drawing->picture},
                 {"kernels", std::move(kernels)}};
}

}  // namespace wl

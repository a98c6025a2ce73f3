#include <set>

#include "compiler/ir/text.h"
#include "proto/limits.h"
#include "proto/rpc.h"
#include "proto/wire.h"
#include "server/jobs/job_plan.h"
#include "server/services/services.h"
#include "server/services/watch.h"
#include "warploom/v1/tuning.grpc.pb.h"

namespace wl {
namespace {

grpc::Status answer(const absl::StatusOr<Job>& job, v1::Job* out) {
  if (!job.ok()) return to_grpc(job.status());
  *out = to_proto(*job);
  return grpc::Status::OK;
}

absl::Status fill_group(const PlannedGroup& group, const std::string& stage, const JobPlan& plan,
                        const Compiler& compiler, Store* store, v1::InspectResponse::Group* out) {
  out->set_key(group.key);
  out->set_count(group.fused_count);
  out->set_graph(group.text);
  if (stage == "graph") {
    out->set_text(group.text);
    return absl::OkStatus();
  }
  WL_ASSIGN_OR_RETURN(std::unique_ptr<GroupCompiler> opened, compiler.open(group.graph, plan.machine));
  WL_ASSIGN_OR_RETURN(std::optional<RecordRow> record, store->record_by_key(group.key, environment_of(plan.device)));
  const std::string chosen = record ? record->record.plan : opened->seeds().front();
  out->set_plan(chosen);
  out->set_tuned(record.has_value());
  out->set_space(opened->space_text());
  if (stage == "space") {
    out->set_text(out->space());
  } else if (stage == "plan") {
    out->set_text(chosen);
  } else if (stage == "kernel") {
    WL_ASSIGN_OR_RETURN(std::string text, opened->kernel_text(chosen));
    out->set_text(text);
  } else {
    WL_ASSIGN_OR_RETURN(Source source, opened->generate(chosen));
    out->set_text(source.text);
    *out->mutable_source() = to_proto(source);
  }
  return absl::OkStatus();
}

class TuningServiceImpl final : public v1::TuningService::CallbackService {
 public:
  explicit TuningServiceImpl(const Serving& serving) : serving_(serving) {}
  WL_ANSWER_ON(serving_.slow, CreateTuningJob, v1::CreateTuningJobRequest, v1::Job);
  WL_ANSWER_ON(serving_.quick, GetJob, v1::GetJobRequest, v1::Job);
  WL_ANSWER_ON(serving_.quick, ListJobs, v1::ListJobsRequest, v1::ListJobsResponse);
  WL_ANSWER_ON(serving_.quick, CancelJob, v1::CancelJobRequest, v1::Job);
  grpc::ServerWriteReactor<v1::Job>* WatchJob(grpc::CallbackServerContext*, const v1::WatchJobRequest*) override;
  WL_ANSWER_ON(serving_.slow, Inspect, v1::InspectRequest, v1::InspectResponse);

 private:
  const Serving serving_;
  Engine* const engine_ = serving_.engine;
  Store* const store_ = serving_.store;
};

grpc::Status TuningServiceImpl::CreateTuningJob(const v1::CreateTuningJobRequest* request, v1::Job* out) {
  const auto options = from_proto(request->options());
  if (!options.ok()) return to_grpc(options.status());
  return answer(engine_->create(request->request_id(), request->graph(), *options, request->label()), out);
}

grpc::Status TuningServiceImpl::GetJob(const v1::GetJobRequest* request, v1::Job* out) {
  const auto id = job_id(request->name());
  return id ? answer(engine_->get(*id), out) : no_such_job(request->name());
}

grpc::Status TuningServiceImpl::CancelJob(const v1::CancelJobRequest* request, v1::Job* out) {
  const auto id = job_id(request->name());
  return id ? answer(engine_->cancel(*id), out) : no_such_job(request->name());
}

grpc::Status TuningServiceImpl::ListJobs(const v1::ListJobsRequest* request, v1::ListJobsResponse* out) {
  const int limit = request->page_size() <= 0 ? 100 : std::min(request->page_size(), 1000);
  int64_t before = 0;
  if (!request->page_token().empty()) {
    const auto token = job_id(request->page_token());
    if (!token)
      return to_grpc(invalid("page_token: expected one that ListJobs gave, found \"", request->page_token(), "\""));
    before = *token;
  }
  const auto rows = store_->list_jobs(before, limit);
  if (!rows.ok()) return to_grpc(rows.status());
  size_t listed = 0, bytes = 0;
  for (; listed < rows->size() && bytes < kMostPageBytes; ++listed) {
    const JobRow& row = (*rows)[listed];
    absl::StatusOr<Job> job = is_done(row.state) ? job_of(row) : engine_->get(row.id);
    if (!job.ok()) continue;
    job->result.reset();
    *out->add_jobs() = to_proto(*job);
    bytes += out->jobs().rbegin()->ByteSizeLong();
  }
  if (listed == static_cast<size_t>(limit) || listed < rows->size())
    out->set_next_page_token(cat((*rows)[listed - 1].id));
  return grpc::Status::OK;
}

grpc::ServerWriteReactor<v1::Job>* TuningServiceImpl::WatchJob(grpc::CallbackServerContext*,
                                                               const v1::WatchJobRequest* request) {
  return watch_job(serving_, *request);
}

grpc::Status TuningServiceImpl::Inspect(const v1::InspectRequest* request, v1::InspectResponse* out) {
  static const std::set<std::string> stages = {"graph", "space", "plan", "kernel", "source"};
  if (!stages.contains(request->stage())) {
    return to_grpc(invalid("stage: expected graph, space, plan, kernel or source, found \"", request->stage(), "\""));
  }
  const auto run = [&]() -> absl::Status {
    if (request->simplify_only()) {
      WL_ASSIGN_OR_RETURN(Graph graph, parse(request->graph()));
      WL_ASSIGN_OR_RETURN(graph, engine_->compiler().simplify(graph));
      out->set_graph(print(graph));
      return absl::OkStatus();
    }
    WL_ASSIGN_OR_RETURN(TuneOptions options, from_proto(request->options()));
    WL_ASSIGN_OR_RETURN(Device device, engine_->device_for(options));
    WL_ASSIGN_OR_RETURN(JobPlan plan, make_plan(request->graph(), options, device, engine_->compiler()));
    out->set_graph(print(plan.graph));
    if (request->why()) {
      WL_ASSIGN_OR_RETURN(CoverExplanation made, engine_->compiler().explain(plan.graph, plan.machine, options.cover));
      out->set_why(std::move(made.text));
      out->set_picture(std::move(made.picture));
    }
    for (const PlannedGroup& group : plan.groups) {
      if (group.fused_count == 0) continue;
      WL_RETURN_IF_ERROR(fill_group(group, request->stage(), plan, engine_->compiler(), store_, out->add_groups()));
    }
    return absl::OkStatus();
  };
  return to_grpc(run());
}

}  // namespace

std::unique_ptr<grpc::Service> make_tuning_service(const Serving& serving) {
  return std::make_unique<TuningServiceImpl>(serving);
}

}  // namespace wl

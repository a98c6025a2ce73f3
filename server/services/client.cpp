#include "proto/limits.h"
#include "proto/rpc.h"
#include "proto/wire.h"
#include "server/services/inspect.h"
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

class TuningServiceImpl final : public v1::TuningService::CallbackService {
 public:
  explicit TuningServiceImpl(const Serving& serving) : serving_(serving) {}
  grpc::ServerUnaryReactor* CreateTuningJob(grpc::CallbackServerContext* context,
                                            const v1::CreateTuningJobRequest* request, v1::Job* out) override {
    return answer_on(
        pool_for_graph(serving_, request->graph().size()), context,
        [=, this] { return create(*context, *request, out); }, caller_of(serving_, *context));
  }
  WL_ANSWER_READER_ON(serving_.quick, GetJob, v1::GetJobRequest, v1::Job);
  WL_ANSWER_READER_ON(serving_.quick, ListJobs, v1::ListJobsRequest, v1::ListJobsResponse);
  WL_ANSWER_READER_ON(serving_.quick, CancelJob, v1::CancelJobRequest, v1::Job);
  grpc::ServerWriteReactor<v1::Job>* WatchJob(grpc::CallbackServerContext*, const v1::WatchJobRequest*) override;
  grpc::ServerWriteReactor<v1::InspectResponse>* Inspect(grpc::CallbackServerContext*,
                                                         const v1::InspectRequest*) override;

 private:
  grpc::Status create(const grpc::CallbackServerContext& context, const v1::CreateTuningJobRequest& request,
                      v1::Job* out);

  const Serving serving_;
  Engine* const engine_ = serving_.engine;
  Store* const store_ = serving_.store;
};

// Creates a job. Its planning is cancelled when the caller disconnects.
grpc::Status TuningServiceImpl::create(const grpc::CallbackServerContext& context,
                                       const v1::CreateTuningJobRequest& request, v1::Job* out) {
  if (const absl::Status fields = check_fields(request); !fields.ok()) return to_grpc(fields);
  const auto reader = reader_of(serving_, context);
  if (!reader.ok()) return to_grpc(reader.status());
  const auto options = from_proto(request.options());
  if (!options.ok()) return to_grpc(options.status());
  return answer(engine_->create(
                    request.request_id(), request.graph(), *options, request.label(), reader->team, request.trace(),
                    [&context] { return context.IsCancelled(); }, caller_of(serving_, context)),
                out);
}

grpc::Status TuningServiceImpl::GetJob(const Reader& reader, const v1::GetJobRequest* request, v1::Job* out) {
  const auto id = job_for(serving_, reader, request->name());
  if (!id.ok()) return to_grpc(id.status());
  return answer(engine_->get(*id), out);
}

grpc::Status TuningServiceImpl::CancelJob(const Reader& reader, const v1::CancelJobRequest* request, v1::Job* out) {
  const auto id = job_for(serving_, reader, request->name());
  if (!id.ok()) return to_grpc(id.status());
  return answer(engine_->cancel(*id), out);
}

grpc::Status TuningServiceImpl::ListJobs(const Reader& reader, const v1::ListJobsRequest* request,
                                         v1::ListJobsResponse* out) {
  const int limit = request->page_size() <= 0 ? 100 : std::min(request->page_size(), 1000);
  int64_t before = 0;
  if (!request->page_token().empty()) {
    const auto token = job_id(request->page_token());
    if (!token)
      return to_grpc(invalid("page_token: expected one that ListJobs gave, found \"", request->page_token(), "\""));
    before = *token;
  }
  const auto rows = store_->list_jobs(before, limit, reader, request->unfinished());
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

grpc::ServerWriteReactor<v1::Job>* TuningServiceImpl::WatchJob(grpc::CallbackServerContext* context,
                                                               const v1::WatchJobRequest* request) {
  return watch_job(serving_, *context, *request);
}

grpc::ServerWriteReactor<v1::InspectResponse>* TuningServiceImpl::Inspect(grpc::CallbackServerContext* context,
                                                                          const v1::InspectRequest* request) {
  return inspect(serving_, context, *request);
}

}  // namespace

std::unique_ptr<grpc::Service> make_tuning_service(const Serving& serving) {
  return std::make_unique<TuningServiceImpl>(serving);
}

}  // namespace wl

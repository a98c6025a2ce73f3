#include <algorithm>
#include <atomic>

#include "proto/limits.h"
#include "proto/rpc.h"
#include "proto/wire.h"
#include "server/services/services.h"
#include "warploom/v1/worker.grpc.pb.h"

namespace wl {
namespace {

constexpr double kMaxWaitS = 55;

// Returns the name under which a worker is registered: PRINCIPAL/NAME, with the principal of its caller
// (Authorizer::principal_of). So no caller can act for the workers of another caller, and all workers of one caller
// have the same principal (compiler/base/job.h).
std::string name_here(const Serving& serving, const grpc::CallbackServerContext& context, const std::string& name) {
  if (serving.authorizer == nullptr) return name;
  const std::string owner = serving.authorizer->principal_of(context);
  if (owner.empty()) return name;
  return name.starts_with(owner + "/") ? name : cat(owner, "/", name);
}

absl::Status check_owner(const Serving& serving, const grpc::CallbackServerContext& context, const std::string& name) {
  if (name.empty()) return invalid("worker: expected the name that RegisterWorker has given, found nothing");
  if (name_here(serving, context, name) == name) return absl::OkStatus();
  return absl::PermissionDeniedError(
      cat("worker: \"", name, "\" is a worker of another caller; register, and use the name given"));
}

// A long poll for leases. The call deletes itself once gRPC no longer needs it.
class AcquireCall final : public grpc::ServerUnaryReactor {
 public:
  AcquireCall(const Serving& serving, grpc::CallbackServerContext* context, const v1::AcquireLeasesRequest& request,
              v1::AcquireLeasesResponse* out)
      : serving_(serving), context_(context), worker_(request.worker()), out_(out), counted_(serving.waiting->take(1)) {
    if (!counted_) {
      Finish(too_busy());
      return;
    }
    if (const absl::Status fields = check_fields(request); !fields.ok()) {
      Finish(to_grpc(fields));
      return;
    }
    if (const absl::Status own = check_owner(serving, *context, request.worker()); !own.ok()) {
      Finish(to_grpc(own));
      return;
    }
    const double wait_s = request.wait_s() > 0 ? std::min(request.wait_s(), kMaxWaitS) : 0;
    held_ = hold_call(serving, context, "/warploom.v1.WorkerService/AcquireLeases", kLongestWait);
    call_ =
        serving_.engine->acquire(request.worker(), request.epoch(), std::max(request.max(), request.max_promotions()),
                                 std::chrono::milliseconds(static_cast<int64_t>(wait_s * 1000)),
                                 [this](absl::StatusOr<Acquired> acquired) { answer(std::move(acquired)); });
  }

  // gRPC calls OnCancel() and OnDone() only after AcquireLeases has returned, so `call_` is set by then; it is null
  // if the call was refused.
  void OnCancel() override { serving_.engine->cancel_acquire(call_); }
  void OnDone() override {
    if (context_->IsCancelled() && out_->leases_size() > 0) release();
    if (counted_) serving_.waiting->give(1);
    delete this;
  }

 private:
  void answer(const absl::StatusOr<Acquired>& acquired) {
    if (!acquired.ok()) return Finish(to_grpc(acquired.status()));
    for (const LeaseGrant& grant : acquired->leases) {
      v1::Lease* lease = out_->add_leases();
      lease->set_lease_id(grant.lease_id);
      lease->set_attempt(grant.attempt);
      *lease->mutable_batch() = to_proto(*grant.batch);
    }
    out_->set_drain(acquired->drain);
    Finish(grpc::Status::OK);
  }

  // Releases leases that the worker may never have received. These leases do not count as failures of their batches.
  void release() {
    std::vector<LeaseRef> leases;
    for (const v1::Lease& lease : out_->leases()) leases.push_back({lease.lease_id(), lease.attempt()});
    const auto work = [engine = serving_.engine, leases, worker = worker_] {
      for (const LeaseRef& lease : leases) engine->release(worker, lease, LeaseEnd::kReleased);
    };
    if (!serving_.quick->post(work)) work();
  }

  const Serving serving_;
  grpc::CallbackServerContext* const context_;
  const std::string worker_;
  v1::AcquireLeasesResponse* const out_;
  const bool counted_;
  std::shared_ptr<LeaseCall> call_;
  std::unique_ptr<OpenCalls::Held> held_;
};

// The open call by which the coordinator notices that a worker process has ended. The object deletes itself once gRPC
// no longer needs it.
class AttendCall final : public grpc::ServerWriteReactor<v1::AttendResponse> {
 public:
  AttendCall(const Serving& serving, OpenCalls* open, grpc::CallbackServerContext* context,
             const v1::AttendRequest& request)
      : serving_(serving), name_(request.worker()), epoch_(request.epoch()), counted_(serving.waiting->take(1)) {
    absl::Status status = counted_ ? check_fields(request) : from_grpc(too_busy());
    if (status.ok()) status = check_owner(serving, *context, name_);
    if (status.ok()) status = serving.engine->may_attend(name_, epoch_);
    if (status.ok()) status = serving.engine->attend(name_, epoch_);
    attends_ = status.ok();
    if (!status.ok()) {
      finish(to_grpc(status));
      return;
    }
    held_ = hold_call(serving, context, "/warploom.v1.WorkerService/Attend", kLongestWait);
    replaced_ =
        open->hold([engine = serving.engine, name = name_, epoch = epoch_] { return engine->may_attend(name, epoch); },
                   [this](const absl::Status& why) { finish(to_grpc(why)); });
  }
  void OnCancel() override { finish(grpc::Status::CANCELLED); }
  void OnDone() override {
    if (attends_) serving_.engine->left(name_, epoch_);
    if (counted_) serving_.waiting->give(1);
    delete this;
  }

 private:
  void finish(const grpc::Status& status) {
    if (!finished_.exchange(true)) Finish(status);
  }

  const Serving serving_;
  const std::string name_;
  const uint64_t epoch_;
  const bool counted_;
  bool attends_ = false;
  std::atomic<bool> finished_ = false;
  std::unique_ptr<OpenCalls::Held> held_, replaced_;
};

class WorkerServiceImpl final : public v1::WorkerService::CallbackService {
 public:
  explicit WorkerServiceImpl(const Serving& serving) : serving_(serving) {}
  grpc::ServerUnaryReactor* RegisterWorker(grpc::CallbackServerContext* context,
                                           const v1::RegisterWorkerRequest* request,
                                           v1::RegisterWorkerResponse* out) override;
  grpc::ServerUnaryReactor* AcquireLeases(grpc::CallbackServerContext*, const v1::AcquireLeasesRequest*,
                                          v1::AcquireLeasesResponse*) override;
  grpc::ServerWriteReactor<v1::AttendResponse>* Attend(grpc::CallbackServerContext* context,
                                                       const v1::AttendRequest* request) override {
    return new AttendCall(serving_, &attending_, context, *request);
  }
  grpc::ServerUnaryReactor* RenewLeases(grpc::CallbackServerContext* context, const v1::RenewLeasesRequest* request,
                                        v1::RenewLeasesResponse* out) override {
    return answer_owner(context, request, [=, this] { return renew(*request, out); });
  }
  grpc::ServerUnaryReactor* ReportResults(grpc::CallbackServerContext* context, const v1::ReportResultsRequest* request,
                                          v1::ReportResultsResponse* out) override {
    return answer_owner(context, request, [=, this] { return report(*request, out); });
  }
  grpc::ServerUnaryReactor* ReleaseLeases(grpc::CallbackServerContext* context, const v1::ReleaseLeasesRequest* request,
                                          v1::ReleaseLeasesResponse*) override {
    return answer_owner(context, request, [=, this] { return release(*request); });
  }

 private:
  // Answers a call, after checking that it is about one of the caller's own workers.
  template <typename Request>
  grpc::ServerUnaryReactor* answer_owner(grpc::CallbackServerContext* context, const Request* request,
                                         std::function<grpc::Status()> answer) {
    return answer_on(serving_.quick, context, [=, this, answer = std::move(answer)] {
      absl::Status status = check_fields(*request);
      if (status.ok()) status = check_owner(serving_, *context, request->worker());
      return status.ok() ? answer() : to_grpc(status);
    });
  }
  grpc::Status renew(const v1::RenewLeasesRequest& request, v1::RenewLeasesResponse* out);
  grpc::Status report(const v1::ReportResultsRequest& request, v1::ReportResultsResponse* out);
  grpc::Status release(const v1::ReleaseLeasesRequest& request);
  grpc::Status register_as(const std::string& name, const std::string& team, const v1::RegisterWorkerRequest& request,
                           v1::RegisterWorkerResponse* out);

  const Serving serving_;
  Engine* const engine_ = serving_.engine;
  OpenCalls attending_;
};

grpc::ServerUnaryReactor* WorkerServiceImpl::RegisterWorker(grpc::CallbackServerContext* context,
                                                            const v1::RegisterWorkerRequest* request,
                                                            v1::RegisterWorkerResponse* out) {
  return answer_on(serving_.quick, context, [=, this] {
    const absl::Status fields = check_fields(*request);
    if (!fields.ok()) return to_grpc(fields);
    const absl::StatusOr<Reader> caller = reader_of(serving_, *context);
    if (!caller.ok()) return to_grpc(caller.status());
    return register_as(request->name().empty() ? "" : name_here(serving_, *context, request->name()), caller->team,
                       *request, out);
  });
}

grpc::Status WorkerServiceImpl::register_as(const std::string& name, const std::string& team,
                                            const v1::RegisterWorkerRequest& request, v1::RegisterWorkerResponse* out) {
  if (name.size() > kMostName)
    return to_grpc(invalid("name: with the caller's name before it, it has more than ", kMostName, " bytes"));
  std::vector<Device> devices;
  for (const v1::Device& item : request.devices()) {
    auto device = from_proto(item);
    if (!device.ok()) return to_grpc(device.status());
    devices.push_back(*std::move(device));
  }
  std::vector<MeasuredRates> rates;
  for (const v1::MeasuredRates& item : request.rates()) rates.push_back(from_proto(item));
  out->set_lease_s(serving_.lease_s);
  out->set_renew_s(serving_.lease_s / 3);
  const auto epoch = engine_->register_worker(name, request.epoch(), devices, team, request.machine(), rates);
  if (!epoch.ok()) return to_grpc(epoch.status());
  out->set_epoch(*epoch);
  out->set_name(name);
  return grpc::Status::OK;
}

grpc::ServerUnaryReactor* WorkerServiceImpl::AcquireLeases(grpc::CallbackServerContext* context,
                                                           const v1::AcquireLeasesRequest* request,
                                                           v1::AcquireLeasesResponse* out) {
  return new AcquireCall(serving_, context, *request, out);
}

grpc::Status WorkerServiceImpl::renew(const v1::RenewLeasesRequest& request, v1::RenewLeasesResponse* out) {
  for (const auto& item : request.items()) {
    switch (engine_->renew(request.worker(), {item.lease_id(), item.attempt()}, item.phase(), item.done())) {
      case RenewOutcome::kOk:
        out->add_outcomes(v1::RenewLeasesResponse::OK);
        break;
      case RenewOutcome::kLost:
        out->add_outcomes(v1::RenewLeasesResponse::LOST);
        break;
      case RenewOutcome::kCancel:
        out->add_outcomes(v1::RenewLeasesResponse::CANCEL);
        break;
    }
  }
  return grpc::Status::OK;
}

grpc::Status WorkerServiceImpl::report(const v1::ReportResultsRequest& request, v1::ReportResultsResponse* out) {
  for (const auto& item : request.items()) {
    std::vector<Trial> trials;
    for (const v1::Trial& message : item.trials()) {
      auto trial = from_proto(message);
      if (!trial.ok()) return to_grpc(trial.status());
      trials.push_back(*std::move(trial));
    }
    const auto outcome =
        engine_->report(request.worker(), item.batch_id(), {item.lease_id(), item.attempt()}, std::move(trials));
    if (!outcome.ok()) return to_grpc(outcome.status());
    switch (*outcome) {
      case ReportOutcome::kAccepted:
        out->add_outcomes(v1::ReportResultsResponse::ACCEPTED);
        break;
      case ReportOutcome::kDuplicate:
        out->add_outcomes(v1::ReportResultsResponse::DUPLICATE);
        break;
      case ReportOutcome::kStale:
        out->add_outcomes(v1::ReportResultsResponse::STALE);
        break;
    }
  }
  return grpc::Status::OK;
}

grpc::Status WorkerServiceImpl::release(const v1::ReleaseLeasesRequest& request) {
  const LeaseEnd why = request.unable() ? LeaseEnd::kUnable : LeaseEnd::kReleased;
  for (const auto& item : request.items()) engine_->release(request.worker(), {item.lease_id(), item.attempt()}, why);
  return grpc::Status::OK;
}

}  // namespace

std::unique_ptr<grpc::Service> make_worker_service(const Serving& serving) {
  return std::make_unique<WorkerServiceImpl>(serving);
}

}  // namespace wl

#include <algorithm>

#include "proto/rpc.h"
#include "proto/wire.h"
#include "server/services/services.h"
#include "warploom/v1/worker.grpc.pb.h"

namespace wl {
namespace {

constexpr double kMaxWaitS = 55;

class WorkerServiceImpl final : public v1::WorkerService::Service {
 public:
  WorkerServiceImpl(Engine* engine, double lease_s) : engine_(engine), lease_s_(lease_s) {}
  grpc::Status RegisterWorker(grpc::ServerContext*, const v1::RegisterWorkerRequest*,
                              v1::RegisterWorkerResponse*) override;
  grpc::Status AcquireLeases(grpc::ServerContext*, const v1::AcquireLeasesRequest*,
                             v1::AcquireLeasesResponse*) override;
  grpc::Status RenewLeases(grpc::ServerContext*, const v1::RenewLeasesRequest*, v1::RenewLeasesResponse*) override;
  grpc::Status ReportResults(grpc::ServerContext*, const v1::ReportResultsRequest*,
                             v1::ReportResultsResponse*) override;
  grpc::Status ReleaseLeases(grpc::ServerContext*, const v1::ReleaseLeasesRequest*,
                             v1::ReleaseLeasesResponse*) override;

 private:
  Engine* engine_;
  double lease_s_;
};

grpc::Status WorkerServiceImpl::RegisterWorker(grpc::ServerContext*, const v1::RegisterWorkerRequest* request,
                                               v1::RegisterWorkerResponse* out) {
  std::vector<Device> devices;
  for (const v1::Device& item : request->devices()) {
    auto device = from_proto(item);
    if (!device.ok()) return to_grpc(device.status());
    devices.push_back(*std::move(device));
  }
  out->set_lease_s(lease_s_);
  out->set_renew_s(lease_s_ / 3);
  const auto epoch = engine_->register_worker(request->name(), request->epoch(), devices);
  if (!epoch.ok()) return to_grpc(epoch.status());
  out->set_epoch(*epoch);
  return grpc::Status::OK;
}

grpc::Status WorkerServiceImpl::AcquireLeases(grpc::ServerContext*, const v1::AcquireLeasesRequest* request,
                                              v1::AcquireLeasesResponse* out) {
  const double wait_s = std::clamp(request->wait_s(), 0.0, kMaxWaitS);
  const auto acquired = engine_->acquire(request->worker(), request->epoch(), request->max(),
                                         std::chrono::milliseconds(static_cast<int64_t>(wait_s * 1000)));
  if (!acquired.ok()) return to_grpc(acquired.status());
  for (const LeaseGrant& grant : acquired->leases) {
    v1::Lease* lease = out->add_leases();
    lease->set_lease_id(grant.lease_id);
    lease->set_attempt(grant.attempt);
    *lease->mutable_batch() = to_proto(*grant.batch);
  }
  out->set_drain(acquired->drain);
  out->set_idle(acquired->idle);
  return grpc::Status::OK;
}

grpc::Status WorkerServiceImpl::RenewLeases(grpc::ServerContext*, const v1::RenewLeasesRequest* request,
                                            v1::RenewLeasesResponse* out) {
  for (const auto& item : request->items()) {
    switch (engine_->renew(request->worker(), {item.lease_id(), item.attempt()}, item.phase(), item.done())) {
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

grpc::Status WorkerServiceImpl::ReportResults(grpc::ServerContext*, const v1::ReportResultsRequest* request,
                                              v1::ReportResultsResponse* out) {
  for (const auto& item : request->items()) {
    std::vector<Trial> trials;
    for (const v1::Trial& message : item.trials()) {
      auto trial = from_proto(message);
      if (!trial.ok()) return to_grpc(trial.status());
      trials.push_back(*std::move(trial));
    }
    const auto outcome = engine_->report(item.batch_id(), {item.lease_id(), item.attempt()}, std::move(trials));
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

grpc::Status WorkerServiceImpl::ReleaseLeases(grpc::ServerContext*, const v1::ReleaseLeasesRequest* request,
                                              v1::ReleaseLeasesResponse*) {
  const LeaseEnd why = request->unable() ? LeaseEnd::kUnable : LeaseEnd::kReleased;
  for (const auto& item : request->items()) engine_->release({item.lease_id(), item.attempt()}, why);
  return grpc::Status::OK;
}

}  // namespace

std::unique_ptr<grpc::Service> make_worker_service(Engine* engine, double lease_s) {
  return std::make_unique<WorkerServiceImpl>(engine, lease_s);
}

}  // namespace wl

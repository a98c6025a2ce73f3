// The services: messages to plain data (proto/wire.h), one call of the engine or the store, and back. Nothing is
// decided here. To add a call: the .proto and its method here.
#pragma once

#include <grpcpp/grpcpp.h>

#include "server/engine/engine.h"
#include "server/store/store.h"
#include "warploom/v1/admin.grpc.pb.h"
#include "warploom/v1/blob.grpc.pb.h"
#include "warploom/v1/kernel_store.grpc.pb.h"
#include "warploom/v1/tuning.grpc.pb.h"
#include "warploom/v1/worker.grpc.pb.h"

namespace wl {

class ClientService final : public warploom::v1::TuningService::Service {
 public:
  ClientService(Engine* engine, Store* store) : engine_(engine), store_(store) {}
  grpc::Status CreateTuningJob(grpc::ServerContext*, const warploom::v1::CreateTuningJobRequest*,
                               warploom::v1::Job*) override;
  grpc::Status GetJob(grpc::ServerContext*, const warploom::v1::GetJobRequest*, warploom::v1::Job*) override;
  grpc::Status ListJobs(grpc::ServerContext*, const warploom::v1::ListJobsRequest*,
                        warploom::v1::ListJobsResponse*) override;
  grpc::Status CancelJob(grpc::ServerContext*, const warploom::v1::CancelJobRequest*, warploom::v1::Job*) override;
  grpc::Status WatchJob(grpc::ServerContext*, const warploom::v1::WatchJobRequest*,
                        grpc::ServerWriter<warploom::v1::Job>*) override;
  grpc::Status Inspect(grpc::ServerContext*, const warploom::v1::InspectRequest*,
                       warploom::v1::InspectResponse*) override;

 private:
  Engine* engine_;
  Store* store_;
};

class WorkerServiceImpl final : public warploom::v1::WorkerService::Service {
 public:
  WorkerServiceImpl(Engine* engine, double lease_s) : engine_(engine), lease_s_(lease_s) {}
  grpc::Status RegisterWorker(grpc::ServerContext*, const warploom::v1::RegisterWorkerRequest*,
                              warploom::v1::RegisterWorkerResponse*) override;
  grpc::Status AcquireLeases(grpc::ServerContext*, const warploom::v1::AcquireLeasesRequest*,
                             warploom::v1::AcquireLeasesResponse*) override;
  grpc::Status RenewLeases(grpc::ServerContext*, const warploom::v1::RenewLeasesRequest*,
                           warploom::v1::RenewLeasesResponse*) override;
  grpc::Status ReportResults(grpc::ServerContext*, const warploom::v1::ReportResultsRequest*,
                             warploom::v1::ReportResultsResponse*) override;
  grpc::Status ReleaseLeases(grpc::ServerContext*, const warploom::v1::ReleaseLeasesRequest*,
                             warploom::v1::ReleaseLeasesResponse*) override;

 private:
  Engine* engine_;
  double lease_s_;
};

class KernelStoreService final : public warploom::v1::KernelStore::Service {
 public:
  explicit KernelStoreService(Store* store) : store_(store) {}
  grpc::Status GetKernel(grpc::ServerContext*, const warploom::v1::GetKernelRequest*,
                         warploom::v1::KernelRecord*) override;
  grpc::Status BatchGetKernels(grpc::ServerContext*, const warploom::v1::BatchGetKernelsRequest*,
                               warploom::v1::BatchGetKernelsResponse*) override;
  grpc::Status ListKernels(grpc::ServerContext*, const warploom::v1::ListKernelsRequest*,
                           warploom::v1::ListKernelsResponse*) override;
  grpc::Status InvalidateKernel(grpc::ServerContext*, const warploom::v1::InvalidateKernelRequest*,
                                warploom::v1::InvalidateKernelResponse*) override;

 private:
  absl::StatusOr<std::optional<RecordRow>> find(const warploom::v1::GetKernelRequest& request);
  Store* store_;
};

class BlobService final : public warploom::v1::BlobStore::Service {
 public:
  BlobService(Engine* engine, Store* store) : engine_(engine), store_(store) {}
  grpc::Status FindMissing(grpc::ServerContext*, const warploom::v1::FindMissingRequest*,
                           warploom::v1::FindMissingResponse*) override;
  grpc::Status Upload(grpc::ServerContext*, grpc::ServerReader<warploom::v1::UploadRequest>*,
                      warploom::v1::UploadResponse*) override;
  grpc::Status Download(grpc::ServerContext*, const warploom::v1::DownloadRequest*,
                        grpc::ServerWriter<warploom::v1::DownloadResponse>*) override;

 private:
  Engine* engine_;
  Store* store_;
};

class AdminService final : public warploom::v1::Admin::Service {
 public:
  AdminService(Engine* engine, Store* store) : engine_(engine), store_(store) {}
  grpc::Status GetServerInfo(grpc::ServerContext*, const warploom::v1::GetServerInfoRequest*,
                             warploom::v1::ServerInfo*) override;
  grpc::Status ListWorkers(grpc::ServerContext*, const warploom::v1::ListWorkersRequest*,
                           warploom::v1::ListWorkersResponse*) override;
  grpc::Status Drain(grpc::ServerContext*, const warploom::v1::DrainRequest*, warploom::v1::DrainResponse*) override;

 private:
  Engine* engine_;
  Store* store_;
};

}  // namespace wl

// A coordinator with a fake compiler, and its services, for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "proto/rpc.h"
#include "proto/wire.h"
#include "server/coordinator.h"
#include "tests/server/fakes.h"
#include "warploom/v1/admin.grpc.pb.h"
#include "warploom/v1/kernel_store.grpc.pb.h"
#include "warploom/v1/tuning.grpc.pb.h"
#include "warploom/v1/worker.grpc.pb.h"

namespace wl {

inline constexpr char kGraph[] = R"(graph {
  %0 = input "x" : f32[64,32] normal(0,1)
  %1 = exp %0 : f32[64,32]
  %2 = add %1 %0 : f32[64,32]
  %3 = tanh %2 : f32[64,32]
  output "y" %3
}
)";

// The stubs of all services over one channel, and the calls that tests make most.
struct Caller {
  Caller() = default;
  explicit Caller(std::shared_ptr<grpc::Channel> by) { call_by(std::move(by)); }
  void call_by(std::shared_ptr<grpc::Channel> by) {
    channel = std::move(by);
    tuning = v1::TuningService::NewStub(channel);
    kernels = v1::KernelStore::NewStub(channel);
    workers = v1::WorkerService::NewStub(channel);
    admin = v1::Admin::NewStub(channel);
  }

  absl::StatusOr<Job> create(const std::string& request, const TuneOptions& options = {},
                             const std::string& graph = kGraph) {
    grpc::ClientContext context;
    v1::CreateTuningJobRequest message;
    message.set_request_id(request);
    message.set_graph(graph);
    *message.mutable_options() = to_proto(options);
    v1::Job job;
    const grpc::Status status = tuning->CreateTuningJob(&context, message, &job);
    if (!status.ok()) return from_grpc(status);
    return from_proto(job);
  }

  bool cancel(const std::string& name) {
    grpc::ClientContext context;
    v1::CancelJobRequest request;
    request.set_name(name);
    v1::Job answer;
    return tuning->CancelJob(&context, request, &answer).ok();
  }

  // Watches a job until it is done, and returns every state that the coordinator sent.
  std::vector<Job> watch(const std::string& name) {
    grpc::ClientContext context;
    v1::WatchJobRequest request;
    request.set_name(name);
    auto reader = tuning->WatchJob(&context, request);
    std::vector<Job> seen;
    v1::Job message;
    while (reader->Read(&message)) {
      auto job = from_proto(message);
      if (!job.ok()) ADD_FAILURE() << job.status();
      seen.push_back(*std::move(job));
    }
    (void)reader->Finish();
    return seen;
  }

  Job run(const std::string& request, const TuneOptions& options = {}, const std::string& graph = kGraph) {
    const auto job = create(request, options, graph);
    if (!job.ok()) {
      ADD_FAILURE() << job.status();
      return {};
    }
    const std::vector<Job> seen = watch(job->name);
    return seen.empty() ? *job : seen.back();
  }

  // Returns the record that is served for a key.
  absl::StatusOr<KernelRecord> record(const std::string& key) {
    grpc::ClientContext context;
    v1::GetKernelRequest request;
    request.set_key(key);
    v1::KernelRecord answer;
    const grpc::Status status = kernels->GetKernel(&context, request, &answer);
    if (!status.ok()) return from_grpc(status);
    return from_proto(answer);
  }
  // Declares the record of a key invalid.
  void invalidate(const std::string& key) const {
    grpc::ClientContext context;
    v1::InvalidateKernelRequest request;
    request.set_key(key);
    v1::InvalidateKernelResponse answer;
    EXPECT_TRUE(kernels->InvalidateKernel(&context, request, &answer).ok());
  }
  // Returns the records of all groups of a result. The test fails if one is missing.
  std::vector<KernelRecord> records_of(const JobResult& result) {
    std::vector<KernelRecord> records;
    for (const GroupResult& group : result.groups) {
      auto found = record(group.key);
      EXPECT_TRUE(found.ok()) << found.status();
      if (found.ok()) records.push_back(*std::move(found));
    }
    return records;
  }

  // Registers a worker that has no thread, so that the test makes the worker's calls. `epoch` 0 means the first call of
  // the worker's process. `machine`: a SHA-256 in hex, or "" if the machine is not known.
  v1::RegisterWorkerResponse enter(const std::string& name, const Device& device = fake_device(),
                                   const std::string& machine = "", uint64_t epoch = 0) const {
    grpc::ClientContext context;
    v1::RegisterWorkerRequest request;
    request.set_name(name);
    request.set_epoch(epoch);
    request.set_machine(machine);
    *request.add_devices() = to_proto(device);
    v1::RegisterWorkerResponse answer;
    const grpc::Status status = workers->RegisterWorker(&context, request, &answer);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return answer;
  }
  // Waits for a lease and returns it. If there is none in time, returns a lease without an id.
  v1::Lease acquire(const std::string& worker, uint64_t epoch = 1, double wait_s = 20) const {
    grpc::ClientContext context;
    v1::AcquireLeasesRequest request;
    request.set_worker(worker);
    request.set_epoch(epoch);
    request.set_max(1);
    request.set_wait_s(wait_s);
    v1::AcquireLeasesResponse answer;
    const grpc::Status status = workers->AcquireLeases(&context, request, &answer);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return answer.leases_size() == 0 ? v1::Lease() : answer.leases(0);
  }
  // Returns whether the coordinator knows a worker of this name and counts it as alive.
  bool is_alive(const std::string& worker) const {
    grpc::ClientContext context;
    v1::ListWorkersResponse answer;
    EXPECT_TRUE(admin->ListWorkers(&context, {}, &answer).ok());
    return std::any_of(answer.workers().begin(), answer.workers().end(),
                       [&](const v1::WorkerInfo& info) { return info.name() == worker && info.alive(); });
  }
  v1::ServerInfo server_info() const {
    grpc::ClientContext context;
    v1::ServerInfo info;
    EXPECT_TRUE(admin->GetServerInfo(&context, {}, &info).ok());
    return info;
  }

  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::TuningService::Stub> tuning;
  std::unique_ptr<v1::KernelStore::Stub> kernels;
  std::unique_ptr<v1::WorkerService::Stub> workers;
  std::unique_ptr<v1::Admin::Stub> admin;
};

struct Service : Caller {
  explicit Service(const std::string& store, double lease_s = 15, const std::string& listen = "",
                   int64_t max_store_pages = 0, bool refining = false, bool known_plans = false,
                   const Compiler* real = nullptr) {
    compiler.refining = refining;
    compiler.known_plans = known_plans;
    CoordinatorOptions options;
    options.store = store;
    options.compiler = real;
    options.listen = listen;
    options.lease_s = lease_s;
    options.max_store_pages = max_store_pages;
    start(options);
  }
  explicit Service(const CoordinatorOptions& options) { start(options); }

  void start(CoordinatorOptions options) {
    if (options.compiler == nullptr) options.compiler = &compiler;
    started = coordinator.start(options);
    if (!started.ok()) {
      EXPECT_GT(options.max_store_pages, 0) << started;
      return;
    }
    call_by(coordinator.in_process_channel());
  }

  // Registers a worker of epoch 1 that has a machine of its own.
  void register_worker(const std::string& name) const {
    enter(name, fake_device(), sha256_hex("machine of " + name), 1);
  }

  FakeCompiler compiler;
  Coordinator coordinator;
  absl::Status started;
};

inline TuneOptions trials(int64_t n) {
  TuneOptions options;
  options.trials = n;
  options.device = fake_device();
  return options;
}
// Returns trials(n) with the name of the cover that a RefiningCompiler refines.
inline TuneOptions refined_trials(int64_t n) {
  TuneOptions options = trials(n);
  options.cover = "refined";
  return options;
}

// Returns a worker's report on a lease, without trials as yet.
inline v1::ReportResultsRequest empty_report(const std::string& worker, const v1::Lease& lease, uint64_t epoch) {
  v1::ReportResultsRequest report;
  report.set_worker(worker);
  report.set_epoch(epoch);
  auto* item = report.add_items();
  item->set_lease_id(lease.lease_id());
  item->set_attempt(lease.attempt());
  item->set_batch_id(lease.batch().id());
  return report;
}

// Returns the report of an honest worker on a lease.
inline v1::ReportResultsRequest honest_report(const std::string& worker, const v1::Lease& lease, uint64_t epoch = 0) {
  v1::ReportResultsRequest report = empty_report(worker, lease, epoch);
  const absl::StatusOr<Batch> batch = from_proto(lease.batch());
  EXPECT_TRUE(batch.ok()) << batch.status();
  if (!batch.ok()) return report;
  for (const Candidate& candidate : batch->candidates)
    *report.mutable_items(0)->add_trials() = to_proto(fake_trial(candidate, false));
  return report;
}

}  // namespace wl

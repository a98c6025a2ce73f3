#include "worker/agent.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "proto/rpc.h"
#include "proto/wire.h"
#include "warploom/v1/blob.grpc.pb.h"
#include "warploom/v1/worker.grpc.pb.h"
#include "worker/device_runner.h"

namespace wl {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto kFirstBackoff = milliseconds(100);
constexpr auto kMaxBackoff = milliseconds(2000);
constexpr auto kCallDeadline = std::chrono::seconds(20);

class Agent {
 public:
  Agent(std::shared_ptr<grpc::Channel> channel, const AgentOptions& options, std::stop_token stop)
      : options_(options),
        devices_(options.devices),
        gpus_(options.measure.gpus),
        stop_(std::move(stop)),
        workers_(v1::WorkerService::NewStub(channel)),
        blobs_(v1::BlobStore::NewStub(channel)),
        wake_(stop_, [this] { stopped_.notify_all(); }) {
    name_ = options.name;
    if (name_.empty()) {
      char host[256] = "worker";
      gethostname(host, sizeof host - 1);
      name_ = cat(host, "-", getpid());
    }
    epoch_ = static_cast<uint64_t>(
        std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count());
  }

  absl::Status run() {
    Clock::time_point worked = Clock::now();
    while (!stop_.stop_requested()) {
      if (!registered_) {
        const absl::Status status = register_once();
        if (absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status)) return status;
        if (!status.ok()) {
          if (idle_too_long(worked)) return status;
          log_once(status);
          back_off();
          continue;
        }
      }
      v1::AcquireLeasesResponse answer;
      const absl::Status status = acquire(&answer);
      if (absl::IsFailedPrecondition(status)) {
        registered_ = false;
        continue;
      }
      if (!status.ok() || answer.drain()) {
        // The coordinator is gone or shutting down. When it comes back, it will not know this worker.
        registered_ = false;
        if (idle_too_long(worked)) return absl::OkStatus();
        back_off();
        continue;
      }
      backoff_ = kFirstBackoff;
      for (const v1::Lease& lease : answer.leases()) {
        WL_RETURN_IF_ERROR(work(lease));
        worked = Clock::now();
      }
      // A job that waits for its checks counts as work too, but a worker without a lease need not wait for it.
      if (answer.leases().empty() && idle_too_long(worked)) return absl::OkStatus();
    }
    return absl::OkStatus();
  }

 private:
  bool idle_too_long(Clock::time_point worked) const {
    return options_.exit_when_idle_s >= 0 &&
           Clock::now() - worked >= std::chrono::duration<double>(options_.exit_when_idle_s);
  }

  void sleep(milliseconds time) {
    std::unique_lock lock(mutex_);
    stopped_.wait_for(lock, time, [this] { return stop_.stop_requested(); });
  }

  // Logs each reason once, since operations that are retried for ever would fill the log. An unreachable coordinator is
  // not logged.
  void log_once(const absl::Status& status) {
    if (absl::IsUnavailable(status) || status.message() == last_logged_) return;
    last_logged_ = std::string(status.message());
    spdlog::warn("worker {}: {}; trying again", name_, last_logged_);
  }

  void back_off() {
    sleep(backoff_);
    backoff_ = std::min(2 * backoff_, milliseconds(kMaxBackoff));
  }

  absl::Status register_once() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCallDeadline);
    v1::RegisterWorkerRequest request;
    request.set_name(name_);
    request.set_epoch(epoch_);
    for (const Device& device : devices_) *request.add_devices() = to_proto(device);
    v1::RegisterWorkerResponse answer;
    WL_RETURN_IF_ERROR(from_grpc(workers_->RegisterWorker(&context, request, &answer)));
    renew_ = milliseconds(std::max<int64_t>(10, static_cast<int64_t>(answer.renew_s() * 1000)));
    registered_ = true;
    backoff_ = kFirstBackoff;
    spdlog::info("worker {}: registered", name_);
    return absl::OkStatus();
  }

  absl::Status acquire(v1::AcquireLeasesResponse* answer) {
    double wait_s = options_.wait_s;
    if (options_.exit_when_idle_s >= 0) wait_s = std::min(wait_s, std::max(0.2, options_.exit_when_idle_s / 2));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kCallDeadline +
                         milliseconds(static_cast<int64_t>(wait_s * 1000)));
    const std::stop_callback cancel(stop_, [&] { context.TryCancel(); });
    v1::AcquireLeasesRequest request;
    request.set_worker(name_);
    request.set_epoch(epoch_);
    request.set_max(1);
    request.set_wait_s(wait_s);
    return from_grpc(workers_->AcquireLeases(&context, request, answer));
  }

  // Renews a lease while its batch is measured; tells the runner to stop when the lease is lost or cancelled.
  class Renewer {
   public:
    Renewer(Agent* agent, const v1::Lease& lease) : agent_(agent), lease_(lease), thread_([this] { renew(); }) {}
    ~Renewer() {
      {
        const std::lock_guard lock(mutex_);
        over_ = true;
      }
      changed_.notify_all();
      thread_.join();
    }
    const std::atomic<bool>* cancel() const { return &cancel_; }
    bool lost() const { return lost_; }
    void progress(const Progress& progress) {
      const std::lock_guard lock(mutex_);
      phase_ = progress.phase;
      counter_ = progress.counter;
    }

   private:
    void renew() {
      std::unique_lock lock(mutex_);
      const std::stop_callback stop(agent_->stop_, [this] { changed_.notify_all(); });
      for (;;) {
        changed_.wait_for(lock, agent_->renew_, [this] { return over_ || agent_->stop_.stop_requested(); });
        if (over_) return;
        if (agent_->stop_.stop_requested()) {
          cancel_ = true;
          return;
        }
        v1::RenewLeasesRequest request;
        request.set_worker(agent_->name_);
        request.set_epoch(agent_->epoch_);
        auto* item = request.add_items();
        item->set_lease_id(lease_.lease_id());
        item->set_attempt(lease_.attempt());
        item->set_phase(phase_);
        item->set_done(counter_);
        lock.unlock();
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() + agent_->renew_);
        v1::RenewLeasesResponse answer;
        const grpc::Status status = agent_->workers_->RenewLeases(&context, request, &answer);
        lock.lock();
        // A failed renewal decides nothing: the coordinator may be restarting, and its store decides when the results
        // are reported.
        if (!status.ok() || answer.outcomes().empty() || answer.outcomes(0) == v1::RenewLeasesResponse::OK) continue;
        lost_ = true;
        cancel_ = true;
        return;
      }
    }

    Agent* agent_;
    const v1::Lease& lease_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool over_ = false;
    std::string phase_;
    int64_t counter_ = 0;
    std::atomic<bool> cancel_ = false, lost_ = false;
    std::thread thread_;
  };

  // Measures the batch of a lease. Fails only if this worker cannot measure at all.
  absl::Status work(const v1::Lease& lease) {
    const absl::StatusOr<Batch> batch = from_proto(lease.batch());
    if (!batch.ok()) {
      spdlog::error("worker {}: lease {}: {}", name_, lease.lease_id(), std::string(batch.status().message()));
      release(lease, "unreadable");
      return absl::OkStatus();
    }
    absl::StatusOr<Measured> measured = absl::InternalError("");
    bool lost = false;
    {
      Renewer renewer(this, lease);
      MeasureOptions options = options_.measure;
      options.cancel = renewer.cancel();
      options.progress = [&](const Progress& progress) { renewer.progress(progress); };
      options.gpus = gpus_;
      options.state = &state_;
      measured = options_.measure_with ? options_.measure_with(*batch, options) : measure(*batch, options);
      lost = renewer.lost();
    }
    if (lost) return absl::OkStatus();
    if (!measured.ok()) {
      release(lease, std::string(measured.status().message()));
      return drop_device(measured.status());
    }
    if (measured->cancelled || stop_.stop_requested()) {
      release(lease, "draining");
      return absl::OkStatus();
    }
    report(lease, *batch, *measured);
    return absl::OkStatus();
  }

  // Stops offering a GPU that is quarantined. The worker ends with its last device.
  absl::Status drop_device(const absl::Status& status) {
    const std::optional<std::string> name = quarantined(status);
    const auto gpu =
        std::find_if(gpus_.begin(), gpus_.end(), [&](const Gpus::Gpu& known) { return known.name == name; });
    if (gpu == gpus_.end()) return status;
    spdlog::error("worker {}: {}", name_, std::string(status.message()));
    if (const auto at = std::find(devices_.begin(), devices_.end(), gpu->device); at != devices_.end())
      devices_.erase(at);
    gpus_.erase(gpu);
    registered_ = false;
    return devices_.empty() ? status : absl::OkStatus();
  }

  // Reports until the coordinator has the results, another attempt owns the batch, or the worker must stop.
  void report(const v1::Lease& lease, const Batch& batch, const Measured& measured) {
    v1::ReportResultsRequest request;
    request.set_worker(name_);
    request.set_epoch(epoch_);
    auto* item = request.add_items();
    item->set_lease_id(lease.lease_id());
    item->set_attempt(lease.attempt());
    item->set_batch_id(batch.id);
    for (const Trial& trial : measured.trials) *item->add_trials() = to_proto(trial);
    while (true) {
      absl::Status status = upload(measured);
      if (status.ok()) {
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() + kCallDeadline);
        v1::ReportResultsResponse answer;
        status = from_grpc(workers_->ReportResults(&context, request, &answer));
        if (status.ok()) {
          backoff_ = kFirstBackoff;
          return;
        }
      }
      if (absl::IsInvalidArgument(status)) {
        spdlog::error("worker {}: report of {} was refused: {}", name_, batch.id, std::string(status.message()));
        return;
      }
      if (stop_.stop_requested()) return;
      log_once(status);
      back_off();
    }
  }

  absl::Status upload(const Measured& measured) {
    if (measured.objects.empty()) return absl::OkStatus();
    std::map<std::string, const std::string*> objects;
    v1::FindMissingRequest request;
    for (const Trial& trial : measured.trials) {
      const auto object = measured.objects.find(trial.trial);
      if (object == measured.objects.end() || trial.object_sha256.empty()) continue;
      if (objects.emplace(trial.object_sha256, &object->second).second) request.add_digests(trial.object_sha256);
    }
    v1::FindMissingResponse missing;
    {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + kCallDeadline);
      WL_RETURN_IF_ERROR(from_grpc(blobs_->FindMissing(&context, request, &missing)));
    }
    for (const std::string& digest : missing.digests()) {
      const std::string& bytes = *objects.at(digest);
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + kCallDeadline);
      v1::UploadResponse answer;
      auto writer = blobs_->Upload(&context, &answer);
      size_t at = 0;
      do {
        v1::UploadRequest chunk;
        if (at == 0) chunk.set_digest(digest);
        chunk.set_data(bytes.substr(at, kBlobChunkBytes));
        at += kBlobChunkBytes;
        if (!writer->Write(chunk)) break;
      } while (at < bytes.size());
      writer->WritesDone();
      WL_RETURN_IF_ERROR(from_grpc(writer->Finish()));
    }
    return absl::OkStatus();
  }

  // Best effort: a lease that is not released expires by itself.
  void release(const v1::Lease& lease, const std::string& reason) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(2));
    v1::ReleaseLeasesRequest request;
    request.set_worker(name_);
    request.set_epoch(epoch_);
    request.set_reason(reason);
    auto* item = request.add_items();
    item->set_lease_id(lease.lease_id());
    item->set_attempt(lease.attempt());
    v1::ReleaseLeasesResponse answer;
    (void)workers_->ReleaseLeases(&context, request, &answer);
  }

  const AgentOptions& options_;
  std::vector<Device> devices_;  // devices in working order
  std::vector<Gpus::Gpu> gpus_;
  ReusedState state_;
  std::stop_token stop_;
  std::unique_ptr<v1::WorkerService::Stub> workers_;
  std::unique_ptr<v1::BlobStore::Stub> blobs_;
  std::string name_;
  uint64_t epoch_ = 0;
  bool registered_ = false;
  std::string last_logged_;  // the last reason that was logged
  milliseconds renew_{5000};
  milliseconds backoff_{kFirstBackoff};
  std::mutex mutex_;
  std::condition_variable stopped_;
  std::stop_callback<std::function<void()>> wake_;
};

}  // namespace

absl::Status run_agent(std::shared_ptr<grpc::Channel> channel, const AgentOptions& options, std::stop_token stop) {
  return Agent(std::move(channel), options, std::move(stop)).run();
}

}  // namespace wl

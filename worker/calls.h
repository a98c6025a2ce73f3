// The calls of a worker to its coordinator (proto/warploom/v1/worker.proto), as plain data: one object for one process
// under one name. Every call but release() ends soon after `stop` is requested. Errors are those of gRPC: Unavailable
// and DeadlineExceeded say that the coordinator cannot be reached now.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "compiler/base/rates.h"
#include "compiler/base/records.h"
#include "compiler/base/status.h"
#include "warploom/v1/blob.grpc.pb.h"
#include "warploom/v1/worker.grpc.pb.h"

namespace wl {

namespace v1 = ::warploom::v1;

class Calls {
 public:
  using milliseconds = std::chrono::milliseconds;
  // `patience`: how long a call may take at most, beyond what it is asked to wait.
  Calls(const std::shared_ptr<grpc::Channel>& channel, std::string name, milliseconds patience, std::stop_token stop);

  std::string name() const;
  milliseconds renew_interval() const;
  // Registers this process, under the epoch that it has or for the first time. FailedPrecondition: a newer process has
  // the name.
  // `machine`: own_machine(). `rates`: what is known of these devices, in their order.
  absl::Status register_process(const std::vector<Device>& devices, const std::string& machine,
                                const std::vector<MeasuredRates>& rates);
  // Waits for work. FailedPrecondition: this process has to register again.
  absl::StatusOr<v1::AcquireLeasesResponse> acquire(double wait_s);
  absl::StatusOr<v1::RenewLeasesResponse::Outcome> renew(const v1::Lease& lease, const std::string& phase,
                                                         int64_t counter);
  // Uploads the objects of these trials that the coordinator does not have.
  absl::Status upload(const std::vector<Trial>& trials, const std::map<int64_t, std::string>& objects);
  absl::Status report(const v1::Lease& lease, const std::vector<Trial>& trials);
  // Best effort: a lease that is not released expires by itself. `unable`: this worker cannot do the work; otherwise it
  // has to stop.
  void release(const v1::Lease& lease, const std::string& reason, bool unable);
  // Lets the coordinator know at once when this process ends, however it ends. Returns when the call has ended: for
  // Unimplemented by an older coordinator.
  absl::Status attend(grpc::ClientContext* context) const;

 private:
  template <typename Call>
  absl::Status limited(milliseconds limit, const Call& call);
  absl::Status upload_one(const std::string& digest, const std::string& bytes);
  template <typename Request>
  Request from_me() const;

  const milliseconds patience_;
  const std::stop_token stop_;
  const std::unique_ptr<v1::WorkerService::Stub> workers_;
  const std::unique_ptr<v1::BlobStore::Stub> blobs_;
  // Changes when the process registers, which it does again while another thread attends.
  struct Registered {
    std::string name;
    uint64_t epoch = 0;  // given by the coordinator; 0: none yet
    milliseconds renew{5000};
  };
  Registered registered() const;

  mutable std::mutex mutex_;
  Registered registered_;  // guarded by mutex_
};

// The machine on which this process runs, as a digest: of what the kernel says of its last start, which is the same in
// all containers of the machine and in no other machine. Empty: it says nothing.
std::string own_machine();

// Attends (Calls::attend) while one of these lives, again whenever the connection comes back.
class Attendance {
 public:
  explicit Attendance(const Calls* calls);
  ~Attendance();
  Attendance(const Attendance&) = delete;
  Attendance& operator=(const Attendance&) = delete;

 private:
  void attend(const std::stop_token& stop) const;

  const Calls* const calls_;
  std::jthread thread_;
};

// Renews a lease while one of these lives, with the progress that it is told.
class Renewer {
 public:
  Renewer(Calls* calls, const v1::Lease& lease, std::stop_token stop);
  ~Renewer();
  Renewer(const Renewer&) = delete;
  Renewer& operator=(const Renewer&) = delete;
  // Set when the lease is lost or cancelled, and when the worker has to stop.
  const std::atomic<bool>* cancel() const { return &cancel_; }
  bool lost() const { return lost_; }
  void progress(const std::string& phase, int64_t counter);

 private:
  void renew();

  Calls* const calls_;
  const v1::Lease& lease_;
  const std::stop_token stop_;
  std::mutex mutex_;  // guards the next four
  std::condition_variable changed_;
  bool over_ = false;
  std::string phase_;
  int64_t counter_ = 0;
  std::atomic<bool> cancel_ = false, lost_ = false;
  std::thread thread_;
};

}  // namespace wl

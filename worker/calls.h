// The calls of a worker to its coordinator (proto/warploom/v1/worker.proto). One object serves one process under one
// name, and is thread-safe. Every call except release() and attend() ends soon after `stop` is requested. Errors are
// those of gRPC: Unavailable and DeadlineExceeded mean that the coordinator cannot be reached at present.
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
  // `patience`: the time limit of one call, in addition to the time for which the call asks the coordinator to wait.
  Calls(const std::shared_ptr<grpc::Channel>& channel, std::string name, milliseconds patience, std::stop_token stop);

  std::string name() const;
  milliseconds renew_interval() const;
  // Registers this process for the first time, or again under its present epoch (the number of its registration).
  // `machine`: as own_machine() returns it. `rates`: the measured rates of the devices, in the order of the devices;
  // the rates of the last devices may be missing. FailedPrecondition: a newer process has taken the name.
  absl::Status register_process(const std::vector<Device>& devices, const std::string& machine,
                                const std::vector<MeasuredRates>& rates);
  // Waits up to `wait_s` seconds for leases, at most `most`. If the coordinator has none in this time, the answer is
  // empty.
  // FailedPrecondition: this process has to register again.
  absl::StatusOr<v1::AcquireLeasesResponse> acquire(int most, double wait_s);
  absl::StatusOr<v1::RenewLeasesResponse::Outcome> renew(const v1::Lease& lease, const std::string& phase,
                                                         int64_t counter);
  // Uploads those compiled objects of the trials that the coordinator does not have yet. `objects`: the bytes of each
  // object, by the number of its trial.
  absl::Status upload(const std::vector<Trial>& trials, const std::map<int64_t, std::string>& objects);
  absl::Status report(const v1::Lease& lease, const std::vector<Trial>& trials);
  // Returns a lease to the coordinator, best effort within 2 s: a lease that is not returned expires by itself.
  // `unable`: true if this worker cannot do the work, false if it was told to stop.
  void release(const v1::Lease& lease, const std::string& reason, bool unable);
  // Keeps a call open by which the coordinator notices at once that this process has ended, for whatever reason. Blocks
  // until the call ends, and returns its error. Unimplemented: an older coordinator does not have this call.
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
  // The coordinator's answer to the latest registration. register_process() writes it, possibly while another thread is
  // in attend().
  struct Registered {
    std::string name;
    uint64_t epoch = 0;  // number of this registration, assigned by the coordinator; 0: not registered yet
    milliseconds renew{5000};
  };
  Registered registered() const;

  mutable std::mutex mutex_;
  Registered registered_;  // guarded by mutex_
};

// Returns a digest that identifies the machine on which this process runs. It is computed from Linux's boot id, which
// is the same in all containers of a machine and differs between machines. Empty: Linux does not report a boot id.
std::string own_machine();

// Keeps Calls::attend() open on a thread of its own while the object lives, and calls it again whenever it fails.
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

// Renews a lease on a thread of its own while the object lives, and sends the latest progress with each renewal.
class Renewer {
 public:
  Renewer(Calls* calls, const v1::Lease& lease, std::stop_token stop);
  ~Renewer();
  Renewer(const Renewer&) = delete;
  Renewer& operator=(const Renewer&) = delete;
  // Returns a flag that becomes true when the lease is lost or cancelled, or when the worker has to stop.
  const std::atomic<bool>* cancel() const { return &cancel_; }
  bool lost() const { return lost_; }
  void progress(const std::string& phase, int64_t counter);

 private:
  void renew();

  Calls* const calls_;
  const v1::Lease& lease_;
  const std::stop_token stop_;
  std::mutex mutex_;  // guards over_, phase_ and counter_
  std::condition_variable changed_;
  bool over_ = false;
  std::string phase_;
  int64_t counter_ = 0;
  std::atomic<bool> cancel_ = false, lost_ = false;
  std::thread thread_;
};

}  // namespace wl

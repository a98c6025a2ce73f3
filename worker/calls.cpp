#include "worker/calls.h"

#include <algorithm>
#include <fstream>

#include "compiler/base/names.h"
#include "compiler/base/sha256.h"
#include "proto/backoff.h"
#include "proto/limits.h"
#include "proto/rpc.h"
#include "proto/transfer.h"
#include "proto/wire.h"

namespace wl {
namespace {

constexpr auto kAttendAgain = std::chrono::milliseconds(100), kMostAttendAgain = std::chrono::milliseconds(2000);

}  // namespace

Calls::Calls(const std::shared_ptr<grpc::Channel>& channel, std::string name, milliseconds patience,
             std::stop_token stop)
    : patience_(patience),
      stop_(std::move(stop)),
      workers_(v1::WorkerService::NewStub(channel)),
      blobs_(v1::BlobStore::NewStub(channel)),
      registered_{.name = std::move(name)} {}

Calls::Registered Calls::registered() const {
  const std::lock_guard lock(mutex_);
  return registered_;
}

std::string Calls::name() const {
  return registered().name;
}
Calls::milliseconds Calls::renew_interval() const {
  return registered().renew;
}

template <typename Call>
absl::Status Calls::limited(milliseconds limit, const Call& call) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + limit);
  const std::stop_callback cancel(stop_, [&] { context.TryCancel(); });
  return from_grpc(call(&context));
}

template <typename Request>
Request Calls::from_me() const {
  const Registered me = registered();
  Request request;
  request.set_worker(me.name);
  request.set_epoch(me.epoch);
  return request;
}

absl::Status Calls::register_process(const std::vector<Device>& devices, const std::string& machine,
                                     const std::vector<MeasuredRates>& rates) {
  const Registered me = registered();
  v1::RegisterWorkerRequest request;
  request.set_machine(machine);
  request.set_name(me.name);
  request.set_epoch(me.epoch);
  for (const Device& device : devices) *request.add_devices() = to_proto(device);
  for (const MeasuredRates& known : rates) *request.add_rates() = to_proto(known);
  v1::RegisterWorkerResponse answer;
  WL_RETURN_IF_ERROR(
      limited(patience_, [&](auto* context) { return workers_->RegisterWorker(context, request, &answer); }));
  const std::lock_guard lock(mutex_);
  registered_.renew = milliseconds(std::max<int64_t>(10, static_cast<int64_t>(answer.renew_s() * 1000)));
  registered_.epoch = answer.epoch();
  // An older coordinator answers a registration without a name; then the name in the request is valid.
  if (!answer.name().empty()) registered_.name = answer.name();
  return absl::OkStatus();
}

absl::StatusOr<v1::AcquireLeasesResponse> Calls::acquire(int most, double wait_s) {
  auto request = from_me<v1::AcquireLeasesRequest>();
  request.set_max(1);
  request.set_max_promotions(most);
  request.set_wait_s(wait_s);
  v1::AcquireLeasesResponse answer;
  const auto limit = patience_ + milliseconds(static_cast<int64_t>(wait_s * 1000));
  WL_RETURN_IF_ERROR(limited(limit, [&](auto* context) { return workers_->AcquireLeases(context, request, &answer); }));
  return answer;
}

absl::StatusOr<v1::RenewLeasesResponse::Outcome> Calls::renew(const v1::Lease& lease, const std::string& phase,
                                                              int64_t counter) {
  auto request = from_me<v1::RenewLeasesRequest>();
  auto* item = request.add_items();
  item->set_lease_id(lease.lease_id());
  item->set_attempt(lease.attempt());
  item->set_phase(phase);
  item->set_done(counter);
  v1::RenewLeasesResponse answer;
  WL_RETURN_IF_ERROR(
      limited(renew_interval(), [&](auto* context) { return workers_->RenewLeases(context, request, &answer); }));
  if (answer.outcomes().empty()) return absl::UnavailableError("the renewal was not answered");
  return answer.outcomes(0);
}

absl::Status Calls::upload(const std::vector<Trial>& trials, const std::map<int64_t, std::string>& objects) {
  std::map<std::string, const std::string*> by_digest;
  v1::FindMissingRequest request;
  for (const Trial& trial : trials) {
    const auto object = objects.find(trial.trial);
    if (object == objects.end() || trial.object_sha256.empty()) continue;
    if (by_digest.emplace(trial.object_sha256, &object->second).second) request.add_digests(trial.object_sha256);
  }
  if (by_digest.empty()) return absl::OkStatus();
  v1::FindMissingResponse missing;
  WL_RETURN_IF_ERROR(
      limited(patience_, [&](auto* context) { return blobs_->FindMissing(context, request, &missing); }));
  for (const std::string& digest : missing.digests()) {
    const auto object = by_digest.find(digest);
    if (object == by_digest.end()) return absl::InternalError(cat("the coordinator misses an object ", digest));
    WL_RETURN_IF_ERROR(upload_one(digest, *object->second));
  }
  return absl::OkStatus();
}

absl::Status Calls::upload_one(const std::string& digest, const std::string& bytes) {
  return limited(patience_, [&](auto* context) { return wl::upload(*blobs_, context, digest, bytes); });
}

absl::Status Calls::report(const v1::Lease& lease, const std::vector<Trial>& trials) {
  auto request = from_me<v1::ReportResultsRequest>();
  auto* item = request.add_items();
  item->set_lease_id(lease.lease_id());
  item->set_attempt(lease.attempt());
  item->set_batch_id(lease.batch().id());
  for (const Trial& trial : trials) *item->add_trials() = to_proto(trial);
  v1::ReportResultsResponse answer;
  return limited(patience_, [&](auto* context) { return workers_->ReportResults(context, request, &answer); });
}

void Calls::release(const v1::Lease& lease, const std::string& reason, bool unable) {
  auto request = from_me<v1::ReleaseLeasesRequest>();
  request.set_reason(fitted(reason, TextKind::kText, kMostMessage));
  request.set_unable(unable);
  auto* item = request.add_items();
  item->set_lease_id(lease.lease_id());
  item->set_attempt(lease.attempt());
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(2));
  v1::ReleaseLeasesResponse answer;
  (void)workers_->ReleaseLeases(&context, request, &answer);
}

absl::Status Calls::attend(grpc::ClientContext* context) const {
  const auto stream = workers_->Attend(context, from_me<v1::AttendRequest>());
  v1::AttendResponse nothing;
  while (stream->Read(&nothing)) {
  }
  return from_grpc(stream->Finish());
}

std::string own_machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  return boot.empty() ? "" : sha256_hex("warploom machine " + boot);
}

Attendance::Attendance(const Calls* calls)
    : calls_(calls), thread_([this](const std::stop_token& stop) { attend(stop); }) {}

Attendance::~Attendance() = default;  // the destructor of std::jthread asks the thread to stop, and joins it

void Attendance::attend(const std::stop_token& stop) const {
  Backoff backoff(kAttendAgain, kMostAttendAgain);
  std::mutex mutex;
  std::condition_variable_any waits;
  while (!stop.stop_requested()) {
    grpc::ClientContext context;
    const std::stop_callback cancel(stop, [&] { context.TryCancel(); });
    const auto begun = std::chrono::steady_clock::now();
    const absl::Status end = calls_->attend(&context);
    // FailedPrecondition: either another process has the worker's name, or this process has to register again and then
    // starts a new Attendance. Unimplemented: the coordinator is older than this call. No further call is made in any
    // of these cases.
    if (absl::IsUnimplemented(end) || absl::IsFailedPrecondition(end)) return;
    // A call that lasted this long was accepted by the coordinator, so the next delay is short again.
    if (std::chrono::steady_clock::now() - begun > kMostAttendAgain) backoff.reset();
    std::unique_lock lock(mutex);
    waits.wait_for(lock, stop, backoff.next(), [] { return false; });
  }
}

Renewer::Renewer(Calls* calls, const v1::Lease& lease, std::stop_token stop)
    : calls_(calls), lease_(lease), stop_(std::move(stop)), thread_([this] { renew(); }) {}

Renewer::~Renewer() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Renewer::progress(const std::string& phase, int64_t counter) {
  const std::lock_guard lock(mutex_);
  phase_ = phase;
  counter_ = counter;
}

void Renewer::renew() {
  const std::stop_callback wake(stop_, [this] { changed_.notify_all(); });
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait_for(lock, calls_->renew_interval(), [this] { return over_ || stop_.stop_requested(); });
    if (over_) return;
    if (stop_.stop_requested()) {
      cancel_ = true;
      return;
    }
    const std::string phase = phase_;
    const int64_t counter = counter_;
    lock.unlock();
    const auto outcome = calls_->renew(lease_, phase, counter);
    lock.lock();
    // A failed renewal has no consequences: the coordinator may be restarting, and its store decides about the lease
    // when the results are reported.
    if (!outcome.ok() || *outcome == v1::RenewLeasesResponse::OK) continue;
    lost_ = true;
    cancel_ = true;
    return;
  }
}

}  // namespace wl

#include "server/services/watch.h"

#include <grpcpp/alarm.h>

#include <chrono>
#include <utility>

#include "proto/limits.h"
#include "proto/rpc.h"

namespace wl {
namespace {

constexpr auto kLastWrite = std::chrono::seconds(1);

// The stream of one call of WatchJob. The object owns itself until gRPC no longer needs it.
class WatchCall final : public grpc::ServerWriteReactor<v1::Job>, public std::enable_shared_from_this<WatchCall> {
 public:
  explicit WatchCall(const Serving& serving)
      : engine_(serving.engine), waiting_(serving.waiting), counted_(waiting_->take(1)) {}

  static WatchCall* begin(const Serving& serving, const grpc::CallbackServerContext& context,
                          const v1::WatchJobRequest& request) {
    const absl::StatusOr<Reader> reader = reader_of(serving, context);
    auto call = std::make_shared<WatchCall>(serving);
    call->self_ = call;
    call->held_ = hold_call(serving, context, "/warploom.v1.TuningService/WatchJob", kLongestWait,
                            [call = call.get(), &context](const absl::Status& status) {
                              if (!call->end(to_grpc(status))) call->cancel_soon(&context);
                            });
    if (const absl::Status fields = check_fields(request); !fields.ok()) {
      call->end(to_grpc(fields));
    } else if (!reader.ok()) {
      call->end(to_grpc(reader.status()));
    } else if (!call->counted_ || !serving.quick->post([call, serving, reader = *reader, request] {
                 call->watch(within_memory([&] { return job_for(serving, reader, request.name()); }),
                             request.resume_version());
               })) {
      call->end(too_busy());
    }
    return call.get();
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(mutex_);
    writing_ = false;
    if (!ok && !end_) end_ = grpc::Status::CANCELLED;
    if (sent_last_ && !end_) end_ = grpc::Status::OK;
    go_on();
  }
  void OnCancel() override { end(grpc::Status::CANCELLED); }
  void OnDone() override {
    std::shared_ptr<JobWatch> watch;
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
      watch = std::exchange(watch_, nullptr);
    }
    late_.Cancel();
    // The check of the caller (held_) ends here and not in the destructor, because a running alarm may keep this object
    // alive for longer than the coordinator.
    held_.reset();
    if (watch != nullptr) engine_->unwatch(watch);
    if (counted_) waiting_->give(1);
    self_.reset();
  }

 private:
  // Begins to watch the job. Called on a thread of a work pool, because it may read the store.
  void watch(const absl::StatusOr<int64_t>& id, uint64_t seen) {
    if (!id.ok()) return (void)end(to_grpc(id.status()));
    auto watch = engine_->watch(*id, seen, [call = shared_from_this()](absl::StatusOr<std::shared_ptr<const Job>> job) {
      call->tell(std::move(job));
    });
    if (!watch.ok()) return (void)end(to_grpc(watch.status()));
    {
      const std::lock_guard lock(mutex_);
      if (!done_) {
        watch_ = *std::move(watch);
        return;
      }
    }
    engine_->unwatch(*watch);
  }

  void tell(absl::StatusOr<std::shared_ptr<const Job>> job) {
    if (!job.ok()) return (void)end(to_grpc(job.status()));
    const std::lock_guard lock(mutex_);
    if (next_ == nullptr || !is_done(next_->state)) next_ = *std::move(job);
    go_on();
  }

  // Cancels the stream after one second (kLastWrite). Until then, a write that is in progress may end, so that the
  // caller can still be told why the stream ends. Without the cancellation, a caller that does not read would keep that
  // write, and so the stream, open for ever.
  void cancel_soon(const grpc::CallbackServerContext* context) {
    late_.Set(std::chrono::system_clock::now() + kLastWrite, [weak = weak_from_this(), context](bool in_time) {
      const std::shared_ptr<WatchCall> call = weak.lock();
      if (call == nullptr || !in_time) return;
      const std::lock_guard lock(call->mutex_);
      if (!call->done_) context->TryCancel();
    });
  }

  // Ends the stream with `status`. Returns false if the stream can end only when the current write is over.
  bool end(const grpc::Status& status) {
    const std::lock_guard lock(mutex_);
    if (!end_) end_ = status;
    go_on();
    return finished_;
  }

  // Starts the next write or finishes the stream, unless a write is in progress. The caller must hold mutex_.
  void go_on() {
    if (writing_ || finished_) return;
    if (end_) {
      finished_ = true;
      Finish(*end_);
    } else if (next_ != nullptr && !sent_last_) {
      const std::shared_ptr<const Job> job = std::exchange(next_, nullptr);
      message_ = to_proto(*job);
      sent_last_ = is_done(job->state);
      writing_ = true;
      StartWrite(&message_);
    }
  }

  Engine* const engine_;
  Budget* const waiting_;
  const bool counted_;
  std::mutex mutex_;  // guards the members declared below
  std::shared_ptr<WatchCall> self_;
  std::shared_ptr<JobWatch> watch_;
  std::shared_ptr<const Job> next_;  // the newest state of the job, if it is not sent yet
  v1::Job message_;                  // the state of the job that is being written
  std::optional<grpc::Status> end_;
  bool writing_ = false, sent_last_ = false, finished_ = false, done_ = false;
  grpc::Alarm late_;
  // Declared last, so destroyed first: its thread calls end().
  std::unique_ptr<OpenCalls::Held> held_;
};

}  // namespace

absl::StatusOr<int64_t> job_for(const Serving& serving, const Reader& reader, const std::string& name) {
  const std::optional<int64_t> id = job_id(name);
  bool seen = id.has_value();
  if (seen && !reader.every) {
    WL_ASSIGN_OR_RETURN(const std::optional<std::string> team, serving.store->team_of_job(*id));
    seen = team == reader.team;
  }
  if (!seen) return absl::NotFoundError(cat("there is no job \"", name, "\"; list them with `warploom jobs`"));
  return *id;
}

grpc::ServerWriteReactor<v1::Job>* watch_job(const Serving& serving, const grpc::CallbackServerContext& context,
                                             const v1::WatchJobRequest& request) {
  return WatchCall::begin(serving, context, request);
}

}  // namespace wl

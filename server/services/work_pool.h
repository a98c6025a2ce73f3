// A pool of threads that answer calls which may block. The number of threads is fixed: gRPC's own threads only receive
// calls and send answers.
#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "compiler/base/status.h"
#include "proto/rpc.h"
#include "server/engine/bounds/turns.h"

namespace wl {

class WorkPool {
 public:
  // `max_queued`: most pieces of work that may be queued. `nice`: the nice value of the threads (setpriority(2)).
  WorkPool(int threads, size_t max_queued, int nice = 0) : count_(threads), max_queued_(max_queued), nice_(nice) {}
  ~WorkPool();  // runs all queued work, then ends the threads
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  void start();  // Starts the threads. Called once, after everything exists that the work uses.
  // Queues `work`. Callers take turns, however much each of them has queued. Returns false and drops `work` if the
  // queue is full, or if `caller` is not empty and has filled a quarter of the queue. Thread-safe.
  bool post(std::function<void()> work, const std::string& caller = "");

 private:
  void serve();

  const int count_;
  const size_t max_queued_;
  const int nice_;
  std::mutex mutex_;  // guards the members declared below, except the threads
  std::condition_variable queued_;
  CallerTurns<std::function<void()>> turns_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

grpc::Status too_busy();  // Returns the status of a call that the pool refuses, since too many calls wait already.

// Returns the error of a call that needs more memory than is free, while other calls go on.
absl::Status no_memory();

// Returns what `work` returns, a Status or a StatusOr, or no_memory() if `work` throws because memory is short.
template <typename Work>
auto within_memory(Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

// Answers a unary call with what `handle` returns on a thread of the pool. If the call was cancelled before that,
// `handle` is not called.
template <typename Handle>
grpc::ServerUnaryReactor* answer_on(WorkPool* pool, grpc::CallbackServerContext* context, Handle handle,
                                    const std::string& caller = "") {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const auto answer = [=]() -> grpc::Status {
    try {
      return context->IsCancelled() ? grpc::Status::CANCELLED : handle();
    } catch (const std::bad_alloc&) {
      return to_grpc(no_memory());
    }
  };
  const bool taken = pool->post([=] { reactor->Finish(answer()); }, caller);
  if (!taken) reactor->Finish(too_busy());
  return reactor;
}

}  // namespace wl

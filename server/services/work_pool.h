// The threads on which calls are answered that may block. Their number is fixed, whatever the number of calls: gRPC's
// own threads only take calls in and send answers out.
#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace wl {

class WorkPool {
 public:
  WorkPool(int threads, size_t max_queued) : count_(threads), max_queued_(max_queued) {}
  ~WorkPool();  // Runs what is queued first.
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  void start();  // Call it once, when all that the work uses is there.
  // Any thread. False: so much is queued that nothing more is taken, and `work` does not run.
  bool post(std::function<void()> work);

 private:
  void serve();

  const int count_;
  const size_t max_queued_;
  std::mutex mutex_;  // guards the rest
  std::condition_variable queued_;
  std::deque<std::function<void()>> work_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

grpc::Status too_busy();  // What a call hears that the pool did not take.

// Answers a unary call with what `handle` returns. A call whose caller has gone by its turn is not handled.
template <typename Handle>
grpc::ServerUnaryReactor* answer_on(WorkPool* pool, grpc::CallbackServerContext* context, Handle handle) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  const bool taken = pool->post([=] { reactor->Finish(context->IsCancelled() ? grpc::Status::CANCELLED : handle()); });
  if (!taken) reactor->Finish(too_busy());
  return reactor;
}

}  // namespace wl

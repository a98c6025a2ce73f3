// Tells the coordinator what kernels a process runs, about once a minute, on a thread of its own.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

#include "client/program/uses.h"
#include "compiler/base/status.h"

namespace wl {

// Thread-safe. Counting never makes another call fail: if there is no memory or no thread, nothing is told.
class UseReporter {
 public:
  // Tells a coordinator of uses within `patience`, or returns Cancelled once a stop is requested.
  using Tell = std::function<absl::Status(const std::vector<KernelUse>& uses, std::chrono::milliseconds patience,
                                          std::stop_token)>;

  // `every`: time between two calls of `tell`; the first comes sooner, so that processes that were started together do
  // not call together.
  explicit UseReporter(Tell tell, std::chrono::milliseconds every = std::chrono::minutes(1));
  ~UseReporter();  // calls stop()
  UseReporter(const UseReporter&) = delete;
  UseReporter& operator=(const UseReporter&) = delete;

  // Reports what the meter counts from now on. The first call starts the thread; so does the first call in a process
  // that a fork made, which has no thread of its parent's.
  void add(std::shared_ptr<UseMeter> meter);
  // Tells once more what was run since the last call, which takes about a second at most, and ends the thread. Later
  // meters are not reported.
  void stop();

 private:
  struct Running;

  const Tell tell_;
  const std::chrono::milliseconds every_;
  std::mutex mutex_;  // guards the members declared below
  bool stopped_ = false;
  pid_t process_ = 0;  // the process that started the thread
  std::unique_ptr<Running> running_;
};

}  // namespace wl

// Tells the coordinator what kernels a process runs, about once a minute, on a thread of its own.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "client/program/uses.h"
#include "compiler/base/status.h"

namespace wl {

class UseReporter {
 public:
  // Tells a coordinator of uses within `patience`, or returns Cancelled once a stop is requested.
  using Tell = std::function<absl::Status(const std::vector<KernelUse>& uses, std::chrono::milliseconds patience,
                                          std::stop_token)>;

  // `every`: time between two calls of `tell`.
  explicit UseReporter(Tell tell, std::chrono::milliseconds every = std::chrono::minutes(1))
      : tell_(std::move(tell)), every_(every) {}
  // Tells once more what was run since the last call, within a second.
  ~UseReporter();
  UseReporter(const UseReporter&) = delete;
  UseReporter& operator=(const UseReporter&) = delete;

  // Reports what the meter counts from now on. The first call starts the thread. Thread-safe.
  void add(std::shared_ptr<UseMeter> meter);

 private:
  void serve(const std::stop_token& stop);
  void collect();
  void tell(std::chrono::milliseconds patience, std::stop_token stop);

  const Tell tell_;
  const std::chrono::milliseconds every_;
  std::mutex mutex_;  // guards meters_
  std::condition_variable_any stopped_;
  std::vector<std::shared_ptr<UseMeter>> meters_;
  // Used by the thread only: what the coordinator was not told yet, by key, and whether it wants to be told nothing.
  std::map<std::string, KernelUse> untold_;
  bool refused_ = false;
  std::jthread thread_;
};

}  // namespace wl

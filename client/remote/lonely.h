// A job that no worker serves: what it waits for is said, at growing intervals, and for how long it may wait is
// bounded.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "client/remote/service.h"

namespace wl {

struct LonelyOptions {
  std::string server;                           // as the user names the coordinator
  double bound_s = 0;                           // of waiting without a worker; 0: none
  std::function<void(const std::string&)> say;  // on a thread of its own
  std::function<void()> give_up;                // likewise, once, when the bound is reached
};

class Lonely {
 public:
  // `service` must outlive it.
  Lonely(Service* service, LonelyOptions options);
  ~Lonely();
  Lonely(const Lonely&) = delete;
  Lonely& operator=(const Lonely&) = delete;

  void seen(const Job& job);  // the state of the job changed; any thread
  bool gave_up() const;
  std::string message() const;  // what is waited for, and which workers there are; asks the coordinator

 private:
  void watch();

  Service* const service_;
  const LonelyOptions options_;
  mutable std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  std::string target_;
  bool alone_ = false, over_ = false, gave_up_ = false;
  std::chrono::steady_clock::time_point since_;
  std::thread thread_;
};

// The workers of a fleet in a sentence: "2 workers are there: node1 (cpu:avx2), node2 (cuda:sm_90, lost)". Pure, for
// tests.
std::string workers_text(const std::vector<WorkerSummary>& workers);

}  // namespace wl

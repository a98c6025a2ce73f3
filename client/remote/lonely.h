// Watches a job for times in which no worker serves it: reports them at growing intervals, and gives up after a limit.
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
  std::string server;                           // the coordinator's address, as the user gave it
  double bound_s = 0;                           // limit of seconds without a worker; 0: none
  std::function<void(const std::string&)> say;  // shows a message to the user; called on a thread of Lonely
  std::function<void()> give_up;                // called once, on the same thread, when the limit is reached
};

class Lonely {
 public:
  // `service` must outlive the object.
  Lonely(Service* service, LonelyOptions options);
  ~Lonely();
  Lonely(const Lonely&) = delete;
  Lonely& operator=(const Lonely&) = delete;

  void seen(const Job& job);  // must be called with each state of the job; any thread may do so
  bool gave_up() const;
  std::string message() const;  // says for which target no worker is there, and which workers are; asks the coordinator

 private:
  void watch();

  Service* const service_;
  const LonelyOptions options_;
  mutable std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  std::string target_;
  bool alone_ = false, over_ = false, gave_up_ = false;  // no worker serves the job; the thread must end; limit reached
  std::chrono::steady_clock::time_point since_;          // when alone_ changed
  std::thread thread_;
};

// Describes the workers of a fleet: "2 workers are there: node1 (cpu:avx2), node2 (cuda:sm_90, lost)". The function is
// pure, for tests.
std::string workers_text(const std::vector<WorkerSummary>& workers);

}  // namespace wl

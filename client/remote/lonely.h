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
  std::string server;  // the coordinator's address, as the user gave it
  double bound_s = 0;  // largest number of seconds that a job may be without a worker; 0: no limit
  std::function<void(const std::string&)> say;  // shows a message to the user; is called on the object's own thread
  std::function<void()> give_up;                // is called once, on the object's own thread, when the limit is reached
};

class Lonely {
 public:
  // `service` must outlive the object.
  Lonely(Service* service, LonelyOptions options);
  ~Lonely();
  Lonely(const Lonely&) = delete;
  Lonely& operator=(const Lonely&) = delete;

  void seen(const Job& job);  // must be called with each state of the job, on any thread
  bool gave_up() const;
  // Asks the coordinator which workers there are, and returns a message that names them and the target for which
  // there is no worker.
  std::string message() const;

 private:
  void watch();

  Service* const service_;
  const LonelyOptions options_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::string target_;
  // alone_: no worker serves the job. over_: the thread must end. gave_up_: the limit was reached.
  bool alone_ = false, over_ = false, gave_up_ = false;
  std::chrono::steady_clock::time_point since_;  // time at which alone_ last changed
  std::thread thread_;
};

// Describes the workers of a fleet: "2 workers are there: node1 (cpu:avx2), node2 (cuda:sm_90, lost)". The function is
// pure, for tests.
std::string workers_text(const std::vector<WorkerSummary>& workers);

}  // namespace wl

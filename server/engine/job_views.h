// The states of unfinished jobs that clients see: copies, which the engine's thread publishes and any thread may read
// or watch. Jobs without a view are read from the store instead. No function calls another part of the engine.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "compiler/base/job.h"
#include "compiler/base/status.h"
#include "server/engine/engine.h"
#include "server/engine/event_loop.h"

namespace wl {

// The time after which a view's elapsed and remaining time are updated if nothing else changes.
inline constexpr auto kTimesEvery = std::chrono::seconds(1);

class JobViews {
 public:
  // Version numbers start from the present time, so a restarted coordinator's are larger than those that watchers saw
  // before.
  JobViews();
  ~JobViews();  // calls leave()
  JobViews(const JobViews&) = delete;
  JobViews& operator=(const JobViews&) = delete;

  void begin(int64_t id, Job job);  // Adds the first view of a job that has none.
  // Replaces the view, gives it a new version and tells its watchers, if anything has changed. A change of the elapsed
  // or remaining time alone counts once every kTimesEvery.
  void publish(int64_t id, Job job, Clock::time_point now = Clock::now());
  void forget(int64_t id);
  std::shared_ptr<const Job> find(int64_t id) const;  // returns the view of a job; null: it has none
  std::map<JobState, int64_t> counts() const;         // number of jobs with a view, by state
  // Calls `tell` with the job's view now, unless the view's version is `seen`, and after every change. A job may get
  // its first view later. The watch lasts until unwatch(), even after forget(). `tell` runs on this object's thread,
  // without the lock, and gets only the newest version; after leave() it gets Unavailable once.
  std::shared_ptr<JobWatch> watch(int64_t id, uint64_t seen, TellJob tell);
  // Ends the watch; a call of `tell` that has begun may still be running.
  void unwatch(const std::shared_ptr<JobWatch>& watch);
  void leave();  // Ends all watches, also those that begin later, with Unavailable.

 private:
  struct View {
    std::shared_ptr<const Job> job;
    Clock::time_point published;
  };
  using Watches = std::multimap<int64_t, std::shared_ptr<JobWatch>>;

  void replace(int64_t id, View& view, Job job, Clock::time_point now);  // The caller must hold mutex_.
  void make_due(const std::shared_ptr<JobWatch>& watch);                 // The caller must hold mutex_.
  void serve();

  mutable std::mutex mutex_;  // guards the members declared below, except the thread
  std::condition_variable changed_;
  std::map<int64_t, View> views_;
  Watches watches_;                            // the watches of each job, by the job's id
  std::deque<std::shared_ptr<JobWatch>> due_;  // watches whose callback `tell` is to be called
  uint64_t version_ = 0;
  bool leaving_ = false, stopping_ = false;
  std::thread thread_;  // the thread that calls the callbacks of watches
};

}  // namespace wl

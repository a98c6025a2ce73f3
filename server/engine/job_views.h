// What clients see of the jobs that are not done: a copy that the engine's thread publishes and any thread reads or
// watches. A job that has no view here is read from the store. No function calls another part of the engine.
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

// How often the times of a view that pass by themselves are brought up to date.
inline constexpr auto kTimesEvery = std::chrono::seconds(1);

class JobViews {
 public:
  // A restarted coordinator's versions are above those that its watchers saw before.
  JobViews();
  ~JobViews();  // leave()
  JobViews(const JobViews&) = delete;
  JobViews& operator=(const JobViews&) = delete;

  void begin(int64_t id, Job job);  // The first view of a job; keeps the one that is there already.
  // Replaces the view, sets its version and tells who watches it, if anything has changed. The times that pass with
  // every call count as a change after kTimesEvery.
  void publish(int64_t id, Job job, Clock::time_point now = Clock::now());
  void forget(int64_t id);
  std::shared_ptr<const Job> find(int64_t id) const;  // null: there is no view
  std::map<JobState, int64_t> counts() const;         // of the jobs that have a view, by state
  // Tells the view, now and whenever it changes, unless its version is `seen`; also a view that begins later. Lasts
  // until unwatch(), beyond forget(). `tell` is called on the thread of the views, without the lock and with the newest
  // version; once with Unavailable after leave().
  std::shared_ptr<JobWatch> watch(int64_t id, uint64_t seen, TellJob tell);
  // Not told again, except by a call of `tell` that has begun.
  void unwatch(const std::shared_ptr<JobWatch>& watch);
  void leave();  // Ends every watch, now and from now on.

 private:
  struct View {
    std::shared_ptr<const Job> job;
    Clock::time_point published;
  };
  using Watches = std::multimap<int64_t, std::shared_ptr<JobWatch>>;

  void replace(int64_t id, View& view, Job job, Clock::time_point now);  // with the lock held
  void make_due(const std::shared_ptr<JobWatch>& watch);                 // with the lock held
  void serve();

  mutable std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  std::map<int64_t, View> views_;
  Watches watches_;                            // by job
  std::deque<std::shared_ptr<JobWatch>> due_;  // to be told
  uint64_t version_ = 0;
  bool leaving_ = false, stopping_ = false;
  std::thread thread_;  // tells
};

}  // namespace wl

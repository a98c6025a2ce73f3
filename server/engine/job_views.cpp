#include "server/engine/job_views.h"

#include <algorithm>
#include <utility>

#include "server/store/store.h"

namespace wl {
namespace {

// Whether two states of a job differ in more than the elapsed and remaining time.
bool differ(const Job& a, const Job& b) {
  JobProgress progress = a.progress;
  progress.elapsed_s = b.progress.elapsed_s;
  progress.left_s = b.progress.left_s;
  return !(progress == b.progress) || a.state != b.state || a.cancelling != b.cancelling || a.error != b.error ||
         a.device != b.device || a.finished_unix_ms != b.finished_unix_ms ||
         a.result.has_value() != b.result.has_value() || a.label != b.label;
}

}  // namespace

// A client's watch of a job. All fields are guarded by JobViews::mutex_.
struct JobWatch {
  int64_t id = 0;
  TellJob tell;  // the watcher's callback; null: the watch has ended
  uint64_t seen = 0;
  std::shared_ptr<const Job> newest;
  bool due = false;
};

JobViews::JobViews() : version_(static_cast<uint64_t>(unix_ms_now()) << 10), thread_([this] { serve(); }) {}

JobViews::~JobViews() {
  leave();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void JobViews::begin(int64_t id, Job job) {
  const std::lock_guard lock(mutex_);
  if (const auto [view, is_new] = views_.try_emplace(id); is_new)
    replace(id, view->second, std::move(job), Clock::now());
}

std::map<JobState, int64_t> JobViews::counts() const {
  const std::lock_guard lock(mutex_);
  std::map<JobState, int64_t> counts;
  for (const auto& [id, view] : views_)
    if (view.job != nullptr) ++counts[view.job->state];
  return counts;
}

void JobViews::publish(int64_t id, Job job, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  View& view = views_[id];
  if (view.job != nullptr && now - view.published < kTimesEvery && !differ(job, *view.job)) return;
  replace(id, view, std::move(job), now);
}

void JobViews::replace(int64_t id, View& view, Job job, Clock::time_point now) {
  job.version = ++version_;
  view.job = std::make_shared<const Job>(std::move(job));
  view.published = now;
  const auto [first, last] = watches_.equal_range(id);
  for (auto at = first; at != last; ++at) {
    at->second->newest = view.job;
    make_due(at->second);
  }
}

void JobViews::forget(int64_t id) {
  const std::lock_guard lock(mutex_);
  views_.erase(id);
}

std::shared_ptr<const Job> JobViews::find(int64_t id) const {
  const std::lock_guard lock(mutex_);
  const auto view = views_.find(id);
  return view == views_.end() ? nullptr : view->second.job;
}

std::shared_ptr<JobWatch> JobViews::watch(int64_t id, uint64_t seen, TellJob tell) {
  auto watch = std::make_shared<JobWatch>();
  watch->id = id;
  watch->seen = seen;
  watch->tell = std::move(tell);
  const std::lock_guard lock(mutex_);
  watches_.emplace(id, watch);
  const auto view = views_.find(id);
  if (view != views_.end()) watch->newest = view->second.job;
  if (leaving_ || watch->newest != nullptr) make_due(watch);
  return watch;
}

void JobViews::unwatch(const std::shared_ptr<JobWatch>& watch) {
  TellJob last;  // takes the callback; declared before the lock, so that it is destroyed after the lock is released
  const std::lock_guard lock(mutex_);
  last = std::exchange(watch->tell, nullptr);
  const auto [first, end] = watches_.equal_range(watch->id);
  const auto at = std::find_if(first, end, [&](const auto& item) { return item.second == watch; });
  if (at != end) watches_.erase(at);
}

void JobViews::leave() {
  const std::lock_guard lock(mutex_);
  leaving_ = true;
  for (const auto& [id, watch] : watches_) make_due(watch);
}

void JobViews::make_due(const std::shared_ptr<JobWatch>& watch) {
  if (watch->due) return;
  watch->due = true;
  due_.push_back(watch);
  changed_.notify_one();
}

void JobViews::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || !due_.empty(); });
    if (due_.empty()) return;
    const std::shared_ptr<JobWatch> watch = std::move(due_.front());
    due_.pop_front();
    watch->due = false;
    TellJob tell;
    absl::StatusOr<std::shared_ptr<const Job>> news = watch->newest;
    if (leaving_) {
      news = absl::UnavailableError("the coordinator is going down; ask again");
      tell = std::exchange(watch->tell, nullptr);
    } else if (watch->newest->version != watch->seen) {
      watch->seen = watch->newest->version;
      tell = watch->tell;
    }
    if (tell == nullptr) continue;
    lock.unlock();
    tell(std::move(news));
    tell = nullptr;  // destroys the callback while the lock is not held
    lock.lock();
  }
}

}  // namespace wl

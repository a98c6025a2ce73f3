#include "server/engine/job_views.h"

#include <algorithm>

#include "server/engine/devices.h"
#include "server/store/store.h"

namespace wl {

JobViews::JobViews() : version_(static_cast<uint64_t>(unix_ms_now()) << 10) {}

void JobViews::begin(int64_t id, Job job) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<View>& view = views_[id];
  if (view) return;
  job.version = ++version_;
  view = std::make_shared<View>(View{std::move(job)});
}

void JobViews::publish(int64_t id, Job job) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<View>& view = views_[id];
  if (!view) view = std::make_shared<View>();
  job.version = ++version_;
  view->job = std::move(job);
  changed_.notify_all();
}

void JobViews::forget(int64_t id) {
  const std::lock_guard lock(mutex_);
  views_.erase(id);
}

std::optional<Job> JobViews::find(int64_t id) const {
  const std::lock_guard lock(mutex_);
  const auto view = views_.find(id);
  return view == views_.end() ? std::nullopt : std::optional(view->second->job);
}

absl::StatusOr<std::optional<Job>> JobViews::wait_change(int64_t id, uint64_t seen, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  const auto found = views_.find(id);
  if (found == views_.end()) return absl::NotFoundError("no view");
  // Kept beyond forget(): the last version is still to be seen.
  const std::shared_ptr<View> view = found->second;
  changed_.wait_for(lock, timeout, [&] { return leaving_ || view->job.version != seen; });
  if (leaving_) return absl::UnavailableError("the coordinator is going down; ask again");
  if (view->job.version == seen) return std::nullopt;
  return view->job;
}

void JobViews::leave() {
  const std::lock_guard lock(mutex_);
  leaving_ = true;
  changed_.notify_all();
}

bool JobViews::any_needs(const std::vector<Device>& devices) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(views_.begin(), views_.end(), [&](const auto& item) {
    const Job& job = item.second->job;
    if (is_done(job.state)) return false;
    return !job.device ||
           std::any_of(devices.begin(), devices.end(), [&](const Device& own) { return serves(own, *job.device); });
  });
}

}  // namespace wl

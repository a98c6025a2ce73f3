#include "client/remote/lonely.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"

namespace wl {
namespace {

using SteadyClock = std::chrono::steady_clock;

// kFirst is the time until the first message. Each later pause is kGrowth - 1 times the time waited so far, but at most
// kMost.
constexpr auto kFirst = std::chrono::seconds(3), kMost = std::chrono::seconds(60);
constexpr int kGrowth = 3;
constexpr size_t kMostNamed = 8;

}  // namespace

std::string workers_text(const std::vector<WorkerSummary>& workers) {
  if (workers.empty()) return "no worker is there";
  std::vector<std::string> named;
  for (const WorkerSummary& worker : workers) {
    if (named.size() == kMostNamed) break;
    std::vector<std::string> targets;
    for (const Device& device : worker.devices) targets.push_back(device.target);
    named.push_back(cat(worker.name, " (", absl::StrJoin(targets, " "), worker.alive ? "" : ", lost", ")"));
  }
  return cat(workers.size(),
             workers.size() == 1 ? " worker is there: " : " workers are there: ", absl::StrJoin(named, ", "),
             workers.size() > named.size() ? ", ..." : "");
}

Lonely::Lonely(Service* service, LonelyOptions options) : service_(service), options_(std::move(options)) {
  thread_ = std::thread([this] { watch(); });
}

Lonely::~Lonely() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Lonely::seen(const Job& job) {
  const std::lock_guard lock(mutex_);
  target_ = job.options.target;
  const bool alone = job.progress.workers == 0 && !is_done(job.state);
  if (alone == alone_) return;
  alone_ = alone;
  since_ = SteadyClock::now();
  changed_.notify_all();
}

bool Lonely::gave_up() const {
  const std::lock_guard lock(mutex_);
  return gave_up_;
}

std::string Lonely::message() const {
  std::string target;
  int64_t seconds = 0;
  {
    const std::lock_guard lock(mutex_);
    target = target_;
    seconds = std::chrono::duration_cast<std::chrono::seconds>(SteadyClock::now() - since_).count();
  }
  const auto workers = service_->limited(std::chrono::seconds(2), {}).list_workers();
  return cat("no worker serves ", target, " since ", seconds, " s; ",
             workers.ok() ? workers_text(*workers) : std::string(workers.status().message()),
             "; start one with `warploom-worker --server ", options_.server, "`");
}

void Lonely::watch() {
  std::unique_lock lock(mutex_);
  SteadyClock::duration silence = kFirst;
  SteadyClock::time_point since;
  const auto bound =
      std::chrono::duration_cast<SteadyClock::duration>(std::chrono::duration<double>(std::min(options_.bound_s, 1e9)));
  while (!over_) {
    if (!alone_) {
      changed_.wait(lock);
      continue;
    }
    if (since != since_) silence = kFirst;
    since = since_;
    SteadyClock::time_point next = since + silence;
    if (options_.bound_s > 0) next = std::min(next, since + bound);
    if (changed_.wait_until(lock, next, [&] { return over_ || !alone_ || since != since_; })) continue;
    if (options_.bound_s > 0 && SteadyClock::now() >= since + bound) {
      gave_up_ = true;
      lock.unlock();
      options_.give_up();
      return;
    }
    silence += std::min<SteadyClock::duration>(silence * (kGrowth - 1), kMost);
    lock.unlock();
    options_.say(cat("waiting: ", message()));
    lock.lock();
  }
}

}  // namespace wl

#include "server/engine/bounds/plan_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <vector>

namespace wl {
namespace {

// Measured memory that planning a graph takes: bytes for each of the first 10,000 ops (planned covers, which take the
// most memory, are made for at most so many ops), for each further op, and for each byte of the graph's text.
constexpr int64_t kPlannedOps = 10'000, kBytesOfPlannedOp = 24 << 10, kBytesOfOp = 8 << 10, kTimesText = 16;

std::string gb(int64_t bytes) {
  return absl::StrFormat("%.2f GB", static_cast<double>(bytes) / 1e9);
}

// Returns the least memory limit of this process's control group and its ancestors; INT64_MAX if there is none.
int64_t control_group_limit() {
  int64_t least = INT64_MAX;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::")) continue;
    for (std::string path = line.substr(3);; path.resize(path.rfind('/'))) {
      std::ifstream file(cat("/sys/fs/cgroup", path, "/memory.max"));
      int64_t most = 0;
      if (file >> most) least = std::min(least, most);  // without a limit, the file contains "max", which is no number
      if (path.empty() || path == "/") break;
    }
  }
  return least;
}

}  // namespace

int64_t plan_bytes(const std::string& graph) {
  const auto ops = static_cast<int64_t>(std::count(graph.begin(), graph.end(), '\n'));
  return kBytesOfPlannedOp * std::min(ops, kPlannedOps) + kBytesOfOp * std::max<int64_t>(0, ops - kPlannedOps) +
         kTimesText * static_cast<int64_t>(graph.size());
}

int64_t default_plan_memory() {
  int64_t most = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  most = std::min(most, control_group_limit());
  rlimit space = {};
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
    most = std::min(most, static_cast<int64_t>(std::min<rlim_t>(space.rlim_cur, INT64_MAX)));
  return most / 3 * 2;
}

absl::StatusOr<std::unique_ptr<PlanMemory::Held>> PlanMemory::take(const std::string& caller, int64_t bytes) {
  const int64_t most = caller.empty() ? limit_ : limit_ / 4 * 3;
  const std::lock_guard lock(mutex_);
  if (limit_ > 0 && bytes > most)
    return absl::ResourceExhaustedError(
        cat("planning this graph may take ", gb(bytes), ", and this coordinator sets ", gb(most),
            " aside for a caller; cut the graph into smaller ones, or start the coordinator with more "
            "(--plan-memory-gb)"));
  const auto known = of_caller_.find(caller);
  const int64_t own = known == of_caller_.end() ? 0 : known->second;
  if (limit_ > 0 && (held_ + bytes > limit_ || own + bytes > most)) {
    const bool mine = own + bytes > most;
    return absl::ResourceExhaustedError(cat("planning this graph may take ", gb(bytes), ", and the open jobs ",
                                            mine ? "of this caller" : "of all", " have ", gb(mine ? own : held_),
                                            " of ", gb(mine ? most : limit_), "; ask again when some are done"));
  }
  held_ += bytes;
  of_caller_[caller] = own + bytes;
  return std::make_unique<Held>(this, caller, bytes);
}

void PlanMemory::give(const std::string& caller, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  held_ -= bytes;
  const auto own = of_caller_.find(caller);
  if (own != of_caller_.end() && (own->second -= bytes) <= 0) of_caller_.erase(own);
}

void PlanMemory::keep(int64_t job_id, std::unique_ptr<Held> held) {
  const std::lock_guard lock(mutex_);
  // `held` now has the job's earlier reservation, if any, which is destroyed after the lock is released.
  of_job_[job_id].swap(held);
}

void PlanMemory::keep_anyway(int64_t job_id, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  held_ += bytes;
  of_caller_[""] += bytes;
  of_job_[job_id] = std::make_unique<Held>(this, "", bytes);
}

void PlanMemory::release_if(const std::function<bool(int64_t job_id)>& is_done) {
  // The reservations of jobs that are done, which are destroyed after the lock is released.
  std::vector<std::unique_ptr<Held>> done;
  std::vector<int64_t> ids;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, held] : of_job_) ids.push_back(id);
  }
  std::erase_if(ids, [&](int64_t id) { return !is_done(id); });
  for (int64_t id : ids) {
    const std::lock_guard lock(mutex_);
    done.push_back(std::move(of_job_[id]));
    of_job_.erase(id);
  }
}

int64_t PlanMemory::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

}  // namespace wl

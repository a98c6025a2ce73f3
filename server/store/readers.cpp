#include "server/store/readers.h"

namespace wl {

StoreReaders::StoreReaders(std::vector<std::unique_ptr<Sql>> connections)
    : count_(connections.size()), idle_(std::move(connections)) {}

absl::Status StoreReaders::read(const std::function<absl::Status(Sql&)>& work) {
  std::unique_ptr<Sql> mine;
  {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [&] { return closed_ || !idle_.empty(); });
    if (closed_) return absl::UnavailableError("the coordinator is going down");
    mine = std::move(idle_.back());
    idle_.pop_back();
  }
  absl::Status status = work(*mine);
  {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(mine));
  }
  returned_.notify_all();
  return status;
}

void StoreReaders::close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  returned_.notify_all();
  returned_.wait(lock, [&] { return idle_.size() == count_ || idle_.empty(); });
  idle_.clear();
}

}  // namespace wl

// What waits for the threads of a pool, by who asked for it: callers have turns, however much each of them has queued.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <thread>
#include <utility>

namespace wl {

// Bytes of a graph's text. What is done for one of so many waits for that of larger ones nowhere.
inline constexpr size_t kSmallGraph = 32 << 10;
// Threads for larger ones, of each pool, and by how much they give way to others of the machine (nice(2)): on two cores
// a second one keeps whoever asks for little from both.
inline int long_threads() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 4, 1, 4);
}
inline constexpr int kLongNice = 10;
// Of this thread alone, on Linux, and of what it starts. Where it cannot be set, all give way to each other as they do
// otherwise.
inline void give_way(int nice) {
  if (nice != 0) (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice);
}

template <typename Work>
class CallerTurns {
 public:
  bool empty() const { return turns_.empty(); }
  size_t size() const { return size_; }
  size_t size_of(const std::string& caller) const {
    const auto queue = work_.find(caller);
    return queue == work_.end() ? 0 : queue->second.size();
  }
  void push(Work work, const std::string& caller) {
    std::deque<Work>& queue = work_[caller];
    if (queue.empty()) turns_.push_back(caller);
    queue.push_back(std::move(work));
    ++size_;
  }
  Work pop() {  // not of an empty one
    const std::string caller = std::move(turns_.front());
    turns_.pop_front();
    const auto queue = work_.find(caller);
    Work work = std::move(queue->second.front());
    queue->second.pop_front();
    --size_;
    if (queue->second.empty())
      work_.erase(queue);
    else
      turns_.push_back(caller);
    return work;
  }

 private:
  std::map<std::string, std::deque<Work>> work_;  // of none that has nothing
  std::deque<std::string> turns_;                 // those callers; the first is next
  size_t size_ = 0;
};

}  // namespace wl

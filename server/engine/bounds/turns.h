// The work that waits for the threads of a pool. Callers take turns, however much each of them has queued.
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

// Bytes of a graph's text. Work for graphs of up to this size never waits for work for larger ones.
inline constexpr size_t kSmallGraph = 32 << 10;
// Number of threads for larger graphs in each pool, and their nice value (nice(2)). With only two cores, a second such
// thread would keep small requests from both cores.
inline int long_threads() {
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 4, 1, 4);
}
inline constexpr int kLongNice = 10;
// Sets the nice value of this thread (on Linux it is per thread) and of the processes that it starts. An error is
// ignored: the thread then competes as usual.
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
  Work pop() {  // takes out the work that is next; must not be called if no work is queued
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
  std::map<std::string, std::deque<Work>> work_;  // queued work by caller; callers without work have no entry
  std::deque<std::string> turns_;                 // the callers in work_, in the order of their turns
  size_t size_ = 0;
};

}  // namespace wl

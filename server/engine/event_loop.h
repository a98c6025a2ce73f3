// The threads of the engine. One thread, the engine's thread, runs posted events in order; while none is queued it runs
// one due step of a search at a time, so that an event never waits for more than one step. A pool runs work that takes
// seconds beside it, and another one, whose threads give way to all others, what may take minutes.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "server/engine/bounds/turns.h"

namespace wl {

using Clock = std::chrono::steady_clock;

inline Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

class EventLoop {
 public:
  // `idle` is called whenever the last queued work has ended. The loop holds no lock then.
  explicit EventLoop(std::function<void()> idle) : idle_(std::move(idle)) {}
  ~EventLoop() { stop(); }

  // `step` runs a due step, `tick` runs about four times a second; both on the engine's thread.
  void start(int pool_threads, std::function<void(int64_t)> step, std::function<void()> tick);
  void leave() { leaving_ = true; }          // Any thread. Work of the pool ends early, where it can.
  bool leaving() const { return leaving_; }  // Any thread.
  const std::atomic<bool>& leaving_flag() const { return leaving_; }
  void stop();  // Waits for what runs; drops what is queued.

  void post(std::function<void()> event);    // Any thread. Runs on the engine's thread.
  void compute(std::function<void()> work);  // Any thread. Runs on a thread of the pool.
  // The same on a thread for what may take minutes. Callers have turns.
  void compute_long(std::function<void()> work, const std::string& caller);
  void mark(int64_t search_id);                 // The engine's thread only. The step of this search is due.
  bool busy() const { return computing_ > 0; }  // Any thread. Something is queued or runs.

 private:
  void serve();
  using Queue = CallerTurns<std::function<void()>>;
  void serve_pool(Queue& queue, int nice);
  void put(Queue& queue, std::function<void()> work, const std::string& caller);
  void done();

  const std::function<void()> idle_;
  std::function<void(int64_t)> step_;
  std::function<void()> tick_;
  std::atomic<bool> leaving_ = false;
  std::atomic<int> computing_ = 0;  // events, steps and pool work that are queued or run
  std::set<int64_t> due_;           // the engine's thread only

  std::mutex mutex_;  // guards the rest
  std::condition_variable event_queued_, work_queued_;
  std::deque<std::function<void()>> events_;
  Queue pool_work_, long_work_;
  bool stopping_ = false;
  std::thread thread_;
  std::vector<std::thread> pool_;
};

}  // namespace wl

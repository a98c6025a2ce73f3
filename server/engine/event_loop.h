// The threads of the engine. One thread, the engine's thread, runs posted events in order; while none is queued, it
// runs one due step of a search at a time, so an event waits for one step at most. One pool runs work that takes
// seconds; another, of low priority, runs work that may take minutes.
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
  // `idle` is called whenever the last queued work has ended, on the thread that ran that work and without the lock.
  explicit EventLoop(std::function<void()> idle) : idle_(std::move(idle)) {}
  ~EventLoop() { stop(); }

  // `step` runs on the engine's thread when the step of a search is due, `tick` about four times a second.
  void start(int pool_threads, std::function<void(int64_t)> step, std::function<void()> tick);
  void leave();                              // Makes leaving() true, which tells pool work to end early. Thread-safe.
  bool leaving() const { return leaving_; }  // whether leave() was called; thread-safe
  const std::atomic<bool>& leaving_flag() const { return leaving_; }
  void stop();  // Waits for running work, drops queued work, and ends the threads.

  void post(std::function<void()> event);    // Thread-safe. Runs `event` on the engine's thread.
  void compute(std::function<void()> work);  // Thread-safe. Runs `work` on a thread of the pool.
  // Thread-safe. Runs `work`, which may take minutes, on a thread of the pool of low priority. If several callers have
  // work queued there, they take turns.
  void compute_long(std::function<void()> work, const std::string& caller);
  void mark(int64_t search_id);                 // Makes the step of a search due. Called on the engine's thread only.
  bool busy() const { return computing_ > 0; }  // Thread-safe. Whether any work is queued or running.
  // Thread-safe, but not for the engine's thread or a thread of the pool. Waits until busy() is false, at most for
  // `most`; ends sooner if the loop stops.
  void wait_idle(Clock::duration most);

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
  std::atomic<int> computing_ = 0;  // number of events, steps and pieces of pool work that are queued or running
  std::set<int64_t> due_;           // ids of the searches whose step is due; used by the engine's thread only

  std::mutex mutex_;  // guards the members declared below, except the threads
  std::condition_variable event_queued_, work_queued_, idled_;
  std::deque<std::function<void()>> events_;
  Queue pool_work_, long_work_;
  bool stopping_ = false;
  std::thread thread_;
  std::vector<std::thread> pool_;
};

}  // namespace wl

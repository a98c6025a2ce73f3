// The threads that run CPU kernels. A launch cuts [0, grid) into one contiguous range of blocks per thread. Who has
// ended a range takes blocks of another, so that a core which others slow down, or which is slower, does not decide
// when the launch ends. The calling thread has the first range, and a one-thread launch costs a function call. Workers
// spin for a moment after each launch and then sleep: launches in quick succession cost about a microsecond, and an
// idle pool costs nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"

namespace wl {

// Returns the CPUs this process may run on: one hardware thread of every core first, then their siblings.
std::vector<int> allowed_cpus();

// The CPU kernel ABI; see Source in compiler/base/records.h.
using BlockFunction = void (*)(long block, void* const* args, char* scratch);

struct Launch {
  BlockFunction entry = nullptr;
  int64_t grid = 1;
  int threads = 1;  // at most the pool's number of threads is used
  int64_t scratch_bytes = 0;
  int passes = 1;
  int64_t outside = -1;  // where in the scratch the kernel leaves word of an index outside its axis; -1: nowhere
};

// An index that a kernel was given, and how long the axis is along which it selects an element.
struct OutsideIndex {
  int64_t extent = 0;
  int64_t index = 0;
};

// Not thread-safe: one thread creates the pool and uses it. That thread is pinned to the first allowed CPU while the
// pool lives, and the workers to the following ones, unless `pin` is false.
class Pool {
 public:
  explicit Pool(int threads, bool pin = true);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls task(context, i) for every i in [0, threads) concurrently, with i = 0 on this thread, and returns when all
  // are done. Everything the tasks wrote is visible to the caller.
  void run(int threads, void (*task)(void* context, int thread), void* context);
  template <typename F>
  void each(int threads, F&& f) {
    run(
        threads, [](void* context, int thread) { (*static_cast<std::remove_reference_t<F>*>(context))(thread); }, &f);
  }

  // Makes every thread's scratch at least `bytes` long: 4096-byte aligned, followed by an inaccessible page.
  // ResourceExhausted when memory is short.
  absl::Status reserve_scratch(int64_t bytes);
  // Makes the workspace at least `bytes` long in the same way, with its counters zero. The workspace moves, so call
  // workspace() again afterwards.
  absl::Status reserve_work(int64_t bytes);
  // The pointer that a kernel of several passes gets after its arguments.
  void* workspace() const { return work_.data; }
  // Fills all scratch, and the workspace except its counters, with 0xFF bytes (NaN), so that a kernel that relies on
  // uninitialised memory fails its check.
  void spoil_scratch();

  // Runs a kernel. The scratch it needs must have been reserved. Returns an index that was outside its axis; its extent
  // is 0 where none was, or where the kernel does not tell.
  OutsideIndex launch(const Launch& launch, void* const* args);

 private:
  struct Scratch {
    char* data = nullptr;
    int64_t map_bytes = 0;
  };
  // Blocks of a launch that nobody has taken yet.
  struct alignas(64) Range {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  void run_blocks(int thread, int threads, const Launch& launch, void* const* args);
  static absl::Status grow(Scratch& scratch, int64_t bytes, const char* what);
  static void free(Scratch& scratch);
  void work(int thread, int cpu);
  // Tells the workers of a launch. Not a release store: notify_all() wakes nobody if it reads that nobody sleeps, and
  // that read may come before a release store, while a worker that goes to sleep still reads the old state.
  void publish(uint32_t state);

  std::vector<std::thread> workers_;
  std::vector<Scratch> scratch_;
  std::vector<Range> ranges_;        // by thread
  std::atomic<int> outside_in_{-1};  // thread whose scratch has word of an index outside; -1: none
  Scratch work_;
  int64_t scratch_bytes_ = 0, work_bytes_ = 0;
  int64_t spin_ns_ = 0;
  std::vector<int> callers_cpus_;  // the caller's affinity before pinning, restored at the end
  std::thread::id caller_;

  void (*task_)(void*, int) = nullptr;
  void* context_ = nullptr;
  // Launch number and number of participating threads in one word. A worker that does not take part in a launch must
  // read nothing else of it.
  alignas(64) std::atomic<uint32_t> state_{0};
  alignas(64) std::atomic<uint32_t> pending_{0};
};

}  // namespace wl

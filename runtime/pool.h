// The threads that run CPU kernels. A launch divides [0, grid) into one contiguous range of blocks for each thread. A
// thread that has finished its range takes blocks of other ranges, so that one slow or busy core does not delay the end
// of the launch. The calling thread has the first range; a launch on one thread costs a function call. The other
// threads (workers) spin for 100 us after each launch and then sleep: launches in quick succession cost about a
// microsecond, and an idle pool uses no CPU time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "runtime/cpus.h"

namespace wl {

// The interface (ABI) of CPU kernels; see Source in compiler/base/records.h.
using BlockFunction = void (*)(long block, void* const* args, char* scratch);

struct Launch {
  BlockFunction entry = nullptr;
  int64_t grid = 1;
  int threads = 1;  // wanted number of threads, reduced to that of the pool if that is smaller
  int64_t scratch_bytes = 0;
  int passes = 1;
  // The offset in bytes in the scratch at which the kernel writes an OutsideIndex; -1: it writes none.
  int64_t outside = -1;
};

// An index, given to a kernel, that lies outside the axis along which it selects an element.
struct OutsideIndex {
  int64_t extent = 0;  // extent of the axis along which the index was outside; 0: no index was outside
  int64_t index = 0;
};

// A pool is not thread-safe: the thread that creates it also uses it. With `pin`, if there are at least as many allowed
// CPUs as threads, that thread is pinned to the first allowed CPU while the pool lives, and the workers to the next
// ones.
class Pool {
 public:
  explicit Pool(int threads, bool pin = true);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls task(context, i) for every i in [0, threads) concurrently, with i = 0 on the calling thread, and returns when
  // all calls have returned. `threads` is reduced to the pool's number of threads. The caller sees everything that the
  // tasks wrote.
  void run(int threads, void (*task)(void* context, int thread), void* context);
  template <typename F>
  void each(int threads, F&& f) {
    run(
        threads, [](void* context, int thread) { (*static_cast<std::remove_reference_t<F>*>(context))(thread); }, &f);
  }

  // Makes the scratch of every thread at least `bytes` long: aligned to 4096 bytes, followed by an inaccessible page.
  // Scratch that grows loses its contents. ResourceExhausted: memory is short.
  absl::Status reserve_scratch(int64_t bytes);
  // Makes the workspace at least `bytes` long, aligned and guarded like scratch. A workspace that grows is zeroed,
  // including its counters (kCounterBytes), and moves, so workspace() must be called again.
  absl::Status reserve_work(int64_t bytes);
  // Returns the workspace, whose address a kernel of several passes gets after its arguments.
  void* workspace() const { return work_.data; }
  // Fills all scratch, and the workspace without its counters, with 0xFF bytes (NaN). So a kernel that relies on
  // uninitialised memory fails its check.
  void spoil_scratch();

  // Runs a kernel, whose scratch must have been reserved. If the kernel reports indices outside their axis, returns one
  // of them; otherwise returns an OutsideIndex with an extent of 0.
  OutsideIndex launch(const Launch& launch, void* const* args);

 private:
  struct Scratch {
    char* data = nullptr;
    int64_t map_bytes = 0;
  };
  // One thread's range of blocks. The blocks in [next, end) were not taken yet, neither by this thread nor by others.
  struct alignas(64) Range {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };
  void run_blocks(int thread, int threads, const Launch& launch, void* const* args);
  static absl::Status grow(Scratch& scratch, int64_t bytes, const char* what);
  static void free(Scratch& scratch);
  void work(int thread, int cpu);
  // Moves a worker that has slept, if it shares its CPU with another thread of the pool, to one where none of them
  // runs. On a machine whose CPUs are all busy, if only with processes of policy SCHED_IDLE, Linux looks for no such
  // CPU, and two threads that wait for each other take turns on one.
  void move_apart(int thread, uint32_t active);
  // Announces a launch to the workers, by a sequentially consistent store. A release store is not enough: notify_all()
  // wakes no thread if it reads that none waits. That read may be ordered before a release store, while a worker that
  // begins to wait still reads the old state, so that the worker would miss the launch.
  void publish(uint32_t state);

  std::vector<std::thread> workers_;
  std::vector<Scratch> scratch_;
  std::vector<Range> ranges_;  // for each thread, its range of blocks
  // The number of a thread whose scratch has a report of an index outside its axis (OutsideIndex); -1: none.
  std::atomic<int> outside_in_{-1};
  Scratch work_;
  int64_t scratch_bytes_ = 0, work_bytes_ = 0;
  int64_t spin_ns_ = 0;
  bool moves_ = false;                    // whether threads are not pinned, and there is a CPU for each
  std::vector<std::atomic<int>> cpu_of_;  // the CPU on which each thread was seen last; -1: none
  // The CPUs on which the calling thread might run before it was pinned. The destructor allows it to run there again.
  std::vector<int> callers_cpus_;
  std::thread::id caller_;

  void (*task_)(void*, int) = nullptr;
  void* context_ = nullptr;
  // The number of the launch and, in the lower bits, the number of threads that take part. Both are in one word,
  // because a worker that does not take part must read nothing else of the launch.
  alignas(64) std::atomic<uint32_t> state_{0};
  alignas(64) std::atomic<uint32_t> pending_{0};
};

}  // namespace wl

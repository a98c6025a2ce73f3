#include "runtime/pool.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "compiler/base/records.h"
#include "compiler/base/status.h"
#include "runtime/buffer.h"
#include "runtime/cpus.h"

namespace wl {
namespace {

constexpr uint32_t kThreadBits = 12;  // number of bits of state_ that hold the number of threads
constexpr uint32_t kThreadMask = (1u << kThreadBits) - 1;
// Number of ranges from which a thread takes blocks: its own and the ranges of other threads.
constexpr int kLookedAt = 8;
constexpr uint32_t kStop = kThreadMask;  // this value in place of the number of threads tells the workers to exit

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Waits until `word` differs from `old`, and returns its new value: spins for `spin_ns`, then sleeps. `slept`, unless
// null, is set if it slept.
uint32_t await_change(std::atomic<uint32_t>& word, uint32_t old, int64_t spin_ns, bool* slept = nullptr) {
  const int64_t until = now_ns() + spin_ns;
  do {
    for (int i = 0; i < 32; ++i) {
      if (uint32_t value = word.load(std::memory_order_acquire); value != old) return value;
      relax();
    }
  } while (now_ns() < until);
  if (slept != nullptr) *slept = true;
  for (;;) {
    word.wait(old, std::memory_order_acquire);
    if (uint32_t value = word.load(std::memory_order_acquire); value != old) return value;
  }
}

}  // namespace

Pool::Pool(int threads, bool pin) : caller_(std::this_thread::get_id()) {
  WL_CHECK(threads >= 1 && static_cast<uint32_t>(threads) < kStop, threads, " threads");
  const std::vector<int> cpus = allowed_cpus();
  // Threads spin and are pinned only if every thread has a CPU of its own. On a shared CPU, a spinning thread would
  // only take time from the others.
  const bool one_each = static_cast<size_t>(threads) <= cpus.size();
  spin_ns_ = one_each ? 100'000 : 0;
  moves_ = one_each && !pin;
  pin = one_each && pin;
  if (pin) callers_cpus_ = cpus;
  cpu_of_ = std::vector<std::atomic<int>>(static_cast<size_t>(threads));
  for (std::atomic<int>& cpu : cpu_of_) cpu.store(-1, std::memory_order_relaxed);
  for (int t = 1; t < threads; ++t)
    workers_.emplace_back([this, t, cpu = pin ? cpus[static_cast<size_t>(t)] : -1] { work(t, cpu); });
  if (pin) run_on({cpus[0]});
  scratch_.resize(static_cast<size_t>(threads));
  ranges_ = std::vector<Range>(static_cast<size_t>(threads));
}

void Pool::publish(uint32_t state) {
  state_.store(state, std::memory_order_seq_cst);
  state_.notify_all();
}

Pool::~Pool() {
  publish((state_.load(std::memory_order_relaxed) & ~kThreadMask) | kStop);
  for (std::thread& worker : workers_) worker.join();
  for (Scratch& scratch : scratch_) free(scratch);
  free(work_);
  if (!callers_cpus_.empty() && std::this_thread::get_id() == caller_) run_on(callers_cpus_);
}

void Pool::work(int thread, int cpu) {
  if (cpu >= 0) run_on({cpu});
  uint32_t seen = 0;
  for (;;) {
    bool slept = false;
    seen = await_change(state_, seen, spin_ns_, &slept);
    const uint32_t active = seen & kThreadMask;
    if (active == kStop) return;
    if (static_cast<uint32_t>(thread) >= active) continue;
    if (slept && moves_) move_apart(thread, active);
    task_(context_, thread);
    if (pending_.fetch_sub(1, std::memory_order_seq_cst) == 1) pending_.notify_one();
  }
}

void Pool::move_apart(int thread, uint32_t active) {
  const auto own = static_cast<size_t>(thread);
  const int here = sched_getcpu();
  std::vector<int> taken;
  for (size_t t = 0; t < active; ++t)
    if (const int cpu = cpu_of_[t].load(std::memory_order_relaxed); t != own && cpu >= 0) taken.push_back(cpu);
  const bool shared = std::find(taken.begin(), taken.end(), here) != taken.end();
  cpu_of_[own].store(shared && leave(taken) ? sched_getcpu() : here, std::memory_order_relaxed);
}

void Pool::run(int threads, void (*task)(void*, int), void* context) {
  threads = std::clamp(threads, 1, this->threads());
  if (threads == 1) return task(context, 0);
  if (moves_) cpu_of_[0].store(sched_getcpu(), std::memory_order_relaxed);
  task_ = task;
  context_ = context;
  pending_.store(static_cast<uint32_t>(threads) - 1, std::memory_order_relaxed);
  const uint32_t number = (state_.load(std::memory_order_relaxed) >> kThreadBits) + 1;
  publish((number << kThreadBits) | static_cast<uint32_t>(threads));
  task(context, 0);
  for (uint32_t left = pending_.load(std::memory_order_acquire); left != 0;)
    left = await_change(pending_, left, spin_ns_);
}

absl::Status Pool::grow(Scratch& scratch, int64_t bytes, const char* what) {
  free(scratch);
  const int64_t size = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes, total = size + kPageBytes;
  void* map = mmap(nullptr, static_cast<size_t>(total), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED)
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot map ", bytes, " bytes of ", what, ": ", std::strerror(errno)));
  scratch = {static_cast<char*>(map), total};
  (void)mprotect(scratch.data + size, kPageBytes, PROT_NONE);
  return absl::OkStatus();
}

void Pool::free(Scratch& scratch) {
  if (scratch.data) munmap(scratch.data, static_cast<size_t>(scratch.map_bytes));
  scratch = {};
}

absl::Status Pool::reserve_scratch(int64_t bytes) {
  if (bytes <= scratch_bytes_) return absl::OkStatus();
  scratch_bytes_ = 0;
  for (Scratch& scratch : scratch_) WL_RETURN_IF_ERROR(grow(scratch, bytes, "scratch a thread"));
  scratch_bytes_ = bytes;
  return absl::OkStatus();
}

absl::Status Pool::reserve_work(int64_t bytes) {
  if (bytes <= work_bytes_) return absl::OkStatus();
  work_bytes_ = 0;
  WL_RETURN_IF_ERROR(grow(work_, bytes, "workspace"));
  work_bytes_ = bytes;
  return absl::OkStatus();
}

void Pool::spoil_scratch() {
  const auto spoil = [](const Scratch& scratch, int64_t from) {
    if (scratch.data)
      std::memset(scratch.data + from, 0xff, static_cast<size_t>(scratch.map_bytes - kPageBytes - from));
  };
  for (const Scratch& scratch : scratch_) spoil(scratch, 0);
  spoil(work_, kCounterBytes);
}

// Runs blocks one at a time: first those of the thread's own range, then those of the following ranges. A thread looks
// at only kLookedAt ranges: if every thread looked at all ranges, many cache lines would move between cores.
void Pool::run_blocks(int thread, int threads, const Launch& launch, void* const* args) {
  char* scratch = scratch_[static_cast<size_t>(thread)].data;
  auto* const outside = launch.outside < 0 ? nullptr : reinterpret_cast<OutsideIndex*>(scratch + launch.outside);
  if (outside) outside->extent = 0;
  for (int k = 0; k < std::min(threads, kLookedAt); ++k) {
    Range& range = ranges_[static_cast<size_t>((thread + k) % threads)];
    while (range.next.load(std::memory_order_relaxed) < range.end) {
      const int64_t block = range.next.fetch_add(1, std::memory_order_relaxed);
      if (block < range.end) launch.entry(block, args, scratch);
    }
  }
  if (outside && outside->extent != 0) outside_in_.store(thread, std::memory_order_relaxed);
#if defined(__x86_64__)
  __builtin_ia32_sfence();  // orders the non-temporal stores of kernels before the end of the launch
#endif
}

OutsideIndex Pool::launch(const Launch& launch, void* const* args) {
  WL_CHECK(launch.scratch_bytes <= scratch_bytes_, "scratch of ", launch.scratch_bytes, " bytes was not reserved");
  const int threads = std::clamp(launch.threads, 1, this->threads());
  OutsideIndex outside;
  const int64_t share = launch.grid / threads, rest = launch.grid % threads;
  for (int64_t first = 0; first < launch.grid * launch.passes; first += launch.grid) {
    int64_t begin = first;
    for (int t = 0; t < threads; ++t) {
      Range& range = ranges_[static_cast<size_t>(t)];
      range.next.store(begin, std::memory_order_relaxed);
      range.end = begin += share + (t < rest ? 1 : 0);
    }
    each(threads, [&](int thread) { run_blocks(thread, threads, launch, args); });
    const int told = launch.outside < 0 ? -1 : outside_in_.exchange(-1, std::memory_order_relaxed);
    if (told >= 0)
      outside = *reinterpret_cast<OutsideIndex*>(scratch_[static_cast<size_t>(told)].data + launch.outside);
  }
  return outside;
}

}  // namespace wl

#include "runtime/runtime.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "compiler/base/fill.h"
#include "runtime/tile_registers.h"
#include "tests/unit/file_text.h"
#include "tests/unit/fuzz.h"

namespace wl {
namespace {

TEST(Buffer, IsAlignedStaggeredAndZero) {
  for (int64_t stagger : {0, 64, 704, 4032}) {
    absl::StatusOr<Buffer> buffer = Buffer::create(1000, stagger);
    ASSERT_TRUE(buffer.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 4096, static_cast<uintptr_t>(stagger));
    for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(buffer->data()[i], 0);
    EXPECT_TRUE(buffer->check_red_zones().ok());
  }
}

TEST(Buffer, RedZonesSeeBothSides) {
  for (int64_t bytes : {0, 1, 64, 1000, 4096}) {
    for (int64_t at : {int64_t{-1}, int64_t{-64}, bytes, bytes + 63}) {
      Buffer buffer = Buffer::create(bytes, 128).value();
      buffer.data()[at] = 0;
      const absl::Status status = buffer.check_red_zones();
      EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << bytes << " " << at;
    }
  }
}

// A large buffer's first page is placed at the start of a large page (2 MiB); nothing else depends on the buffer's
// size.
TEST(Buffer, ALargeOneBeginsWithALargePage) {
  constexpr int64_t kLarge = 2 << 20;
  for (const int64_t stagger : {0, 704}) {
    for (const int64_t bytes : {2 * kLarge, 5 * kLarge + 100}) {
      Buffer buffer = Buffer::create(bytes, stagger).value();
      EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % kLarge, static_cast<uintptr_t>(kPageBytes + stagger));
      std::memset(buffer.data(), 1, static_cast<size_t>(bytes));
      EXPECT_TRUE(buffer.check_red_zones().ok());
      EXPECT_TRUE(buffer.covers(buffer.data() + bytes + kPageBytes));
      buffer.data()[bytes] = 0;
      EXPECT_EQ(buffer.check_red_zones().code(), absl::StatusCode::kDataLoss);
    }
  }
}

TEST(Buffer, WritesInsideAreNoDamage) {
  Buffer buffer = Buffer::create(777).value();
  std::memset(buffer.data(), 1, 777);
  EXPECT_TRUE(buffer.check_red_zones().ok());
}

TEST(BufferDeathTest, ReadOnlyMeansIt) {
  Buffer buffer = Buffer::create(64).value();
  ASSERT_TRUE(buffer.set_read_only(true).ok());
  EXPECT_DEATH(buffer.data()[3] = 1, "");
  ASSERT_TRUE(buffer.set_read_only(false).ok());
  buffer.data()[3] = 1;
}

TEST(Poison, IsCountedAndFoundForEveryType) {
  for (int row = 0; row < kDTypeCount; ++row) {
    const auto dtype = static_cast<DType>(row);
    std::vector<char> data(1000 * 8);
    for (bool other : {false, true}) {
      poison(dtype, data.data(), 1000, other);
      EXPECT_EQ(count_poison(dtype, data.data(), 1000, nullptr, other), 1000) << name_of(dtype);
      for (uint64_t i = 0; i < 1000; ++i)
        if (i != 517 && i != 999) store_element(dtype, data.data(), i, 1);
      int64_t first = -1;
      EXPECT_EQ(count_poison(dtype, data.data(), 1000, &first, other), 2) << name_of(dtype);
      EXPECT_EQ(first, 517);
      EXPECT_TRUE(is_poison(dtype, data.data(), 999, other));
      EXPECT_FALSE(is_poison(dtype, data.data(), 998, other));
    }
    if (is_float(dtype)) {
      poison(dtype, data.data(), 1);
      EXPECT_TRUE(std::isnan(load_element(dtype, data.data(), 0)));
    }
  }
}

TEST(Pool, RunsEveryThreadOnceAndSeesWhatTheyWrote) {
  Pool pool(4);
  std::vector<int> counts(4);
  for (int round = 0; round < 2000; ++round) {
    const int threads = 1 + round % 4;
    std::fill(counts.begin(), counts.end(), 0);
    pool.each(threads, [&](int t) { ++counts[static_cast<size_t>(t)]; });
    for (int t = 0; t < 4; ++t) ASSERT_EQ(counts[static_cast<size_t>(t)], t < threads ? 1 : 0);
  }
}

TEST(Pool, WakesAfterSleeping) {
  Pool pool(2);
  std::atomic<int> sum{0};
  for (int round = 0; round < 3; ++round) {
    pool.each(2, [&](int) { ++sum; });
    // 2 ms; workers spin for less than that before they sleep, so the next launch has to wake them
    const timespec nap{0, 2'000'000};
    nanosleep(&nap, nullptr);
  }
  EXPECT_EQ(sum, 6);
}

// Launches come at about the time at which workers stop spinning and fall asleep. If a worker misses a wake-up, the
// test hangs: when Pool::publish() used a release store, two of three runs of 100,000 launches hung.
TEST(Pool, WakesWorkersThatFallAsleep) {
  using Clock = std::chrono::steady_clock;
  Pool pool(2);
  std::minstd_rand random(static_cast<unsigned>(testing::test_seed(1)));
  std::atomic<int64_t> sum{0};
  const int64_t most = std::min<int64_t>(testing::scaled(400'000), 1'000'000);
  const auto end =
      Clock::now() +
      std::chrono::seconds(testing::test_scale() < 1 ? 12 : 120);  // time limit; launches take long on busy machines
  int64_t launches = 0;
  for (; launches < most && Clock::now() < end; ++launches) {
    pool.each(2, [&](int) { ++sum; });
    const auto until = Clock::now() + std::chrono::nanoseconds(99'000 + random() % 4'000);
    while (Clock::now() < until) {
    }
  }
  EXPECT_EQ(sum, 2 * launches);
}

std::atomic<int>* hits;
void count_block(long block, void* const* args, char* scratch) {
  ++hits[block];
  *static_cast<std::atomic<long>*>(args[0]) += block;
  if (scratch) std::memset(scratch, 1, 100);
}

TEST(Pool, LaunchRunsEveryBlockOnce) {
  Pool pool(3);
  ASSERT_TRUE(pool.reserve_scratch(100).ok());
  for (int64_t grid : {0, 1, 2, 3, 7, 100}) {
    std::vector<std::atomic<int>> counts(100);
    hits = counts.data();
    std::atomic<long> sum{0};
    void* args[] = {&sum};
    pool.launch({count_block, grid, 3, 100}, args);
    for (int64_t b = 0; b < 100; ++b) EXPECT_EQ(counts[static_cast<size_t>(b)], b < grid ? 1 : 0);
    EXPECT_EQ(sum, grid * (grid - 1) / 2);
  }
}

void check_scratch(long, void* const* args, char* scratch) {
  auto* ok = static_cast<std::atomic<int>*>(args[0]);
  float first = 0;
  std::memcpy(&first, scratch, sizeof first);
  if (reinterpret_cast<uintptr_t>(scratch) % 4096 == 0 && std::isnan(first)) ++*ok;
}

struct Waiting {
  long block = 0;  // number of the block that waits until all other blocks have ended
  int others = 0;
  std::atomic<int> ended{0};
  std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
};

void wait_for_others(long block, void* const* args, char*) {
  auto& run = *static_cast<Waiting*>(args[0]);
  while (block == run.block && run.ended < run.others)
    if (std::chrono::steady_clock::now() > run.deadline) return;
  ++run.ended;
}

// One block waits until all other blocks have ended. The thread that runs it cannot run the rest of its share of the
// blocks meanwhile, so the second thread has to take these.
TEST(Pool, AThreadThatHasEndedTakesBlocksOfOthers) {
  constexpr int kGrid = 16;
  for (const long block : {0, kGrid / 2}) {
    Pool pool(2);
    Waiting run;
    run.block = block;
    run.others = kGrid - 1;
    void* args[] = {&run};
    pool.launch({.entry = wait_for_others, .grid = kGrid, .threads = 2}, args);
    EXPECT_EQ(run.ended, kGrid) << block;
  }
}

TEST(Pool, ScratchIsAlignedAndSpoiled) {
  Pool pool(2);
  ASSERT_TRUE(pool.reserve_scratch(64).ok());
  ASSERT_TRUE(pool.reserve_scratch(5000).ok());
  pool.spoil_scratch();
  std::atomic<int> ok{0};
  void* args[] = {&ok};
  pool.launch({check_scratch, 8, 2, 5000}, args);
  EXPECT_EQ(ok, 8);
}

// A kernel whose block 5 reports an index that is out of bounds: 9 on an axis of extent 4.
void tell(long block, void* const*, char* scratch) {
  auto* outside = reinterpret_cast<int64_t*>(scratch + 64);
  if (block == 5) outside[0] = 4, outside[1] = 9;
}

TEST(Pool, SaysWhichIndexWasOutside) {
  for (const int threads : {1, 3}) {
    Pool pool(threads);
    ASSERT_TRUE(pool.reserve_scratch(128).ok());
    pool.spoil_scratch();
    void* args[] = {nullptr};
    Launch launch{.entry = tell, .grid = 8, .threads = threads, .scratch_bytes = 128, .outside = 64};
    const OutsideIndex told = pool.launch(launch, args);
    EXPECT_EQ(told.extent, 4);
    EXPECT_EQ(told.index, 9);
    // The index is reported only once: the next launch does not report it again, and a launch that does not ask for it
    // (outside = -1) reports nothing.
    launch.grid = 5;
    EXPECT_EQ(pool.launch(launch, args).extent, 0);
    launch.grid = 8;
    launch.outside = -1;
    EXPECT_EQ(pool.launch(launch, args).extent, 0);
  }
}

TEST(Pool, GivesTheCallerItsCpusBack) {
  const std::vector<int> before = allowed_cpus();
  { Pool pool(1); }
  EXPECT_EQ(allowed_cpus(), before);
}

// A thread that shares its CPU with the one it waits for moves elsewhere, and may return. The scheduler may move it at
// any time, so one of several tries has to show the move.
TEST(Cpus, AThreadLeavesThoseOfOthers) {
  const std::vector<int> cpus = allowed_cpus();
  std::thread([&] {
    EXPECT_FALSE(leave(cpus)) << "there is no other";
    EXPECT_EQ(allowed_cpus(), cpus);
    if (cpus.size() < 2) return;
    bool moved = false;
    for (int i = 0; i < 100 && !moved; ++i) {
      run_on({cpus[0]});
      run_on(cpus);
      EXPECT_TRUE(leave({cpus[0]}));
      moved = sched_getcpu() != cpus[0];
      EXPECT_EQ(allowed_cpus(), cpus);
    }
    EXPECT_TRUE(moved);
  }).join();
}

// Linux may refuse to grant tile registers, but never grants what the processor lacks.
TEST(TileRegisters, AreThoseOfTheProcessor) {
  const std::string facts = testing::file_text("/proc/cpuinfo");
  const bool may = may_use_tile_registers();
  EXPECT_LE(may, facts.find("amx_int8") != std::string::npos && facts.find("amx_bf16") != std::string::npos);
  EXPECT_EQ(may_use_tile_registers(), may);
}

TEST(SharedObject, SaysWhatIsMissing) {
  EXPECT_EQ(SharedObject::open("/nonexistent.so").status().code(), absl::StatusCode::kInvalidArgument);
  SharedObject none;
  EXPECT_FALSE(none.symbol("x").ok());
}

}  // namespace
}  // namespace wl

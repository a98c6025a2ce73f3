// Parts of the engine, each tested by itself.
#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <latch>
#include <mutex>
#include <thread>

#include "server/engine/event_loop.h"
#include "server/engine/job_views.h"
#include "server/engine/leases.h"
#include "server/engine/workers.h"
#include "tests/server/fakes.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

using std::chrono::milliseconds;

Job job_labelled(const std::string& label) {
  Job job;
  job.label = label;
  return job;
}

Job job_for(JobState state, std::optional<Device> device = {}) {
  Job job;
  job.state = state;
  job.device = std::move(device);
  return job;
}

std::unique_ptr<Store> store_in(const Scratch& scratch) {
  StoreOptions options;
  options.file = scratch.path("a.db");
  return Store::open(options).value();
}

TEST(EventLoop, RunsEventsInOrderThenStepsAndIsIdleOnceAllHaveEnded) {
  std::latch idle(1);
  std::vector<std::string> ran;
  EventLoop loop([&] { idle.count_down(); });
  loop.post([&] {
    ran.push_back("first");
    loop.mark(7);
    loop.mark(7);
    loop.post([&] { ran.push_back("third"); });
  });
  loop.post([&] { ran.push_back("second"); });
  EXPECT_TRUE(loop.busy());
  loop.start(
      1, [&](int64_t id) { ran.push_back(cat("step ", id)); }, [] {});
  idle.wait();
  EXPECT_FALSE(loop.busy());
  loop.stop();
  EXPECT_EQ(ran, (std::vector<std::string>{"first", "second", "third", "step 7"}));
}

// Collects, in order, the states that a watch of a job is told.
class Told {
 public:
  TellJob teller() {
    return [this](absl::StatusOr<std::shared_ptr<const Job>> job) {
      const std::lock_guard lock(mutex_);
      told_.push_back(std::move(job));
      changed_.notify_all();
    };
  }
  // Waits for at most 20 s until the watch has been told item n, counted from 0, and returns the item.
  absl::StatusOr<std::shared_ptr<const Job>> at(size_t n) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(20), [&] { return told_.size() > n; }))
      return absl::DeadlineExceededError("not told");
    return told_[n];
  }
  size_t count() {
    const std::lock_guard lock(mutex_);
    return told_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<absl::StatusOr<std::shared_ptr<const Job>>> told_;
};

TEST(JobViews, AWatchIsToldEveryChangeAndTheEnd) {
  Told early, late;
  JobViews views;
  const auto first = views.watch(1, 0, early.teller());
  views.begin(1, job_labelled("a"));
  views.begin(1, job_labelled("b"));
  ASSERT_NE(views.find(1), nullptr);
  EXPECT_EQ(views.find(1)->label, "a") << "the first view stays until one is published";
  EXPECT_EQ(early.at(0).value()->label, "a");
  const auto second = views.watch(1, views.find(1)->version, late.teller());
  views.publish(1, job_labelled("c"));
  views.forget(1);
  EXPECT_EQ(late.at(0).value()->label, "c") << "the version that it had seen is not told again";
  EXPECT_EQ(early.at(1).value()->label, "c");
  EXPECT_GT(early.at(1).value()->version, early.at(0).value()->version);
  views.unwatch(first);
  views.begin(1, job_labelled("d"));
  EXPECT_EQ(late.at(1).value()->label, "d");
  views.leave();
  EXPECT_TRUE(absl::IsUnavailable(late.at(2).status()));
  EXPECT_EQ(early.count(), 2u);
  Told after;
  (void)views.watch(1, 0, after.teller());
  EXPECT_TRUE(absl::IsUnavailable(after.at(0).status()));
}

TEST(JobViews, OnlyAChangeMakesAVersion) {
  JobViews views;
  const Clock::time_point start = Clock::now();
  Job job = job_for(JobState::kRunning);
  views.publish(1, job, start);
  const uint64_t first = views.find(1)->version;
  job.progress.elapsed_s = 0.25;
  views.publish(1, job, start + milliseconds(250));
  EXPECT_EQ(views.find(1)->version, first) << "time alone passes once a second";
  views.publish(1, job, start + milliseconds(1000));
  const uint64_t second = views.find(1)->version;
  EXPECT_GT(second, first);
  job.progress.groups.resize(1);
  job.progress.groups[0].trials_done = 1;
  views.publish(1, job, start + milliseconds(1001));
  EXPECT_GT(views.find(1)->version, second);
}

// A worker that measures for minutes makes no calls but renewals of its lease. These calls show that it is alive.
TEST(Workers, AreSeenWhenTheyRenewALease) {
  Scratch scratch;
  const auto store = store_in(scratch);
  Workers workers(store.get(), milliseconds(0));
  ASSERT_TRUE(workers.add("w", 0, {fake_device()}).ok());
  const int64_t registered = workers.views().at(0).last_seen_ms;
  while (unix_ms_now() <= registered) {
  }
  workers.renewed("w");
  EXPECT_GT(workers.views().at(0).last_seen_ms, registered);
}

TEST(Workers, AreWhereTheRowsSayNow) {
  Scratch scratch;
  const auto store = store_in(scratch);
  std::string row;
  const auto rows = [&](const std::string& principal) { return principal == "node" ? row : ""; };
  Workers workers(store.get(), milliseconds(0), rows);
  for (const char* name : {"node/w", "other/w"}) ASSERT_TRUE(workers.add(name, 0, {fake_device()}, "", "said").ok());
  EXPECT_EQ(workers.machine_of("node/w"), "said");
  EXPECT_TRUE(workers.may_be_one("node/w", "other/w"));
  row = "box";
  EXPECT_EQ(workers.machine_of("node/w"), "row box");
  EXPECT_EQ(workers.heard("node/w", 1)->machine, "row box");
  EXPECT_EQ(workers.heard("other/w", 1)->machine, "said");
  EXPECT_FALSE(workers.may_be_one("node/w", "other/w"));
  EXPECT_TRUE(workers.may_be_one("node/w", "node/x")) << "they are of one principal";
  EXPECT_TRUE(workers.may_be_one("other/w", "never seen"));
  EXPECT_TRUE(workers.may_be_one("node/w", "local/w")) << "nobody knows who that is";
  Workers later(store.get(), milliseconds(0));
  EXPECT_EQ(later.machine_of("node/w"), "said") << "the store knows what workers have said";
}

TEST(Workers, AreAliveWhileHeardFromOrWaitingUnderTheirEpoch) {
  Scratch scratch;
  auto store = store_in(scratch);
  Workers workers(store.get(), milliseconds(0));  // a worker is gone once its call has ended
  ASSERT_EQ(*workers.add("w", 0, {fake_device()}), 1u);
  EXPECT_EQ(workers.serving(fake_device(), ""), 0);
  {
    const Workers::Waiting waiting(&workers, "w", 1);
    EXPECT_EQ(workers.serving(fake_device(), ""), 1);
    ASSERT_EQ(*workers.add("w", 0, {fake_device()}), 2u);
    EXPECT_EQ(workers.serving(fake_device(), ""), 0) << "the call is one of the older process";
    EXPECT_FALSE(workers.heard("w", 1).has_value());
    EXPECT_TRUE(workers.heard("w", 2).has_value());
  }
  EXPECT_EQ(workers.serving(fake_device(), ""), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(workers.add("w", 1, {fake_device()}).status()));
}

}  // namespace
}  // namespace wl

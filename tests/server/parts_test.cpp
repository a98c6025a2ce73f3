// The parts of the engine, each alone.
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "server/engine/event_loop.h"
#include "server/engine/job_views.h"
#include "server/engine/leases.h"
#include "server/engine/workers.h"
#include "tests/server/fakes.h"
#include "tests/server/scratch.h"

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

TEST(JobViews, AWaitEndsWithAChangeALeaveOrItsTime) {
  JobViews views;
  EXPECT_TRUE(absl::IsNotFound(views.wait_change(1, 0, milliseconds(0)).status()));
  views.begin(1, job_labelled("a"));
  views.begin(1, job_labelled("b"));
  ASSERT_TRUE(views.find(1).has_value());
  EXPECT_EQ(views.find(1)->label, "a") << "the first view stays until one is published";
  const uint64_t seen = views.find(1)->version;
  EXPECT_EQ(views.wait_change(1, seen, milliseconds(0)).value(), std::nullopt);
  std::thread publisher([&] { views.publish(1, job_labelled("c")); });
  const auto changed = views.wait_change(1, seen, milliseconds(60'000));
  publisher.join();
  ASSERT_TRUE(changed.ok() && changed->has_value());
  EXPECT_EQ((*changed)->label, "c");
  EXPECT_GT((*changed)->version, seen);
  views.leave();
  EXPECT_TRUE(absl::IsUnavailable(views.wait_change(1, (*changed)->version, milliseconds(60'000)).status()));
}

TEST(JobViews, KnowWhichDevicesAreNeeded) {
  JobViews views;
  Device other = fake_device();
  other.name = "other";
  EXPECT_FALSE(views.any_needs({fake_device()}));
  views.publish(1, job_for(JobState::kRunning, other));
  EXPECT_FALSE(views.any_needs({fake_device()}));
  EXPECT_TRUE(views.any_needs({fake_device(), other}));
  views.publish(2, job_for(JobState::kQueued));
  EXPECT_TRUE(views.any_needs({})) << "a job that does not know its device yet";
  views.publish(2, job_for(JobState::kFailed));
  EXPECT_FALSE(views.any_needs({fake_device()}));
}

TEST(Workers, AreAliveWhileHeardFromOrWaitingUnderTheirEpoch) {
  Scratch scratch;
  auto store = store_in(scratch);
  Workers workers(store.get(), milliseconds(0));  // not heard from as soon as a call has ended
  ASSERT_EQ(*workers.add("w", 0, {fake_device()}), 1u);
  EXPECT_EQ(workers.serving(fake_device()), 0);
  {
    const Workers::Waiting waiting(&workers, "w", 1);
    EXPECT_EQ(workers.serving(fake_device()), 1);
    ASSERT_EQ(*workers.add("w", 0, {fake_device()}), 2u);
    EXPECT_EQ(workers.serving(fake_device()), 0) << "the call is one of the older process";
    EXPECT_FALSE(workers.heard("w", 1).has_value());
    EXPECT_TRUE(workers.heard("w", 2).has_value());
  }
  EXPECT_EQ(workers.serving(fake_device()), 0);
  EXPECT_TRUE(absl::IsFailedPrecondition(workers.add("w", 1, {fake_device()}).status()));
}

}  // namespace
}  // namespace wl

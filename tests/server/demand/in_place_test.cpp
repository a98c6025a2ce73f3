// A kernel that replaced another one in programs is tried in them, and taken back if it makes them slower.
#include "server/jobs/in_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/server/outside.h"
#include "tests/server/service.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kOneHourNs = 3'600'000'000'000;

Trial of_chain(const char* chain, Trial trial) {
  trial.plan = chain;
  return trial;
}

TimedProgram program(const std::string& name, int64_t before_ns, int64_t after_ns) {
  return {name, {of_chain(kBeforeChain, took(before_ns)), of_chain(kAfterChain, took(after_ns))}};
}

TEST(JudgedInPlace, MoreThanAHundredthSlowerIsSlower) {
  EXPECT_FALSE(judge_in_place({program("a", 1000, 1009)}).slower) << "within noise";
  EXPECT_TRUE(judge_in_place({program("a", 1000, 1011)}).slower);
  EXPECT_FALSE(judge_in_place({program("a", 1000, 1100), program("b", 1000, 900)}).slower) << "by geometric mean";
  EXPECT_TRUE(judge_in_place({program("a", 1000, 1100), program("b", 100'000, 99'000)}).slower)
      << "a long program counts as much as a short one";
}

TEST(JudgedInPlace, SaysWhatWasSeen) {
  const InPlaceVerdict verdict = judge_in_place({program("resnet", 1000, 2000), program("bert", 3000, 3500)});
  EXPECT_TRUE(verdict.tried);
  EXPECT_EQ(verdict.before_ns, 4000);
  EXPECT_EQ(verdict.after_ns, 5500);
  EXPECT_EQ(verdict.calls, 8);
  EXPECT_EQ(verdict.message, "resnet: 1 us before, 2 us after; bert: 3 us before, 3.5 us after");
}

TEST(JudgedInPlace, AKernelWithWhichAProgramFailsIsTakenBack) {
  Trial failed;
  failed.outcome = Outcome::kRuntimeError;
  failed.message = "signal 11";
  const InPlaceVerdict verdict =
      judge_in_place({{"a", {of_chain(kBeforeChain, took(1000)), of_chain(kAfterChain, failed)}}});
  EXPECT_TRUE(verdict.tried);
  EXPECT_TRUE(verdict.slower);
  EXPECT_THAT(verdict.message, HasSubstr("signal 11"));
  const InPlaceVerdict neither =
      judge_in_place({{"a", {of_chain(kBeforeChain, failed), of_chain(kAfterChain, failed)}}, {"b", {}}});
  EXPECT_FALSE(neither.tried) << "the program failed before, too";
  EXPECT_FALSE(neither.slower);
}

// A coordinator that searches what programs run, a worker, and a program of three kernels with default schedules. With
// a kernel that replaced another one, the program takes `after_ns` in place of 10 us.
class InPrograms : public ::testing::Test {
 protected:
  explicit InPrograms(int64_t after_ns) : after_ns_(after_ns) { begin(); }

  void begin() {
    CoordinatorOptions options;
    options.store = file_;
    options.background = {.on = true};
    service_ = std::make_unique<Service>(options);
    worker_ =
        std::make_unique<FakeWorker>(service_->channel, "w", Hooks{.whole = [this](const KernelChain& chain) {
                                       return took(chain.plan == kAfterChain ? after_ns_.load() : int64_t{10'000});
                                     }});
  }
  void end() {
    worker_.reset();
    service_.reset();
  }

  // Makes the program, says that its first kernel takes most time, and returns that kernel's record.
  KernelRecord made() {
    TuneOptions asked;
    asked.trials = 1;
    asked.cover = "single";
    asked.kernels_alone = true;
    const Job job = service_->run("program", asked);
    EXPECT_EQ(job.state, JobState::kSucceeded) << job.error;
    EXPECT_EQ(job.result->steps.size(), 3u);
    key_ = job.result->groups[0].key;
    KernelRecord record = *service_->record(key_);
    use();
    return record;
  }
  void use() {
    grpc::ClientContext context;
    v1::CountUsesRequest request;
    v1::KernelUse* item = request.add_uses();
    item->set_key(key_);
    item->set_calls(1);
    item->set_ns(kOneHourNs);
    v1::CountUsesResponse answer;
    EXPECT_TRUE(service_->kernels->CountUses(&context, request, &answer).ok());
  }
  int64_t number(const std::string& query) { return number_in(file_, query); }
  // Waits until this many replacements have the outcome.
  void await(int64_t count, TriedInPlace outcome) {
    while (number(cat("SELECT count(*) FROM replaced WHERE outcome = ", static_cast<int>(outcome))) < count)
      std::this_thread::yield();
  }

  Scratch scratch_;
  const std::string file_ = scratch_.path("a.db");
  std::atomic<int64_t> after_ns_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<FakeWorker> worker_;
  std::string key_;
};

struct SlowerInPlace : InPrograms {
  SlowerInPlace() : InPrograms(12'000) {}
};
struct FasterInPlace : InPrograms {
  FasterInPlace() : InPrograms(9'000) {}
};

TEST_F(SlowerInPlace, WhatWinsAloneAndLosesIsTakenBack) {
  const KernelRecord before = made();
  await(1, TriedInPlace::kTakenBack);
  EXPECT_EQ(service_->record(key_)->digest, before.digest);
  EXPECT_EQ(number("SELECT calls FROM replaced"), 4);
  EXPECT_EQ(number("SELECT count(*) FROM replaced WHERE message LIKE '%: 10 us before, 12 us after'"), 1);
  EXPECT_EQ(number("SELECT count(*) FROM records WHERE blessed = 1 AND key = (SELECT key FROM replaced)"), 1);
}

// The next process of the coordinator does not know that it has searched the kernel, finds the same plan again, and
// does not promote it.
TEST_F(SlowerInPlace, IsNotPromotedAgain) {
  const KernelRecord before = made();
  await(1, TriedInPlace::kTakenBack);
  const auto searches = [&] {
    return number("SELECT count(*) FROM jobs WHERE own = 1 AND state = 2 AND label LIKE 'background: %'");
  };
  ASSERT_EQ(searches(), 1);
  end();
  begin();
  while (searches() < 2) std::this_thread::yield();
  EXPECT_EQ(service_->record(key_)->digest, before.digest);
  EXPECT_EQ(number("SELECT count(*) FROM replaced"), 1);
}

TEST_F(SlowerInPlace, ARestartLosesNothing) {
  const KernelRecord before = made();
  while (number("SELECT count(*) FROM replaced") == 0) std::this_thread::yield();
  end();
  begin();
  await(1, TriedInPlace::kTakenBack);
  EXPECT_EQ(service_->record(key_)->digest, before.digest);
}

TEST_F(FasterInPlace, WhatMakesTheProgramFasterStays) {
  const KernelRecord before = made();
  await(1, TriedInPlace::kKept);
  EXPECT_NE(service_->record(key_)->digest, before.digest);
  EXPECT_EQ(number("SELECT count(*) FROM replaced WHERE message LIKE '%: 10 us before, 9 us after'"), 1);
}

}  // namespace
}  // namespace wl

// If the coordinator is unreachable, a client that watches a job waits longer before each retry. --budget ends a tune
// even if the coordinator or every worker is missing.
#include <gmock/gmock.h>

#include "client/cli/exit_code.h"
#include "client/program/files.h"
#include "proto/backoff.h"
#include "tests/unit/client/fake_coordinator.h"

namespace wl {
namespace {

using testing::HasSubstr;

TEST(Backoff, GrowsIsBoundedAndDiffers) {
  using Milliseconds = Backoff::Milliseconds;
  Backoff one(Milliseconds(100), Milliseconds(2000), 1), other(Milliseconds(100), Milliseconds(2000), 2);
  bool differ = false;
  int64_t range = 100;
  for (int i = 0; i < 20; ++i) {
    const Milliseconds a = one.next(), b = other.next();
    EXPECT_GE(a.count(), range / 2);
    EXPECT_LE(a.count(), range);
    differ |= a != b;
    range = std::min<int64_t>(2 * range, 2000);
  }
  EXPECT_TRUE(differ);
  one.reset();
  EXPECT_LE(one.next().count(), 100);
}

class AwayCoordinator : public FakeCoordinator {
 protected:
  AwayCoordinator() {
    Job job;
    job.name = "jobs/1";
    job.state = JobState::kRunning;
    tuning_.job = to_proto(job);
    EXPECT_TRUE(write_file(path("g.graph"), right_record().graph).ok());
  }
  int tune() { return run({"tune", path("g.graph"), "--budget", "0.1"}); }
};

TEST_F(AwayCoordinator, IsNotAskedAllTheTime) {
  tuning_.watch = [](grpc::ServerContext*, grpc::ServerWriter<v1::Job>*) {
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "shutting down");
  };
  Service service = *Service::at(address_, {});
  int lost = 0;
  const auto job = service.watch_job(
      "jobs/1", [](const Job&) {}, [&](bool away) { lost += away; }, {.patience_s = 1});
  EXPECT_EQ(job.status().code(), absl::StatusCode::kUnavailable) << job.status();
  EXPECT_THAT(std::string(job.status().message()), HasSubstr("warploom watch jobs/1"));
  EXPECT_EQ(lost, 1);
  // The client waits at least 50, 100, 200, 400 and 800 ms before its retries. These waits together exceed its
  // patience of 1 s.
  EXPECT_LE(tuning_.watches, 6);
}

TEST_F(AwayCoordinator, BudgetEndsAWatchThatIsAlwaysBroken) {
  tuning_.watch = [&](grpc::ServerContext*, grpc::ServerWriter<v1::Job>* writer) {
    writer->Write(tuning_.job);
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "shutting down");
  };
  EXPECT_EQ(tune(), kExitUnreachable);
  EXPECT_THAT(said_, HasSubstr("what was measured is"));
}

TEST_F(AwayCoordinator, IsUnreachableWhenTheJobIsToBeCancelled) {
  tuning_.cancelled = grpc::Status(grpc::StatusCode::UNAVAILABLE, "shutting down");
  tuning_.watch = [&](grpc::ServerContext*, grpc::ServerWriter<v1::Job>* writer) {
    writer->Write(tuning_.job);
    tuning_.cancels.wait(0);
    return grpc::Status::OK;
  };
  EXPECT_EQ(tune(), kExitUnreachable);
  EXPECT_THAT(said_, HasSubstr("what was measured is in its store: start it again, then `warploom watch"));
}

TEST_F(AwayCoordinator, IsDrainedAndUndrained) {
  EXPECT_EQ(run({"drain"}), kExitDone) << said_;
  EXPECT_THAT(printed_, HasSubstr("workers get no new work"));
  EXPECT_EQ(run({"undrain"}), kExitDone) << said_;
  EXPECT_EQ(admin_.calls, (std::vector<std::string>{"drain", "undrain"}));
}

TEST_F(AwayCoordinator, SaysWhatItIsAndHolds) {
  admin_.info.set_version("0.1.0");
  admin_.info.set_store("a.db");
  admin_.info.set_draining(true);
  admin_.info.set_resident_bytes(21'000'000);
  EXPECT_EQ(run({"status"}), kExitDone) << said_;
  EXPECT_THAT(printed_, testing::AllOf(HasSubstr("0.1.0"), HasSubstr("a.db"), HasSubstr("none: drained")));
  EXPECT_THAT(printed_, testing::ContainsRegex("heap holds +not known\n"));
  EXPECT_THAT(printed_, testing::ContainsRegex("resident +21\\.0 MB\n"));
  admin_.info.set_heap_bytes(10'500'000);
  EXPECT_EQ(run({"status"}), kExitDone) << said_;
  EXPECT_THAT(printed_, testing::ContainsRegex("heap holds +10\\.5 MB\n"));
  EXPECT_EQ(run({"status", "--json", "-"}), kExitDone) << said_;
  EXPECT_THAT(printed_,
              testing::AllOf(HasSubstr("\"heap_bytes\": 10500000"), HasSubstr("\"resident_bytes\": 21000000")));
}

TEST_F(AwayCoordinator, BudgetEndsAJobThatHasNoWorker) {
  tuning_.watch = [&](grpc::ServerContext*, grpc::ServerWriter<v1::Job>* writer) {
    v1::Job job = tuning_.job;
    if (tuning_.cancels > 0) job.set_state(v1::JOB_STATE_CANCELLED);
    writer->Write(job);
    tuning_.cancels.wait(0);
    return grpc::Status::OK;
  };
  EXPECT_EQ(tune(), kExitUnreachable);
  EXPECT_THAT(said_,
              HasSubstr("the budget of 0.1 s is over and no worker served cpu; start one with `warploom-worker"));
  EXPECT_EQ(tuning_.cancels, 1);
}

}  // namespace
}  // namespace wl

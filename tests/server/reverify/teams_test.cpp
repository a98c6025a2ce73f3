// A team's winners are verified again for that team: the new records are the team's own, and the verifying job does not
// count against the team's limit of jobs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/server/outside.h"
#include "tests/server/trust/with_tokens.h"

namespace wl {
namespace {

class ReverifyOfTeams : public WithTokens {
 protected:
  ReverifyOfTeams() {
    add_row("team vision\nteam speech jobs=2");
    for (const char* team : {"vision", "speech"}) add_token(team, kClient | kWorker, team);
    add_token("fleet", kClient | kWorker);
    start();
    vision.call_by(by_token("vision"));
    speech.call_by(by_token("speech"));
    newer.compiler_versions = "gcc 13";
  }
  std::vector<std::string> reverify(const Caller& caller, grpc::StatusCode expected = grpc::StatusCode::OK) {
    grpc::ClientContext context;
    v1::ReverifyResponse answer;
    EXPECT_EQ(caller.admin->Reverify(&context, {}, &answer).error_code(), expected);
    return {answer.jobs().begin(), answer.jobs().end()};
  }
  Caller vision, speech;
  Device newer = fake_device();
};

TEST_F(ReverifyOfTeams, StayWithTheTeamAndItsQuotaIsItsOwn) {
  {
    FakeWorker worker(by_token("fleet"), "old");
    ASSERT_EQ(speech.run("r1", trials(16)).state, JobState::kSucceeded);
  }
  TuneOptions options = trials(16);
  options.device = newer;
  options.require_cached = true;
  EXPECT_EQ(speech.run("r2", options).state, JobState::kNotCached);
  {
    // A worker of another team does not verify the team's winners.
    FakeWorker other(by_token("vision"), "other", {}, newer);
    wait_for_workers(store, 2);
    EXPECT_TRUE(reverify(*service).empty());
  }
  FakeWorker worker(by_token("fleet"), "new", {}, newer);
  wait_for_workers(store, 3);
  reverify(speech, grpc::StatusCode::PERMISSION_DENIED);
  const std::vector<std::string> jobs = reverify(*service);
  ASSERT_EQ(jobs.size(), 1u);
  EXPECT_TRUE(vision.watch(jobs[0]).empty()) << "it is no job of theirs";
  EXPECT_EQ(speech.watch(jobs[0]).back().state, JobState::kSucceeded);
  EXPECT_EQ(speech.run("r3", options).state, JobState::kSucceeded);
  EXPECT_EQ(vision.run("r4", options).state, JobState::kNotCached);
  grpc::ClientContext context;
  v1::ListKernelsResponse page;
  ASSERT_TRUE(vision.kernels->ListKernels(&context, {}, &page).ok());
  EXPECT_EQ(page.kernels_size(), 0);
}

// The verifying job stays open, since its worker takes no lease. The team may nevertheless have as many jobs as its row
// allows.
TEST_F(ReverifyOfTeams, CountNotAmongTheJobsOfTheTeam) {
  {
    FakeWorker worker(by_token("fleet"), "old");
    ASSERT_EQ(speech.run("r1", trials(16)).state, JobState::kSucceeded);
  }
  Caller(by_token("fleet")).enter("new", newer);
  ASSERT_EQ(reverify(*service).size(), 1u);
  TuneOptions options = trials(64);
  options.device = newer;
  for (const char* request : {"a", "b"}) EXPECT_TRUE(speech.create(request, options).ok());
  EXPECT_EQ(speech.create("c", options).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace wl

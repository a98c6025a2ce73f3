// Who sees what programs run: a team its own sums, kernels, costs and missed graphs, nobody those of another team, and
// operators all.
#include "proto/usage.h"

#include <gtest/gtest.h>

#include "tests/server/outside.h"
#include "tests/server/trust/with_tokens.h"

namespace wl {
namespace {

class UsageOfTeams : public WithTokens {
 protected:
  UsageOfTeams() {
    add_row("team vision weight=1\nteam speech weight=1");
    for (const char* team : {"vision", "speech"}) add_token(team, kClient | kWorker | kCache, team);
    for (const char* caller : {"fleet", "nobody"}) add_token(caller, kClient | kWorker);
    add_token("machine", kWorker);
    CoordinatorOptions options;
    options.listen = "127.0.0.1:0";
    start(options);
    vision.call_by(by_token("vision"));
    speech.call_by(by_token("speech"));
    nobody.call_by(by_token("nobody"));
  }
  static absl::StatusOr<Usage> seen_by(const Caller& caller, int most = 0) {
    grpc::ClientContext context;
    v1::GetUsageRequest request;
    request.set_most(most);
    v1::Usage answer;
    const grpc::Status status = caller.kernels->GetUsage(&context, request, &answer);
    if (!status.ok()) return from_grpc(status);
    return from_proto(answer);
  }
  // Tunes a graph for a team, whose programs then run each of its kernels, and ask for another graph in vain.
  static void use(Caller& caller, const std::string& team, int64_t calls, int64_t size) {
    const Job job = caller.run(cat("tuned for ", team), trials(8), one_op(size));
    ASSERT_EQ(job.state, JobState::kSucceeded) << job.error;
    v1::CountUsesRequest request;
    for (const GroupResult& group : job.result->groups) {
      v1::KernelUse* item = request.add_uses();
      item->set_key(group.key);
      item->set_calls(calls);
      item->set_ns(calls * 1'000'000);
    }
    grpc::ClientContext context;
    v1::CountUsesResponse counted;
    ASSERT_TRUE(caller.kernels->CountUses(&context, request, &counted).ok());
    ASSERT_EQ(counted.known(), request.uses_size());
    TuneOptions asked = trials(0);
    asked.require_cached = true;
    ASSERT_EQ(caller.run(cat("missed by ", team), asked, one_op(size + 1)).state, JobState::kNotCached);
  }

  Caller vision, speech, nobody;
};

TEST_F(UsageOfTeams, IsSeenByThemAndByOperatorsAlone) {
  FakeWorker worker(by_token("fleet"), "one");
  use(vision, "vision", 1000, 8);
  use(speech, "speech", 70, 16);
  const Usage all = seen_by(*service).value();
  ASSERT_EQ(all.teams.size(), 2u) << "an operator sees both";
  EXPECT_EQ(all.total.all_calls(), 1070);
  EXPECT_EQ(all.missed_in_all, 2);
  for (const auto& [caller, team, calls] : {std::tuple(&vision, "vision", 1000), std::tuple(&speech, "speech", 70)}) {
    const Usage usage = seen_by(*caller).value();
    ASSERT_EQ(usage.teams.size(), 1u) << team;
    EXPECT_EQ(usage.teams[0].team, team);
    EXPECT_EQ(usage.teams[0].missed, 1);
    EXPECT_EQ(usage.total.all_calls(), calls);
    EXPECT_EQ(usage.total.calls[static_cast<size_t>(UseKind::kTuned)], calls);
    EXPECT_EQ(usage.kernels_in_all, 1);
    ASSERT_EQ(usage.kernels.size(), 1u);
    EXPECT_EQ(usage.kernels[0].team, team);
    EXPECT_EQ(caller->record(usage.kernels[0].key)->digest, usage.kernels[0].digest);
    EXPECT_EQ(usage.missed_in_all, 1);
    ASSERT_EQ(usage.missed.size(), 1u);
    EXPECT_EQ(usage.missed[0].team, team);
    EXPECT_TRUE(usage.missed[0].why.starts_with("1 of 1 kernels are not in the store; still missing: 1 of 1, exp "))
        << usage.missed[0].why;
    EXPECT_TRUE(usage.missed[0].why.ends_with("of the same operations with other sizes the store has 1 record"))
        << "of the other team's record nothing is said: " << usage.missed[0].why;
    EXPECT_GT(usage.trials, 0);
    EXPECT_LT(usage.trials, all.trials);
  }
  Usage nothing;
  nothing.background = all.background;
  EXPECT_EQ(seen_by(nobody).value(), nothing) << "who has no team sees no team";
}

// Metrics may be read every second, and the sums are over many rows.
TEST_F(UsageOfTeams, IsSummedAtMostEveryTenSeconds) {
  FakeWorker worker(by_token("fleet"), "one");
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_EQ(seen_by(vision).value().kernels_in_all, 0);
  use(vision, "vision", 1000, 8);
  const int64_t then = seen_by(vision).value().kernels_in_all;
  const bool soon = std::chrono::steady_clock::now() - begun < std::chrono::seconds(9);
  EXPECT_TRUE(then == 0 || !soon) << then;
}

TEST_F(UsageOfTeams, IsNotForWorkers) {
  const Caller machine(by_token("machine"));
  EXPECT_EQ(seen_by(machine).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(UsageOfTeams, HasABound) {
  EXPECT_EQ(seen_by(vision, 500).status(), absl::OkStatus());
  for (const int most : {501, -1})
    EXPECT_EQ(seen_by(vision, most).status().code(), absl::StatusCode::kInvalidArgument) << most;
}

}  // namespace
}  // namespace wl

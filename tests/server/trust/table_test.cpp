// One to three dishonest workers serve a coordinator together with none to two honest ones, with and without tokens. In
// no case does a client load an object that only dishonest workers have made.
#include <gtest/gtest.h>

#include <list>

#include "proto/trust/signing.h"
#include "tests/server/outside.h"
#include "tests/server/trust/with_tokens.h"

namespace wl {
namespace {

// Which workers call with tokens. The other workers call over plain TCP, under names of their choice.
enum class Known { kNobody, kHonest, kAll };

// All dishonest workers send the same forged objects, claim 500 ns, which is faster than any honest kernel, and in
// confirmations call some plans wrong.
Hooks dishonest() {
  return {.before = {},
          .judge =
              [](const Batch& batch, Trial* trial) {
                if (trial->outcome == Outcome::kCorrect) trial->samples_ns = {500, 500, 500};
                if (confirms(batch.phase) && trial->plan.ends_with("7")) trial->outcome = Outcome::kWrongResult;
              },
          .forge = forge_objects,
          .whole = {}};
}

class Table : public WithTokens, public ::testing::WithParamInterface<std::tuple<int, int, Known>> {
 protected:
  std::shared_ptr<grpc::Channel> channel_of(bool honest, int number) {
    const Known who = std::get<2>(GetParam());
    const bool known = who == Known::kAll || (honest && who == Known::kHonest);
    return known ? by_token(cat(honest ? "honest" : "hostile", number))
                 : dial(service->coordinator.addresses().back(), {}).value();
  }
};

TEST_P(Table, OfHostileWorkers) {
  const auto [hostile, honest, known] = GetParam();
  for (int i = 0; i < 3; ++i) {
    add_token(cat("hostile", i), kWorker);
    add_token(cat("honest", i), kWorker);
  }
  CoordinatorOptions options;
  options.listen = "127.0.0.1:0";
  options.signing_key = scratch.path("key");
  options.lease_s = 0.5;
  options.patience_s = 0.1;
  options.build = [](const Source& source, const std::atomic<bool>&) {
    return Built{.object_sha256 = sha256_hex("object of " + source.text), .compiler = "gcc 12", .why = ""};
  };
  start(options);
  std::list<FakeWorker> workers;
  for (int i = 0; i < hostile; ++i) workers.emplace_back(channel_of(false, i), cat("w", i), dishonest());
  for (int i = 0; i < honest; ++i) workers.emplace_back(channel_of(true, i), cat("x", i));
  wait_for_workers(store, hostile + honest);
  const auto job = service->create("r", trials(16));
  ASSERT_TRUE(job.ok()) << job.status();
  const Job done = service->watch(job->name).back();
  // Workers without tokens count as one principal, so a forged result of one of them may make the coordinator distrust
  // all. The job must therefore succeed only if there are honest workers and some workers have tokens.
  const bool decided = honest > 0 && known != Known::kNobody;
  EXPECT_TRUE(!decided || done.state == JobState::kSucceeded) << done.error;
  int loaded = 0;
  for (const auto& row : rows_of(store, "SELECT lower(hex(key)) FROM records WHERE blessed = 1")) {
    const absl::StatusOr<KernelRecord> record = service->record(row[0]);
    ASSERT_TRUE(record.ok()) << record.status();
    if (!is_confirmed(*record) && !is_built(*record, {})) continue;
    EXPECT_EQ(record->object_sha256, sha256_hex("object of " + record->plan)) << record->measured_by;
    ++loaded;
  }
  EXPECT_TRUE(!decided || loaded > 0);
}

INSTANTIATE_TEST_SUITE_P(Cells, Table,
                         ::testing::Combine(::testing::Values(1, 2, 3), ::testing::Values(0, 1, 2),
                                            ::testing::Values(Known::kNobody, Known::kHonest, Known::kAll)));

}  // namespace
}  // namespace wl

// Generations of signed records, by which a coordinator says that some records are no longer right
// (docs/design/trust.md#generations).
#include <gtest/gtest.h>

#include <fstream>
#include <optional>

#include "proto/trust/signing.h"
#include "server/store/store.h"
#include "tests/server/outside.h"
#include "tests/server/service.h"
#include "tests/unit/scratch.h"

namespace wl {
namespace {

class Generations : public ::testing::Test {
 protected:
  void start() {
    service.reset();
    CoordinatorOptions options;
    options.store = store;
    options.signing_key = key_file;
    options.signers = signers;
    service.emplace(options);
  }
  // Runs a job, and returns all records that are served afterwards, ordered by key.
  std::vector<KernelRecord> made(const std::string& request = "r") {
    FakeWorker worker(service->channel, "one");
    TuneOptions options = trials(8);
    options.retune = true;
    const Job job = service->run(request, options);
    EXPECT_EQ(job.state, JobState::kSucceeded) << job.error;
    std::vector<KernelRecord> out;
    for (const auto& row : rows_of(store, "SELECT lower(hex(key)) FROM records WHERE blessed = 1 ORDER BY key"))
      out.push_back(service->record(row[0]).value());
    EXPECT_GT(out.size(), 2u);
    return out;
  }
  StoreHead head() {
    grpc::ClientContext context;
    v1::GetHeadsResponse answer;
    EXPECT_TRUE(service->kernels->GetHeads(&context, {}, &answer).ok());
    EXPECT_EQ(answer.heads_size(), 1);
    return answer.heads_size() == 1 ? from_proto(answer.heads(0)) : StoreHead();
  }
  // Waits until the coordinator has signed all records with its present key, and its oldest valid generation is
  // therefore above `above`.
  void await_floor(int64_t above = 0) {
    while (head().oldest <= above) std::this_thread::yield();
  }

  Scratch scratch;
  const std::string store = scratch.path("a.db");
  std::string key_file = scratch.path("key"), signers;
  std::optional<Service> service;
};

TEST_F(Generations, GrowWithEveryRecordAndAreSigned) {
  start();
  const std::vector<KernelRecord> first = made("a"), second = made("b");
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) EXPECT_GT(second[i].generation, first[i].generation);
  for (KernelRecord record : second) {
    EXPECT_TRUE(check_signature(record, {{record.signed_by, "it"}}).ok());
    for (const int64_t other : {int64_t{0}, record.generation + 1}) {
      record.generation = other;
      EXPECT_TRUE(absl::IsDataLoss(check_signature(record, {}))) << "the generation is under the signature";
    }
  }
}

TEST_F(Generations, OfWhatIsInvalidatedAreBelowTheFloorOfTheirKey) {
  start();
  await_floor();
  const std::vector<KernelRecord> records = made();
  service->invalidate(records[0].key);
  const StoreHead said = head();
  EXPECT_TRUE(is_sound(said));
  EXPECT_GT(floor_of(said, records[0].key), records[0].generation);
  EXPECT_LE(floor_of(said, records[1].key), records[1].generation) << "others stay right";
  const std::vector<KernelRecord> again = made("again");
  EXPECT_GT(again[0].generation, floor_of(head(), again[0].key));
  StoreHead forged = said;
  forged.floors.clear();
  EXPECT_FALSE(is_sound(forged));
  forged = said;
  forged.unix_ms += 1;
  EXPECT_FALSE(is_sound(forged));
}

// When too many tuning keys have a floor (oldest valid generation) of their own, all served records are signed anew,
// and one floor replaces all of these.
TEST_F(Generations, AreGivenAnewToAllThatIsServed) {
  start();
  await_floor();
  const std::vector<KernelRecord> records = made();
  const int64_t before = head().oldest;
  run_in(store,
         "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 300) "
         "INSERT INTO floors SELECT printf('key:%064d', i), 1 FROM n");
  service->invalidate(records[0].key);
  await_floor(before);
  EXPECT_EQ(head().floors.size(), 0u);
  for (size_t i = 1; i < records.size(); ++i) {
    const absl::StatusOr<KernelRecord> record = service->record(records[i].key);
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_GE(record->generation, head().oldest);
    EXPECT_EQ(record->digest, records[i].digest);
    EXPECT_TRUE(check_signature(*record, {{record->signed_by, "it"}}).ok());
  }
  EXPECT_LT(records[0].generation, head().oldest) << "what was invalidated is not";
  expect_sound(store);
}

// A coordinator with a new signing key signs the records of its former key anew, if the former key is among --signers.
// Other records keep their signatures.
TEST_F(Generations, AreGivenAnewByAKeyThatIsNew) {
  start();
  await_floor();
  const std::vector<KernelRecord> records = made();
  const std::string old_key = head().signed_by;
  for (const bool known : {false, true}) {
    key_file = scratch.path(cat("new_key", known));
    signers = known ? scratch.path("signers") : "";
    if (known) std::ofstream(signers) << old_key << " before\n";
    start();
    await_floor();
    EXPECT_NE(head().signed_by, old_key);
    const absl::StatusOr<KernelRecord> record = service->record(records[1].key);
    ASSERT_TRUE(record.ok()) << record.status();
    EXPECT_EQ(record->signed_by, known ? head().signed_by : old_key);
    EXPECT_TRUE(check_signature(*record, {{record->signed_by, "it"}}).ok());
  }
  expect_sound(store);
}

// A coordinator with another signing key starts from a backup. It still knows which generations are valid of records
// that were signed with the first key.
TEST_F(Generations, AreKnownToWhoBeginsWithABackup) {
  start();
  await_floor();
  (void)made();
  const StoreHead said = head();
  const std::string backup = scratch.path("backup.db");
  service.reset();
  {
    const auto opened = Store::open({.file = store}).value();
    opened->sign_with(SigningKey::open(key_file).value());
    ASSERT_TRUE(opened->backup(backup).ok());
  }
  const auto elsewhere = Store::open({.file = backup}).value();
  elsewhere->sign_with(SigningKey::open(scratch.path("another")).value());
  const auto heads = heads_of(*elsewhere);
  ASSERT_TRUE(heads.ok()) << heads.status();
  ASSERT_EQ(heads->size(), 2u);
  EXPECT_EQ((*heads)[1].signed_by, said.signed_by);
  EXPECT_EQ((*heads)[1].oldest, said.oldest);
  EXPECT_TRUE(is_sound((*heads)[1]));
}

}  // namespace
}  // namespace wl

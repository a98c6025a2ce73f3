// Writes that fail: each fails without making other writes fail, and after a failed fsync nothing is served any more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <thread>

#include "server/store/sql/sql.h"
#include "tests/server/store/fault_vfs.h"
#include "tests/server/store/samples.h"

namespace wl {
namespace {

using testing::Fault;
using testing::FaultVfs;
using ::testing::HasSubstr;
using testing::VfsCall;

// Holds the writer's thread at the beginning of a transaction until the writes of a test are queued, so that these
// writes share the next transaction.
class Gate {
 public:
  void at_point(const char* name) {
    if (std::string_view(name) == "begin" && armed_.exchange(false)) opened_.get_future().wait();
  }
  // Runs the writes in one transaction, and returns the status of each write.
  std::vector<absl::Status> together(Store& store, const std::vector<std::function<absl::Status()>>& writes) {
    armed_ = true;
    constexpr int64_t kNoJob = 999;  // the id of no job, so that the first transaction writes nothing
    auto first = std::async(std::launch::async, [&] { return store.set_job_cancelling(kNoJob); });
    while (armed_) std::this_thread::yield();
    std::vector<std::future<absl::Status>> running;
    for (size_t i = 0; i < writes.size(); ++i) {
      running.push_back(std::async(std::launch::async, writes[i]));
      while (store.stats().queued != static_cast<int64_t>(i) + 1) std::this_thread::yield();
    }
    opened_.set_value();
    EXPECT_TRUE(first.get().ok());
    std::vector<absl::Status> out;
    for (auto& each : running) out.push_back(each.get());
    return out;
  }

 private:
  std::atomic<bool> armed_ = false;
  std::promise<void> opened_;
};

JobRow large_job(const std::string& request) {
  JobRow job = some_job(request);
  job.graph = std::string(1'000'000, 'g');
  return job;
}

TEST(StoreFailures, AWriteThatDoesNotFitFailsAlone) {
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  { open_or_die({.file = file}); }
  const int64_t pages = static_cast<int64_t>(std::filesystem::file_size(file)) / 4096;
  Gate gate;
  auto store =
      open_or_die({.file = file, .max_pages = pages + 8, .at_point = [&](const char* name) { gate.at_point(name); }});
  const auto ended = gate.together(*store, {[&] { return store->create_job(some_job("before")).status(); },
                                            [&] { return store->create_job(large_job("large")).status(); },
                                            [&] { return store->create_job(some_job("after")).status(); }});
  EXPECT_TRUE(ended[0].ok()) << ended[0];
  EXPECT_EQ(ended[1].code(), absl::StatusCode::kResourceExhausted) << ended[1];
  EXPECT_TRUE(ended[2].ok()) << ended[2];
  EXPECT_EQ(store->list_jobs(0, 10)->size(), 2u);
  EXPECT_TRUE(store->job_by_request("after")->has_value());
}

TEST(StoreFailures, WhenTheLogIsFullAtCommitEachWriteIsTriedAlone) {
  Scratch scratch;
  FaultVfs vfs("full");
  Gate gate;
  auto store = open_or_die(
      {.file = scratch.path("a.db"), .at_point = [&](const char* name) { gate.at_point(name); }, .vfs = vfs.name()});
  ASSERT_TRUE(store->create_job(some_job("there")).ok());
  vfs.arm(Fault::kFullDisk, VfsCall::kWrite, "-wal", 1);
  const auto ended = gate.together(*store, {[&] { return store->create_job(some_job("a")).status(); },
                                            [&] { return store->create_job(some_job("b")).status(); },
                                            [&] { return store->create_job(some_job("c")).status(); }});
  EXPECT_TRUE(vfs.failed());
  for (const absl::Status& each : ended) EXPECT_TRUE(each.ok()) << each;
  EXPECT_EQ(store->list_jobs(0, 10)->size(), 4u);
  EXPECT_FALSE(store->stats().broken);
}

TEST(StoreFailures, AnIoErrorOfOneWriteIsThatOfTheOthersOnlyIfItIsTheCommit) {
  Scratch scratch;
  FaultVfs vfs("once");
  Gate gate;
  auto store = open_or_die(
      {.file = scratch.path("a.db"), .at_point = [&](const char* name) { gate.at_point(name); }, .vfs = vfs.name()});
  ASSERT_TRUE(store->create_job(some_job("there")).ok());
  // While the huge job is stored, pages that do not fit into SQLite's cache are written to the log before the commit.
  JobRow huge = some_job("huge");
  huge.graph = std::string(4'000'000, 'g');
  vfs.arm(Fault::kIoError, VfsCall::kWrite, "-wal", 1);
  const auto ended = gate.together(*store, {[&] { return store->create_job(some_job("before")).status(); },
                                            [&] { return store->create_job(huge).status(); },
                                            [&] { return store->create_job(some_job("after")).status(); }});
  EXPECT_TRUE(vfs.failed());
  EXPECT_TRUE(ended[0].ok()) << ended[0];
  EXPECT_EQ(ended[1].code(), absl::StatusCode::kInternal) << ended[1];
  EXPECT_TRUE(ended[2].ok()) << ended[2];
  EXPECT_FALSE(store->stats().broken);
}

// After these errors of a commit, it is unknown whether the transaction is on the disk.
TEST(StoreFailures, AfterAFailedSyncNothingIsServed) {
  for (const VfsCall call : {VfsCall::kSync, VfsCall::kWrite}) {
    Scratch scratch;
    FaultVfs vfs("sync");
    std::atomic<int> told = 0;
    const std::string file = scratch.path("a.db");
    {
      auto store = open_or_die({.file = file, .on_broken = [&](const absl::Status&) { ++told; }, .vfs = vfs.name()});
      ASSERT_TRUE(store->create_job(some_job("acknowledged")).ok());
      vfs.arm(Fault::kIoError, call, "-wal", 1);
      const absl::Status failed = store->create_job(some_job("lost")).status();
      EXPECT_EQ(failed.code(), absl::StatusCode::kDataLoss) << failed;
      EXPECT_THAT(std::string(failed.message()), HasSubstr("not known"));
      EXPECT_EQ(store->create_job(some_job("later")).status().code(), absl::StatusCode::kDataLoss);
      EXPECT_EQ(store->job_by_request("acknowledged").status().code(), absl::StatusCode::kDataLoss) << "reads too";
      EXPECT_EQ(told, 1);
      EXPECT_TRUE(store->stats().broken);
    }
    auto store = open_or_die({.file = file});
    EXPECT_TRUE(store->job_by_request("acknowledged")->has_value());
    EXPECT_FALSE(store->job_by_request("later")->has_value());
  }
}

TEST(StoreFailures, AValueThatIsTooLongIsRefusedAndNotStoredAsNothing) {
  Scratch scratch;
  auto sql = Sql::open(scratch.path("a.db"), {.flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE});
  ASSERT_TRUE(sql.ok()) << sql.status();
  ASSERT_TRUE((*sql)->script("CREATE TABLE t (x)").ok());
  sqlite3_limit((*sql)->connection(), SQLITE_LIMIT_LENGTH, 1000);
  const std::string bytes(2000, 'x');
  const absl::Status blob = (*sql)->run("INSERT INTO t VALUES (?)", Blob{bytes});
  EXPECT_EQ(blob.code(), absl::StatusCode::kInvalidArgument) << blob;
  EXPECT_THAT(std::string(blob.message()), HasSubstr("at most 1000 bytes"));
  EXPECT_EQ((*sql)->run_with("INSERT INTO t VALUES (?)", {bytes}).code(), absl::StatusCode::kInvalidArgument);
  int64_t rows = 0;
  ASSERT_TRUE((*sql)
                  ->each("SELECT count(*) FROM t",
                         [&](const Sql::Row& row) {
                           rows = row.integer(0);
                           return false;
                         })
                  .ok());
  EXPECT_EQ(rows, 0);
}

TEST(StoreFailures, ACheckpointThatCannotFinishIsCountedAndDoneLater) {
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  auto store = open_or_die({.file = file});
  ASSERT_TRUE(store->create_job(some_job("r")).ok());
  sqlite3* outside = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &outside), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(outside, "BEGIN; SELECT * FROM jobs", nullptr, nullptr, nullptr), SQLITE_OK);
  int made = 0;
  while (store->stats().unfinished_checkpoints == 0 && made < 40)
    ASSERT_TRUE(store->create_job(large_job(cat(made++))).ok());
  EXPECT_EQ(store->stats().unfinished_checkpoints, 1);
  EXPECT_GT(store->stats().wal_bytes, 16 << 20);
  sqlite3_exec(outside, "COMMIT", nullptr, nullptr, nullptr);
  sqlite3_close(outside);
  const int64_t largest = store->stats().wal_bytes;
  while (store->stats().wal_bytes >= largest && made < 80) ASSERT_TRUE(store->create_job(large_job(cat(made++))).ok());
  EXPECT_LT(store->stats().wal_bytes, largest);
  EXPECT_EQ(store->stats().unfinished_checkpoints, 1);
}

// The log's file is reused at its size and does not grow, because syncing existing blocks is faster than syncing new
// ones.
TEST(StoreLog, IsWrittenAnewInItsOwnFile) {
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  auto store = open_or_die({.file = file});
  const auto log_bytes = [&] { return static_cast<int64_t>(std::filesystem::file_size(file + "-wal")); };
  int made = 0;
  while (store->stats().checkpoints == 0 && made < 40) ASSERT_TRUE(store->create_job(large_job(cat(made++))).ok());
  ASSERT_TRUE(store->create_job(some_job("after")).ok());
  const int64_t bytes = log_bytes();
  EXPECT_GT(bytes, 16 << 20);
  EXPECT_LT(store->stats().wal_bytes, 1 << 20);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(store->create_job(large_job(cat(made++))).ok());
  EXPECT_EQ(log_bytes(), bytes);
  EXPECT_GT(store->stats().wal_bytes, 4'000'000);
}

}  // namespace
}  // namespace wl

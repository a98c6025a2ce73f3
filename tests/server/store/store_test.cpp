// The guarantees of the store: acknowledged data survives a kill at any point, a refused write leaves nothing, a worker
// that lost its lease cannot write, and a store that cannot be used says why.
#include "server/store/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "tests/server/store/samples.h"
#include "tests/unit/fuzz.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

TEST(Store, TrialsAndBatchesComeBackAsTheyWere) {
  Scratch scratch;
  const StoreOptions options{.file = scratch.path("a.db")};
  int64_t search = 0;
  {
    auto store = open_or_die(options);
    const JobRow job = *store->create_job(some_job("r1"));
    search = store->open_search(job.id, {0, "key", "env", "random", 0, 7}, false)->id;
    ASSERT_TRUE(store->put_round(some_batch("b", search), search, 0, {}).ok());
    const int64_t attempt = *store->lease_batch("b", "lease", "w");
    Trial odd = some_trial(1);
    odd.clocks_mhz = {1980, 1965, 1980};
    odd.max_error = std::numeric_limits<double>::infinity();
    ASSERT_EQ(*store->report("b", "lease", attempt, {some_trial(0), odd}), ReportOutcome::kAccepted);
    ASSERT_TRUE(store->put_round(some_batch("b2", search, 2), search, 0, {some_trial(3)}).ok());
  }
  auto store = open_or_die(options);
  const auto trials = *store->trials(search);
  ASSERT_EQ(trials.size(), 3u);
  EXPECT_TRUE(trials[0].trial == some_trial(0));
  EXPECT_EQ(trials[1].trial.max_error, std::numeric_limits<double>::infinity());
  EXPECT_EQ(trials[1].trial.clocks_mhz, (std::vector<int64_t>{1980, 1965, 1980}));
  EXPECT_EQ(trials[2].trial.trial, 3);
  const std::vector<BatchRow> open = store->open_batches(search).value();
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].id, "b2");
  EXPECT_EQ(open[0].first_trial, 2);
  EXPECT_EQ(open[0].candidates, some_batch("b2", search, 2).candidates);
  EXPECT_TRUE(*store->drop_batch("b2"));
  EXPECT_EQ(store->trials(search)->size(), 3u) << "that a candidate was rejected stays true";
  EXPECT_FALSE(*store->drop_batch("b2"));
}

TEST(Store, OnlyTheLeaseThatOwnsABatchWrites) {
  Scratch scratch;
  auto store = open_or_die({.file = scratch.path("a.db")});
  const int64_t search = store->open_search(store->create_job(some_job("r"))->id, {0, kKey, "e", "s", 0, 0}, false)->id;
  ASSERT_TRUE(store->put_round(some_batch("b", search), search, 0, {}).ok());
  const int64_t first = *store->lease_batch("b", "A", "worker a");
  EXPECT_EQ(store->lease_batch("b", "C", "worker c").status().code(), absl::StatusCode::kNotFound) << "leased already";
  EXPECT_EQ(*store->release_lease("A", first, "worker a"), std::vector<std::string>{"worker a"});
  const int64_t second = *store->lease_batch("b", "B", "worker b");
  EXPECT_GT(second, first);
  EXPECT_EQ(*store->report("b", "A", first, {some_trial(0)}), ReportOutcome::kStale);
  EXPECT_EQ(*store->report("b", "B", first, {some_trial(0)}), ReportOutcome::kStale) << "right lease, wrong attempt";
  EXPECT_EQ(*store->report("b", "", second, {some_trial(0)}), ReportOutcome::kStale);
  EXPECT_TRUE(store->trials(search)->empty());
  EXPECT_EQ(*store->report("b", "B", second, {some_trial(0), some_trial(1)}), ReportOutcome::kAccepted);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(*store->report("b", "B", second, {some_trial(0)}), ReportOutcome::kDuplicate);
  EXPECT_EQ(*store->report("b", "A", first, {some_trial(0)}), ReportOutcome::kStale) << "the loser stays one";
  EXPECT_EQ(store->trials(search)->size(), 2u);
  EXPECT_EQ(store->release_lease("B", second, "").status().code(), absl::StatusCode::kNotFound);
}

TEST(Store, SameRequestSameJob) {
  Scratch scratch;
  auto store = open_or_die({.file = scratch.path("a.db")});
  const int64_t id = store->create_job(some_job("r"))->id;
  EXPECT_EQ(store->create_job(some_job("r"))->id, id);
  JobRow other = some_job("r");
  other.body_hash = "other";
  EXPECT_EQ(store->create_job(other).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(store->list_jobs(0, 10)->size(), 1u);
}

TEST(Store, AJobKeepsItsSearchAndRetuneBeginsANewOne) {
  Scratch scratch;
  auto store = open_or_die({.file = scratch.path("a.db")});
  const SearchRow wanted{0, kKey, "e", "s", 0, 1};
  const int64_t a = store->create_job(some_job("a"))->id, b = store->create_job(some_job("b"))->id;
  const int64_t first = store->open_search(a, wanted, false)->id;
  EXPECT_EQ(store->open_search(b, wanted, true)->generation, 1);
  const int64_t second = store->open_search(b, wanted, true)->id;
  EXPECT_NE(first, second) << "and asked again the same";
  EXPECT_EQ(store->open_search(a, wanted, false)->id, first);
  EXPECT_EQ(store->open_search(store->create_job(some_job("c"))->id, wanted, false)->id, second);
}

TEST(Store, OneBlessedRecordAndNoStaleAnswer) {
  Scratch scratch;
  auto store = open_or_die({.file = scratch.path("a.db")});
  JobRow job = some_job("r");
  job = *store->create_job(job);
  const int64_t search = store->open_search(job.id, {0, kKey, "gcc 12", "s", 0, 0}, false)->id;
  const KernelRecord old = some_record(kKey, "old");
  ASSERT_TRUE(store->promote(old, search).ok());
  job.state = JobState::kSucceeded;
  job.options.trials = 32;
  job.result.emplace();
  job.result->groups.emplace_back().key = kKey;
  job.result->device.target = "cpu";
  ASSERT_TRUE(store->finish_job(job, "answer").ok());
  ASSERT_TRUE(store->whole_answer("answer")->has_value());
  EXPECT_EQ((*store->whole_answer("answer"))->trials_asked, 32);
  ASSERT_TRUE(store->promote(some_record(kKey, "new"), search).ok());
  EXPECT_FALSE(store->whole_answer("answer")->has_value()) << "made from a record that is not the blessed one any more";
  EXPECT_EQ((*store->record_by_key(kKey, "gcc 12"))->record.plan, "new");
  EXPECT_EQ((*store->record_by_key(kKey, ""))->record.plan, "new");
  EXPECT_FALSE(store->record_by_key(kKey, "gcc 13")->has_value());
  EXPECT_EQ((*store->record_by_digest(old.digest))->record.plan, "old");
  EXPECT_EQ(*store->invalidate(kKey), 1);
  EXPECT_FALSE(store->record_by_key(kKey, "")->has_value());
  ASSERT_TRUE(store->promote(some_record(kKey, "new"), search).ok()) << "the same bytes may be blessed again";
  EXPECT_EQ(store->list_records(std::nullopt, 10)->size(), 1u);
}

TEST(Store, ARecordNeedsItsObjectAndABlobItsDigest) {
  Scratch scratch;
  auto store = open_or_die({.file = scratch.path("a.db")});
  const int64_t search = store->open_search(store->create_job(some_job("r"))->id, {0, kKey, "e", "s", 0, 0}, false)->id;
  KernelRecord record = some_record(kKey, "p");
  record.object_sha256 = sha256_hex("object");
  record.digest = record_digest(record);
  EXPECT_EQ(store->promote(record, search).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(store->put_blob(record.object_sha256, "another object").ok());
  EXPECT_EQ(store->missing_blobs({record.object_sha256})->size(), 1u);
  ASSERT_TRUE(store->put_blob(record.object_sha256, "object").ok());
  ASSERT_TRUE(store->put_blob(sha256_hex(""), "").ok());
  EXPECT_EQ(**store->blob(record.object_sha256), "object");
  EXPECT_EQ(**store->blob(sha256_hex("")), "");
  EXPECT_TRUE(store->promote(record, search).ok());
}

TEST(Store, SecondOpenerGetsTheNameOfTheFirst) {
  Scratch scratch;
  auto store = open_or_die({.file = scratch.path("a.db")});
  const auto second = Store::open({.file = scratch.path("a.db")});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(cat("in use by another coordinator (process ", getpid())));
  store.reset();
  EXPECT_TRUE(Store::open({.file = scratch.path("a.db")}).ok());
}

TEST(Store, PartsTakeThePlaceOfABatch) {
  Scratch scratch;
  auto store = open_or_die({.file = scratch.path("a.db")});
  const int64_t search = store->open_search(store->create_job(some_job("r"))->id, {0, kKey, "e", "s", 0, 0}, false)->id;
  ASSERT_TRUE(store->put_round(some_batch("b", search), search, 0, {}).ok());
  const int64_t attempt = *store->lease_batch("b", "A", "w");
  BatchRow one = some_batch("b/0", search), two = some_batch("b/1", search, 1);
  EXPECT_EQ(store->split_batch("b", {one, two}).code(), absl::StatusCode::kNotFound) << "it is leased";
  EXPECT_EQ(store->reported("b", "A", attempt).value(), std::nullopt) << "it would be accepted";
  EXPECT_EQ(store->reported("b", "B", attempt).value(), ReportOutcome::kStale);
  ASSERT_TRUE(store->release_lease("A", attempt, "").ok());
  ASSERT_TRUE(store->split_batch("b", {one, two}).ok());
  EXPECT_EQ(*store->report("b", "A", attempt, {some_trial(0)}), ReportOutcome::kStale);
  const std::vector<BatchRow> open = store->open_batches(search).value();
  ASSERT_EQ(open.size(), 2u);
  EXPECT_EQ(open[1].id, "b/1");
}

// An epoch that a process sends is only compared and never stored, so that no epoch, however large, locks a worker's
// name out.
TEST(Store, NoEpochUsesUpAName) {
  Scratch scratch;
  auto store = open_or_die({.file = scratch.path("a.db")});
  EXPECT_EQ(*store->put_worker("w", 0, {}, "", 1), 1u);
  EXPECT_EQ(*store->put_worker("w", 1, {}, "", 1), 1u) << "the same process again";
  EXPECT_EQ(*store->put_worker("w", ~uint64_t{0}, {}, "", 1), 2u) << "it had an epoch of another store";
  EXPECT_EQ(*store->put_worker("w", 0, {}, "", 1), 3u) << "a new process takes the name over";
  EXPECT_EQ(store->put_worker("w", 2, {}, "", 1).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Store, KeepsWhereAWorkerSaysThatItRuns) {
  Scratch scratch;
  const StoreOptions options{.file = scratch.path("a.db")};
  ASSERT_TRUE(open_or_die(options)->put_worker("w", 0, {}, "one", 1).ok());
  auto store = open_or_die(options);
  EXPECT_EQ(*store->worker_machine("w"), "one");
  EXPECT_EQ(*store->worker_machine("x"), "");
  ASSERT_TRUE(store->put_worker("w", 0, {}, "other", 1).ok());
  EXPECT_EQ(*store->worker_machine("w"), "other");
}

TEST(Store, AFolderThatCannotBeMadeIsNamed) {
  Scratch scratch;
  std::ofstream(scratch.path("file"));
  const auto below = Store::open({.file = scratch.path("file/a.db")});
  EXPECT_EQ(below.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(below.status().message()), HasSubstr("name another store"));
}

TEST(Store, AFullDiskIsReportedAndLeavesNothingHalf) {
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  { open_or_die({.file = file}); }
  const int64_t pages = static_cast<int64_t>(std::filesystem::file_size(file)) / 4096;
  {
    auto store = open_or_die({.file = file, .max_pages = pages + 2});
    JobRow big = some_job("big");
    big.graph = std::string(100'000, 'x');
    const absl::Status full = store->create_job(big).status();
    EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
    EXPECT_THAT(std::string(full.message()), HasSubstr("full"));
    EXPECT_TRUE(store->create_job(some_job("small")).ok()) << "what fits still goes in";
  }
  auto store = open_or_die({.file = file, .quick_check = true});
  EXPECT_EQ(store->list_jobs(0, 10)->size(), 1u);
}

// Runs a variant of tell_story() in a child process that is killed at the store's point number `die_at`. Returns how
// many writes the child acknowledged (by a byte each in a pipe), or -1 if it was not killed.
int acknowledged_before_death(const std::string& file, int variant, int die_at) {
  int out[2];
  if (pipe(out) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    ::close(out[0]);
    int points = 0;
    StoreOptions options{.file = file};
    options.at_point = [&](const char*) {
      if (++points == die_at) raise(SIGKILL);
    };
    auto store = Store::open(options);
    if (!store.ok()) _exit(1);
    const auto acknowledged = [&] {
      if (write(out[1], "x", 1) != 1) _exit(2);
    };
    if (!tell_story(**store, acknowledged, variant).ok()) _exit(3);
    (*store)->close();
    _exit(0);
  }
  ::close(out[1]);
  int acknowledged = 0;
  char byte;
  while (read(out[0], &byte, 1) == 1) ++acknowledged;
  ::close(out[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return -1;
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "status " << status;
  return acknowledged;
}

TEST(StoreCrash, WhatWasAcknowledgedSurvivesADeathAtEveryPoint) {
  // The child is killed five times at every point in `make test-long`, once at a test scale of 1, and
  // once at every few points below that scale.
  const int times = static_cast<int>(std::clamp(std::round(testing::test_scale() / 2), 1.0, 5.0));
  const int step = static_cast<int>(std::ceil(1 / std::min(1.0, testing::test_scale())));
  const int first = 1 + static_cast<int>(testing::test_seed(0)) % step;
  for (int variant = 0; variant < times; ++variant) {
    int points = 0;
    for (int die_at = first;; die_at += step) {
      Scratch scratch;
      SCOPED_TRACE(cat("variant ", variant, ", point ", die_at));
      const std::string file = scratch.path("a.db");
      const int acknowledged = acknowledged_before_death(file, variant, die_at);
      if (acknowledged < 0) break;
      ++points;
      {
        auto store = open_or_die({.file = file, .quick_check = true});
        ASSERT_NE(store, nullptr);
        check_story(*store, acknowledged, variant);
      }
      expect_sound(file);
      if (HasFailure()) return;
    }
    std::printf("variant %d: %d deaths, each %d. point\n", variant, points, step);
    EXPECT_GT(points * step, 90) << "the story passes begin, statements and commits of eight transactions";
  }
}

}  // namespace
}  // namespace wl

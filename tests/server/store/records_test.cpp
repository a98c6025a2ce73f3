// How the store keeps records, their texts and their objects.
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <barrier>
#include <filesystem>
#include <thread>

#include "proto/wire.h"
#include "server/store/readers.h"
#include "tests/server/store/samples.h"

namespace wl {
namespace {

namespace fs = std::filesystem;

TEST(StoreRecords, ShareTheirTexts) {
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  constexpr int kRecords = 50;
  const std::string prelude(56'000, 'p');
  {
    auto store = open_or_die({.file = file});
    const int64_t search = make_search(*store);
    for (int i = 0; i < kRecords; ++i) {
      KernelRecord record = some_record(key_of(cat(i)), "p");
      record.source.prelude = prelude;
      record.digest = record_digest(record);
      ASSERT_TRUE(store->promote(record, search).ok());
      EXPECT_TRUE((*store->record_by_key(record.key, ""))->record == record);
    }
  }
  EXPECT_LT(fs::file_size(file), 10 * prelude.size()) << "the prelude is stored once, not 50 times";
  EXPECT_EQ(number_in(file, "SELECT count(*) FROM texts"), 2);
}

TEST(StoreRecords, AreReadAsTheBytesOfTheirMessages) {
  Scratch scratch;
  auto store = open_or_die({.file = scratch.path("a.db")});
  KernelRecord record = some_record(kKey, "p");
  record.source.entry = "entry";
  record.digest = record_digest(record);
  ASSERT_TRUE(store->promote(record, make_search(*store)).ok());
  for (const RecordName& name :
       {RecordName{kKey, "", ""}, RecordName{kKey, "gcc 12", ""}, RecordName{"", "", record.digest}}) {
    for (int round = 0; round < 2; ++round) {
      const auto whole = *store->record_message(name, true);
      ASSERT_TRUE(whole.has_value());
      EXPECT_EQ(whole->key, kKey);
      EXPECT_TRUE(*decode_record(whole->bytes) == record);
    }
    v1::KernelRecord manifest;
    ASSERT_TRUE(manifest.ParseFromString((*store->record_message(name, false))->bytes));
    EXPECT_EQ(manifest.source().prelude() + manifest.source().text(), "");
    EXPECT_EQ(manifest.source().entry(), "entry");
    EXPECT_EQ(manifest.digest(), record.digest);
  }
  EXPECT_FALSE(store->record_message({kKey, "gcc 13", ""}, true)->has_value());
  EXPECT_FALSE(store->record_message({key_of("other"), "", ""}, true)->has_value());
}

// A record whose row in the database refers to the text of another record is served only without texts.
TEST(StoreRecords, WithTheTextOfAnotherAreNotServed) {
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  {
    auto store = open_or_die({.file = file});
    const int64_t search = make_search(*store);
    ASSERT_TRUE(store->promote(some_record(kKey, "p"), search).ok());
    ASSERT_TRUE(store->promote(some_record(key_of("other"), "another_plan"), search).ok());
  }
  run_in(file, "UPDATE payloads SET source = (SELECT source FROM payloads WHERE record = 2) WHERE record = 1");
  auto store = open_or_die({.file = file});
  EXPECT_FALSE(store->record_by_key(kKey, "")->has_value());
  EXPECT_FALSE(store->record_message({kKey, "", ""}, true)->has_value());
  EXPECT_TRUE(store->record_message({kKey, "", ""}, false)->has_value()) << "nothing of it is wrong";
  EXPECT_TRUE(store->record_message({key_of("other"), "", ""}, true)->has_value());
}

TEST(StoreRecords, AreListedOnceEachWhateverTheirTime) {
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  constexpr int kRecords = 23;
  {
    auto store = open_or_die({.file = file});
    const int64_t search = make_search(*store);
    for (int i = 0; i < kRecords; ++i) ASSERT_TRUE(store->promote(some_record(key_of(cat(i)), "p"), search).ok());
  }
  // Most of these records have times in the same millisecond.
  run_in(file, "UPDATE records SET created_ms = 1000; UPDATE records SET created_ms = 2000 WHERE id < 4");
  auto store = open_or_die({.file = file});
  for (const int limit : {1, 2, 7, 23, 24}) {
    std::set<std::string> seen;
    std::optional<RecordCursor> after;
    int64_t last = 3000;
    for (;;) {
      const auto page = *store->list_records(after, limit);
      for (const RecordRow& row : page) {
        EXPECT_TRUE(seen.insert(row.record.key).second) << row.record.key << " again, pages of " << limit;
        EXPECT_LE(row.created_ms, last);
        last = row.created_ms;
      }
      if (static_cast<int>(page.size()) < limit) break;
      after = RecordCursor{page.back().created_ms, page.back().record.digest};
    }
    EXPECT_EQ(seen.size(), static_cast<size_t>(kRecords)) << "pages of " << limit;
  }
  EXPECT_EQ(store->list_records(RecordCursor{2000, ""}, 100)->size(), 20u) << "a time alone: what was before it";
  EXPECT_TRUE(store->list_records(RecordCursor{1000, ""}, 100)->empty());
}

TEST(StoreRecords, AnotherRecordIsNotServedUnderAKey) {
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  {
    auto store = open_or_die({.file = file});
    ASSERT_TRUE(store->promote(some_record(kKey, "p"), make_search(*store)).ok());
  }
  run_in(file, cat("UPDATE records SET key = x'", std::string(64, 'a'), "'"));
  auto store = open_or_die({.file = file});
  EXPECT_FALSE(store->record_by_key(std::string(64, 'a'), "")->has_value());
  EXPECT_EQ(store->stats().damaged, 1);
}

TEST(StoreRecords, WhenTheyWereLastUsedIsStored) {
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  {
    auto store = open_or_die({.file = file});
    const int64_t search = make_search(*store);
    ASSERT_TRUE(store->promote(some_record(key_of("used"), "p"), search).ok());
    ASSERT_TRUE(store->promote(some_record(key_of("idle"), "p"), search).ok());
  }
  run_in(file, "UPDATE records SET used_ms = 1");
  {
    auto store = open_or_die({.file = file});
    EXPECT_TRUE(store->record_by_key(key_of("used"), "")->has_value());
  }
  EXPECT_EQ(number_in(file, "SELECT count(*) FROM records WHERE used_ms > 1"), 1);
}

TEST(StoreRecords, ReadsRunBesideEachOther) {
  Scratch scratch;
  { open_or_die({.file = scratch.path("a.db")}); }
  std::vector<std::unique_ptr<Sql>> connections(2);
  for (auto& each : connections) each = *Sql::open(scratch.path("a.db"), {.flags = SQLITE_OPEN_READONLY});
  StoreReaders readers(std::move(connections));
  std::barrier meet(2);
  const auto read = [&] {
    const absl::Status done = readers.read([&](Sql& sql) {
      meet.arrive_and_wait();
      return sql.number("SELECT count(*) FROM jobs").status();
    });
    EXPECT_TRUE(done.ok()) << done;
  };
  std::thread other(read);
  read();
  other.join();
  readers.close();
  EXPECT_EQ(readers.read([](Sql&) { return absl::OkStatus(); }).code(), absl::StatusCode::kUnavailable);
}

TEST(StoreRecords, TheFileIsLookedThroughAfterAnUncleanStopOnly) {
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  EXPECT_FALSE(open_or_die({.file = file, .quick_check = true})->stats().checked) << "new";
  EXPECT_FALSE(open_or_die({.file = file, .quick_check = true})->stats().checked) << "closed";
  const pid_t child = fork();
  if (child == 0) {
    auto store = Store::open({.file = file});
    _exit(store.ok() && (*store)->create_job(some_job("r")).ok() ? 0 : 1);  // exits without closing the store
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  auto store = open_or_die({.file = file, .quick_check = true});
  EXPECT_TRUE(store->stats().checked) << "killed";
  EXPECT_EQ(store->list_jobs(0, 10)->size(), 1u);
}

TEST(StoreRecords, BatchesThatAreDoneGoWithTheLastJobOfTheirSearch) {
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  {
    auto store = open_or_die({.file = file});
    JobRow a = *store->create_job(some_job("a")), b = *store->create_job(some_job("b"));
    const SearchRow wanted{0, kKey, "e", "s", 0, 0};
    const int64_t search = store->open_search(a.id, wanted, false)->id;
    ASSERT_EQ(store->open_search(b.id, wanted, false)->id, search);
    ASSERT_TRUE(store->put_round(some_batch("done", search), search, 0, {}).ok());
    const int64_t attempt = *store->lease_batch("done", "L", "w");
    ASSERT_EQ(*store->report("done", "L", attempt, {some_trial(0), some_trial(1)}), ReportOutcome::kAccepted);
    ASSERT_TRUE(store->put_round(some_batch("open", search, 2), search, 0, {}).ok());
    a.state = b.state = JobState::kSucceeded;
    ASSERT_TRUE(store->finish_job(a, "").ok());
    EXPECT_EQ(*store->report("done", "L", attempt, {some_trial(0)}), ReportOutcome::kDuplicate) << "b still searches";
    ASSERT_TRUE(store->finish_job(b, "").ok());
    EXPECT_EQ(*store->report("done", "L", attempt, {some_trial(0)}), ReportOutcome::kStale) << "nobody searches";
    EXPECT_EQ(store->trials(search)->size(), 2u);
    EXPECT_EQ(store->open_batches(search)->size(), 1u);
  }
  EXPECT_EQ(number_in(file, "SELECT count(*) FROM batches"), 1);
}

// The store is written by a child process whose files may have at most 1 MiB (RLIMIT_FSIZE), which acts like a full
// disk.
TEST(StoreObjects, OneThatDoesNotFitIsRefusedAndLeavesNothing) {
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  const std::string large(4 << 20, 'x'), small(1000, 'y');
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {1 << 20, 1 << 20};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto store = Store::open({.file = file});
    if (!store.ok()) _exit(1);
    if ((*store)->put_blob(sha256_hex(large), large).code() != absl::StatusCode::kResourceExhausted) _exit(2);
    if (!(*store)->put_blob(sha256_hex(small), small).ok()) _exit(3);
    if ((*store)->missing_blobs({sha256_hex(small), sha256_hex(large)})->size() != 1) _exit(4);
    (*store)->close();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << WEXITSTATUS(status);
  EXPECT_TRUE(fs::is_empty(file + ".objects/unfinished"));
}

TEST(StoreObjects, AFileWithoutItsRowIsMissing) {
  Scratch scratch;
  const std::string file = scratch.path("a.db"), digest = sha256_hex("o");
  int left = 0;
  for (const std::string_view die_at : {"object written", "object synced", "object named"}) {
    const pid_t child = fork();
    if (child == 0) {
      StoreOptions options{.file = file};
      options.at_point = [&](const char* point) {
        if (die_at == point) _exit(9);
      };
      auto store = Store::open(options);
      (void)(*store)->put_blob(digest, "o");
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 9) << die_at;
    auto store = open_or_die({.file = file});
    EXPECT_EQ(store->missing_blobs({digest})->size(), 1u) << die_at;
    EXPECT_TRUE(fs::is_empty(file + ".objects/unfinished")) << die_at;
    ++left;
  }
  EXPECT_EQ(left, 3);
  auto store = open_or_die({.file = file});
  ASSERT_TRUE(store->put_blob(digest, "o").ok());
  EXPECT_EQ(**store->blob(digest), "o");
}

// A key has a record in the namespace of each team, and a shared record. A reader gets its own team's record first.
TEST(Records, AreOfTeams) {
  Scratch scratch;
  auto store = open_or_die({.file = scratch.path("a.db")});
  const auto search_of = [&](const std::string& team) {
    JobRow job = some_job("r " + team);
    job.team = team;
    return store->open_search(store->create_job(job)->id, {0, kKey, "gcc 12", "s", 0, 0, team}, false).value();
  };
  const SearchRow none = search_of(""), vision = search_of("vision"), speech = search_of("speech");
  EXPECT_NE(none.id, vision.id);
  EXPECT_NE(vision.id, speech.id);
  EXPECT_EQ(search_of("vision").id, vision.id) << "a team goes on with its own";
  const auto plan_for = [&](const Reader& reader) {
    const auto found = *store->record_by_key(kKey, "gcc 12", reader);
    return found ? found->record.plan : "nothing";
  };
  const Reader one{.team = "vision"}, other{.team = "speech"}, nobody, every{.every = true};
  ASSERT_TRUE(store->promote(some_record(kKey, "of_vision"), vision.id).ok());
  EXPECT_EQ(plan_for(one), "of_vision");
  EXPECT_EQ(plan_for(every), "of_vision");
  for (const Reader* reader : {&other, &nobody}) {
    EXPECT_EQ(plan_for(*reader), "nothing");
    EXPECT_TRUE(store->list_records(std::nullopt, 10, *reader)->empty());
    const std::string digest = some_record(kKey, "of_vision").digest;
    EXPECT_FALSE(store->record_message({.digest = digest, .reader = *reader}, true)->has_value());
    EXPECT_FALSE(store->record_message({.key = kKey, .reader = *reader}, false)->has_value());
  }
  ASSERT_TRUE(store->promote(some_record(kKey, "of_all"), none.id).ok());
  EXPECT_EQ(plan_for(one), "of_vision") << "its own comes first";
  EXPECT_EQ(plan_for(other), "of_all");
  EXPECT_EQ(plan_for(nobody), "of_all");
  EXPECT_EQ(store->list_records(std::nullopt, 10, one)->size(), 2u);
  EXPECT_EQ(store->list_records(std::nullopt, 10, every)->size(), 2u);
  // A record that a team shares replaces both the shared record and the team's own.
  ASSERT_TRUE(store->promote(some_record(kKey, "shared"), vision.id, /*shared=*/true).ok());
  for (const Reader* reader : {&one, &other, &nobody, &every}) EXPECT_EQ(plan_for(*reader), "shared");
  EXPECT_EQ(store->list_records(std::nullopt, 10, one)->size(), 1u);
  EXPECT_EQ(*store->invalidate(kKey), 1);
}

}  // namespace
}  // namespace wl

// Backups, stores that are restored from them, eviction, and periodic upkeep.
#include "server/store/upkeep.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "tests/server/store/samples.h"

namespace wl {
namespace {

namespace fs = std::filesystem;

KernelRecord record_with_object(Store& store, const std::string& key, const std::string& plan,
                                const std::string& object) {
  EXPECT_TRUE(store.put_blob(sha256_hex(object), object).ok());
  KernelRecord record = some_record(key, plan);
  record.object_sha256 = sha256_hex(object);
  record.digest = record_digest(record);
  return record;
}

TEST(StoreObjects, AreSeenByWhoSeesARecordOfThem) {
  Scratch scratch;
  auto store = open_or_die({.file = scratch.path("a.db")});
  const int64_t search = make_search(*store);
  std::set<std::string> of_records;
  std::vector<std::string> asked;
  for (int i = 0; i < 3; ++i) {
    const KernelRecord record = record_with_object(*store, key_of(cat(i)), "p", cat("object ", i));
    ASSERT_TRUE(store->promote(record, search).ok());
    of_records.insert(record.object_sha256);
    asked.push_back(record.object_sha256);
  }
  const std::string alone = sha256_hex("of no record");
  ASSERT_TRUE(store->put_blob(alone, "of no record").ok());
  asked.insert(asked.begin() + 1, alone);
  for (int i = 0; i < 2000; ++i) asked.push_back(sha256_hex(cat("not here ", i)));
  asked.push_back(asked.front());
  for (const Reader& reader : {Reader{.team = "vision"}, Reader{}, Reader{.every = true}})
    EXPECT_EQ(*store->seen_objects(asked, reader), of_records);
  EXPECT_TRUE(store->seen_objects({}, {})->empty());
}

TEST(StoreBackup, HasAllThatWasAcknowledgedBeforeItWhileWritesGoOn) {
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  auto store = open_or_die({.file = file});
  const int64_t search = make_search(*store);
  std::atomic<bool> ending = false;
  std::atomic<int> jobs = 0, records = 0;
  std::thread job_writer([&] {
    while (!ending) {
      EXPECT_TRUE(store->create_job(some_job(cat("job ", jobs.load()))).ok());
      ++jobs;
    }
  });
  std::thread record_writer([&] {
    while (!ending) {
      const std::string key = key_of(cat(records.load()));
      EXPECT_TRUE(store->promote(record_with_object(*store, key, "p", cat("object of ", key)), search).ok());
      ++records;
    }
  });
  for (int round = 0; round < 3; ++round) {
    const int before = jobs + 5;
    while (jobs < before || records < 2) std::this_thread::yield();
    const int jobs_before = jobs, records_before = records;
    const std::string backup = scratch.path(cat("backup", round, ".db")), restored = scratch.path(cat("r", round));
    ASSERT_TRUE(store->backup(backup).ok());
    const absl::Status done = Store::restore(backup, restored);
    ASSERT_TRUE(done.ok()) << done;
    auto again = open_or_die({.file = restored, .quick_check = true});
    for (int i = 0; i < jobs_before; ++i) EXPECT_TRUE(again->job_by_request(cat("job ", i))->has_value()) << i;
    for (int i = 0; i < records_before; ++i) {
      const auto record = *again->record_by_key(key_of(cat(i)), "");
      ASSERT_TRUE(record.has_value()) << i;
      EXPECT_TRUE(again->blob(record->record.object_sha256)->has_value()) << i;
    }
    EXPECT_TRUE(again->create_job(some_job("goes on")).ok());
    EXPECT_FALSE(store->job_by_request("goes on")->has_value()) << "it is a store of its own";
  }
  ending = true;
  job_writer.join();
  record_writer.join();
}

TEST(StoreBackup, DoesNotOverwriteAndIsNotHalfThere) {
  Scratch scratch;
  auto store = open_or_die({.file = scratch.path("a.db")});
  ASSERT_TRUE(store->backup(scratch.path("b.db")).ok());
  EXPECT_EQ(store->backup(scratch.path("b.db")).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(store->backup(scratch.path("a.db")).code(), absl::StatusCode::kAlreadyExists);
  fs::create_directory(scratch.path("c.db.unfinished"));  // a folder of this name keeps the backup from being written
  EXPECT_FALSE(store->backup(scratch.path("c.db")).ok());
  EXPECT_FALSE(fs::exists(scratch.path("c.db")));
  EXPECT_FALSE(fs::exists(scratch.path("c.db.objects")));
}

TEST(StoreRestore, ReplacesAStoreWithItsLogAndRefusesOneInUse) {
  Scratch scratch;
  const std::string file = scratch.path("a.db"), backup = scratch.path("b.db");
  {
    auto store = open_or_die({.file = file});
    ASSERT_TRUE(store->create_job(some_job("old")).ok());
    ASSERT_TRUE(store->backup(backup).ok());
    ASSERT_TRUE(store->create_job(some_job("later")).ok());
    EXPECT_EQ(Store::restore(backup, file).code(), absl::StatusCode::kUnavailable) << "in use";
    // Copies the log, which has a job that the main file lacks, in order to restore the state that a kill leaves.
    fs::copy_file(file + "-wal", scratch.path("wal"));
  }
  fs::copy_file(scratch.path("wal"), file + "-wal");
  std::ofstream(file + "-shm") << "stale";
  const absl::Status restored = Store::restore(backup, file);
  ASSERT_TRUE(restored.ok()) << restored;
  EXPECT_FALSE(fs::exists(file + "-wal"));
  auto store = open_or_die({.file = file});
  EXPECT_TRUE(store->job_by_request("old")->has_value());
  EXPECT_FALSE(store->job_by_request("later")->has_value()) << "its log was played into the restored file";
}

TEST(StoreRestore, OfADamagedBackupLeavesTheStoreAsItWas) {
  Scratch scratch;
  const std::string file = scratch.path("a.db"), backup = scratch.path("b.db");
  {
    auto store = open_or_die({.file = file});
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(store->create_job(some_job(cat("job ", i))).ok());
    ASSERT_TRUE(store->backup(backup).ok());
  }
  // Overwrites two pages of the backup with zeros.
  const auto size = static_cast<int64_t>(fs::file_size(backup));
  {
    std::fstream damaged(backup, std::ios::in | std::ios::out | std::ios::binary);
    damaged.seekp(size / 2 / 4096 * 4096);
    damaged << std::string(8192, '\0');
  }
  EXPECT_EQ(Store::restore(backup, file).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Store::restore(scratch.path("none.db"), file).code(), absl::StatusCode::kNotFound);
  std::ofstream(scratch.path("text")) << std::string(5000, 'x');
  EXPECT_EQ(Store::restore(scratch.path("text"), file).code(), absl::StatusCode::kDataLoss);
  run_in(scratch.path("foreign.db"), "CREATE TABLE t (x)");
  EXPECT_EQ(Store::restore(scratch.path("foreign.db"), file).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Store::restore(file, file).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(open_or_die({.file = file})->list_jobs(0, 1000)->size(), 200u);
}

TEST(StoreEviction, NeverDropsWhatIsBlessedOrPinned) {
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  constexpr int kRounds = 30;
  std::string pinned;
  {
    auto store = open_or_die({.file = file});
    const int64_t search = make_search(*store);
    for (int i = 0; i < kRounds; ++i) {
      KernelRecord record =
          record_with_object(*store, kKey, cat("plan", i), std::string(10'000, static_cast<char>('0' + i)));
      record.source.text = std::string(20'000, static_cast<char>('0' + i));
      record.digest = record_digest(record);
      ASSERT_TRUE(store->promote(record, search).ok());
      if (i == 3) pinned = record.digest;
    }
    ASSERT_TRUE(*store->pin({.digest = pinned}, true) == 1);
    EXPECT_EQ(*store->pin({.digest = std::string(64, '0')}, true), 0);
  }
  run_in(file, "UPDATE objects SET used_ms = 1");
  auto store = open_or_die({.file = file});
  const auto kept = [&] {
    const auto blessed = *store->record_by_key(kKey, "");
    ASSERT_TRUE(blessed.has_value());
    EXPECT_EQ(blessed->record.plan, cat("plan", kRounds - 1));
    EXPECT_TRUE(store->blob(blessed->record.object_sha256)->has_value());
    const auto other = *store->record_by_digest(pinned);
    ASSERT_TRUE(other.has_value());
    EXPECT_TRUE(store->blob(other->record.object_sha256)->has_value());
  };
  const Evicted all = *store->evict({.database_bytes = 1 << 30, .object_bytes = 1 << 30});
  EXPECT_EQ(all.records + all.objects + all.jobs + all.answers, 0) << "within the bounds";
  EXPECT_EQ(all.object_bytes, kRounds * 10'000);
  const Evicted some = *store->evict({.object_bytes = 100'000});
  EXPECT_EQ(some.object_bytes, 100'000);
  EXPECT_EQ(some.objects, kRounds - 10);
  kept();
  const Evicted most = *store->evict({.database_bytes = 1, .object_bytes = 1});
  EXPECT_EQ(most.object_bytes, 20'000) << "of the blessed and the pinned one";
  EXPECT_LT(most.database_bytes, all.database_bytes - 20 * 20'000) << "texts go with their records";
  kept();
}

TEST(StoreEviction, NewObjectsTakeThePlaceOfUnusedOnesAndOfNoOthers) {
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  const auto object = [](char c) { return std::string(1000, c); };
  {
    auto store = open_or_die({.file = file, .max_object_bytes = 3000});
    const int64_t search = make_search(*store);
    ASSERT_TRUE(store->promote(record_with_object(*store, kKey, "a", object('a')), search).ok());
    ASSERT_TRUE(store->promote(record_with_object(*store, kKey, "b", object('b')), search).ok());
    ASSERT_TRUE(store->put_blob(sha256_hex(object('c')), object('c')).ok());
    ASSERT_TRUE(store->put_blob(sha256_hex(object('c')), object('c')).ok()) << "it is there already";
    ASSERT_TRUE(store->put_blob(sha256_hex(object('d')), object('d')).ok()) << "in the place of a";
    EXPECT_FALSE(store->blob(sha256_hex(object('a')))->has_value());
    // No object can be evicted to make room for object e: b belongs to the served record, and the records of c and d
    // may be about to be stored.
    EXPECT_EQ(store->put_blob(sha256_hex(object('e')), object('e')).code(), absl::StatusCode::kResourceExhausted);
    for (const char c : {'b', 'c', 'd'}) EXPECT_TRUE(store->blob(sha256_hex(object(c)))->has_value()) << c;
  }
  run_in(file, "UPDATE objects SET used_ms = 1");
  auto store = open_or_die({.file = file, .max_object_bytes = 3000});
  EXPECT_TRUE(store->put_blob(sha256_hex(object('e')), object('e')).ok());
  EXPECT_TRUE(store->blob(sha256_hex(object('b')))->has_value());
  EXPECT_EQ(store->evict({})->object_bytes, 3000);
}

TEST(StoreEviction, DropsTheLeastRecentlyUsedFirst) {
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  std::vector<std::string> digests;
  {
    auto store = open_or_die({.file = file});
    const int64_t search = make_search(*store);
    for (int i = 0; i < 8; ++i) {
      const KernelRecord record =
          record_with_object(*store, kKey, cat("plan", i), std::string(1000, static_cast<char>('0' + i)));
      ASSERT_TRUE(store->promote(record, search).ok());
      digests.push_back(record.digest);
    }
  }
  run_in(file, "UPDATE records SET used_ms = 100 + id; UPDATE records SET used_ms = 500 WHERE id = 1");
  auto store = open_or_die({.file = file});
  EXPECT_EQ(store->evict({.object_bytes = 5000})->objects, 3);
  for (size_t i = 0; i < digests.size(); ++i) {
    EXPECT_EQ(store->record_by_digest(digests[i])->has_value(), i == 0 || i > 3) << i;
  }
}

TEST(StoreEviction, SparesWhatWaitsForItsRecordAndJobsThatAreNotOver) {
  Scratch scratch;
  auto store = open_or_die({.file = scratch.path("a.db")});
  ASSERT_TRUE(store->put_blob(sha256_hex("new"), "new").ok());
  JobRow over = *store->create_job(some_job("over")), open = *store->create_job(some_job("open"));
  const int64_t mine = store->open_search(over.id, {0, key_of("1"), "e", "s", 0, 0}, false)->id;
  const int64_t other = store->open_search(open.id, {0, key_of("2"), "e", "s", 0, 0}, false)->id;
  ASSERT_TRUE(store->put_round(std::nullopt, mine, 0, {some_trial(0)}).ok());
  ASSERT_TRUE(store->put_round(some_batch("b", other, 1), other, 0, {some_trial(0)}).ok());
  over.state = JobState::kSucceeded;
  over.result = some_result(key_of("1"));
  ASSERT_TRUE(store->finish_job(over, "answer").ok());
  const Evicted out = *store->evict({.database_bytes = 1, .object_bytes = 1});
  EXPECT_EQ(out.jobs, 1);
  EXPECT_EQ(out.answers, 1);
  EXPECT_EQ(out.objects, 0);
  EXPECT_TRUE(store->missing_blobs({sha256_hex("new")})->empty());
  EXPECT_FALSE(store->job(over.id)->has_value());
  EXPECT_TRUE(store->job(open.id)->has_value());
  EXPECT_TRUE(store->trials(mine)->empty());
  EXPECT_EQ(store->trials(other)->size(), 1u);
  EXPECT_EQ(store->open_batches(other)->size(), 1u);
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// Object files without rows, as a crash between the writes of file and row leaves them, are removed.
TEST(StoreObjects, ThatNoRowKnowsAreSwept) {
  Scratch scratch;
  const std::string file = scratch.path("a.db"), kept = "kept", left = "left";
  auto store = open_or_die({.file = file});
  const auto path = [&](const std::string& bytes) {
    const std::string digest = sha256_hex(bytes);
    return fs::path(cat(file, ".objects/", digest.substr(0, 2), "/", digest.substr(2)));
  };
  ASSERT_TRUE(store->put_blob(sha256_hex(kept), kept).ok());
  fs::create_directories(path(left).parent_path());
  std::ofstream(path(left)) << left;
  std::ofstream(path(left).parent_path() / "not ours") << "text";
  EXPECT_EQ(store->sweep_blobs().value(), 1);
  EXPECT_FALSE(fs::exists(path(left)));
  EXPECT_TRUE(fs::exists(path(left).parent_path() / "not ours"));
  EXPECT_EQ(store->blob(sha256_hex(kept)).value(), kept);
  EXPECT_EQ(store->sweep_blobs().value(), 0);
}

// A process that was killed leaves the log, and perhaps objects without rows, which the next process removes without
// being asked.
TEST(UpkeepTest, SweepsAfterAnUncleanStopOnly) {
  Scratch scratch;
  const std::string left = "left", digest = sha256_hex(left), killed = scratch.path("killed.db");
  const auto leave = [&](const std::string& file) {
    const fs::path path = cat(file, ".objects/", digest.substr(0, 2), "/", digest.substr(2));
    fs::create_directories(path.parent_path());
    std::ofstream(path) << left;
    return path;
  };
  {
    const auto store = open_or_die({.file = scratch.path("a.db")});
    make_search(*store);
    for (const char* ending : {"", "-wal"}) fs::copy_file(store->file() + ending, killed + ending);
  }
  const fs::path of_killed = leave(killed), of_closed = leave(scratch.path("a.db"));
  for (const std::string& file : {killed, scratch.path("a.db")}) {
    const auto store = open_or_die({.file = file});
    EXPECT_EQ(store->stats().unclean, file == killed);
    const Upkeep upkeep(store.get(), {});
  }
  EXPECT_FALSE(fs::exists(of_killed));
  EXPECT_TRUE(fs::exists(of_closed));
}

TEST(UpkeepTest, KeepsTheNewestBackupsAndWhatIsNotItsOwn) {
  Scratch scratch;
  auto store = open_or_die({.file = scratch.path("a.db")});
  make_search(*store);
  const std::string folder = scratch.path("backups");
  const UpkeepOptions options = {.backups = folder, .keep_backups = 2};
  ASSERT_TRUE(Upkeep::check(options).ok());
  Upkeep upkeep(store.get(), options);
  const std::vector<std::string> others = {"a-20200101T000000.db", "b-20200101T000000.000Z.db", "notes"};
  for (const std::string& name : others) std::ofstream(folder + "/" + name) << "of somebody else";
  // What killed processes leave: an unfinished backup, and the objects of a backup whose file does not have its name
  // yet.
  std::ofstream(folder + "/a-20200101T000000.000Z.db.unfinished") << "half";
  fs::create_directory(folder + "/a-20200102T000000.000Z.db.objects");
  std::vector<std::string> expected = others;
  for (int i = 0; i < 4; ++i) {
    const auto made = upkeep.backup();
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(made->bytes, static_cast<int64_t>(fs::file_size(made->file)));
    if (i < 2) continue;
    const std::string name = fs::path(made->file).filename().string();
    expected.push_back(name);
    expected.push_back(name + ".objects");
  }
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(files_in(folder), expected);
}

TEST(UpkeepTest, MakesABackupOnlyWhenTheNewestIsTooOld) {
  Scratch scratch;
  auto store = open_or_die({.file = scratch.path("a.db")});
  make_search(*store);
  const std::string folder = scratch.path("backups");
  const UpkeepOptions options = {.backups = folder, .backup_hours = 24};
  ASSERT_TRUE(Upkeep::check(options).ok());
  const auto made_by_a_start = [&] {
    const size_t before = files_in(folder).size();
    { Upkeep upkeep(store.get(), options); }  // the destructor waits until a backup that is due is made
    return files_in(folder).size() > before;
  };
  EXPECT_TRUE(made_by_a_start()) << "there is none";
  EXPECT_FALSE(made_by_a_start()) << "there is one of a moment ago";
  for (const std::string& name : files_in(folder)) {
    const std::string older = "a-20200101T000000.000Z.db" + name.substr(name.find(".db") + 3);
    fs::rename(folder + "/" + name, folder + "/" + older);
  }
  EXPECT_TRUE(made_by_a_start()) << "the newest is of 2020";
}

TEST(UpkeepTest, KeepsTheBoundsOfTheStore) {
  Scratch scratch;
  auto store = open_or_die({.file = scratch.path("a.db")});
  const int64_t search = make_search(*store);
  for (const char* plan : {"old", "new"})
    ASSERT_TRUE(store->promote(record_with_object(*store, kKey, plan, std::string(5000, *plan)), search).ok());
  { Upkeep upkeep(store.get(), {.bounds = {.object_bytes = 6000}}); }  // the destructor waits for the eviction
  EXPECT_EQ(store->evict({})->object_bytes, 5000);
  EXPECT_EQ((*store->record_by_key(kKey, ""))->record.plan, "new");
}

TEST(UpkeepTest, SaysWhatIsMissing) {
  Scratch scratch;
  auto store = open_or_die({.file = scratch.path("a.db")});
  EXPECT_EQ(Upkeep::check({.backup_hours = 1}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Upkeep::check({.backups = scratch.path("a.db")}).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Upkeep(store.get(), {}).backup().status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace wl

// Bytes that changed on the disk are noticed when they are read: nothing damaged is served, and a damaged record or
// object can be stored again.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/server/store/samples.h"
#include "tests/unit/fuzz.h"

namespace wl {
namespace {

namespace fs = std::filesystem;

// The test's own SQLite connection to a store that no coordinator has open.
class Outside {
 public:
  explicit Outside(const std::string& file) {
    if (sqlite3_open(file.c_str(), &database_) != SQLITE_OK) ADD_FAILURE() << sqlite3_errmsg(database_);
  }
  ~Outside() { sqlite3_close(database_); }
  std::string bytes(const std::string& query) {
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(database_, query.c_str(), -1, &statement, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database_);
    EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW) << query;
    const char* data = static_cast<const char*>(sqlite3_column_blob(statement, 0));
    std::string out(data, static_cast<size_t>(sqlite3_column_bytes(statement, 0)));
    sqlite3_finalize(statement);
    return out;
  }
  void put(const std::string& update, const std::string& bytes) {
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(database_, update.c_str(), -1, &statement, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database_);
    sqlite3_bind_blob64(statement, 1, bytes.data(), bytes.size(), SQLITE_STATIC);
    EXPECT_EQ(sqlite3_step(statement), SQLITE_DONE) << sqlite3_errmsg(database_);
    sqlite3_finalize(statement);
  }

 private:
  sqlite3* database_ = nullptr;
};

// A column of the database that holds bytes: the SQL that reads and writes them, and a function that tells whether the
// store still serves them.
struct Column {
  const char* name;
  const char* read;
  const char* write;
  bool (*served)(Store& store);
};

const Column kColumns[] = {
    {"payload of a record", "SELECT bytes FROM payloads", "UPDATE payloads SET bytes = ?",
     [](Store& store) {
       return store.record_by_key(kKey, "gcc 12")->has_value() ||
              store.record_message({kKey, "", ""}, false)->has_value() ||
              !store.list_records(std::nullopt, 10)->empty();
     }},
    {"prelude", "SELECT bytes FROM texts ORDER BY length(bytes) DESC LIMIT 1",
     "UPDATE texts SET bytes = ? WHERE length(bytes) = (SELECT max(length(bytes)) FROM texts)",
     [](Store& store) {
       const std::string digest = some_record(kKey, "p").digest;
       return store.record_by_digest(digest)->has_value() || store.record_message({"", "", digest}, true)->has_value();
     }},
    {"source text", "SELECT bytes FROM texts ORDER BY length(bytes) LIMIT 1",
     "UPDATE texts SET bytes = ? WHERE length(bytes) = (SELECT min(length(bytes)) FROM texts)",
     [](Store& store) {
       return store.record_by_key(kKey, "")->has_value() || store.record_message({kKey, "", ""}, true)->has_value();
     }},
    {"whole answer", "SELECT payload FROM results", "UPDATE results SET payload = ?",
     [](Store& store) { return store.whole_answer("answer")->has_value(); }},
    {"result of a job", "SELECT result FROM jobs WHERE id = 1", "UPDATE jobs SET result = ? WHERE id = 1",
     [](Store& store) { return (*store.job(1))->result.has_value(); }},
};

TEST(StoreDamage, AnyByteThatChangedIsFoundAndNothingOfItIsServed) {
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  ASSERT_TRUE(tell_story(*open_or_die({.file = file}), [] {}).ok());
  std::mt19937_64 random(testing::test_seed(1));
  for (const Column& column : kColumns) {
    const std::string sound = Outside(file).bytes(column.read);
    ASSERT_GT(sound.size(), 10u) << column.name;
    // The store is opened anew for each change, so that it reads from the disk and from no cache.
    for (int64_t i = 0; i < testing::scaled(50); ++i) {
      std::string damaged = sound;
      const size_t at = random() % damaged.size();
      damaged[at] = static_cast<char>(damaged[at] ^ (1 + random() % 255));
      Outside(file).put(column.write, damaged);
      auto store = open_or_die({.file = file});
      EXPECT_FALSE(column.served(*store)) << column.name << ", byte " << at << " of " << sound.size();
      EXPECT_GE(store->stats().damaged, 1) << column.name << ", byte " << at;
      if (HasFailure()) return;
    }
    Outside(file).put(column.write, sound);
    EXPECT_TRUE(column.served(*open_or_die({.file = file}))) << column.name;
  }
}

// A listing of records does not read their texts, so a damaged text is found only when its record is fetched.
TEST(StoreDamage, OfATextIsNoneOfAListing) {
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  ASSERT_TRUE(tell_story(*open_or_die({.file = file}), [] {}).ok());
  std::vector<KernelRecord> whole;
  {
    auto store = open_or_die({.file = file});
    const std::vector<RecordRow> rows = *store->list_records(std::nullopt, 10);
    for (const RecordRow& row : rows) {
      whole.push_back((*store->record_by_digest(row.record.digest))->record);
      EXPECT_FALSE(whole.back().source.text.empty());
      whole.back().source.prelude = whole.back().source.text = "";
    }
  }
  ASSERT_FALSE(whole.empty());
  Outside(file).put("UPDATE texts SET bytes = ?", "damaged");
  auto store = open_or_die({.file = file});
  const std::vector<RecordRow> rows = *store->list_records(std::nullopt, 10);
  ASSERT_EQ(rows.size(), whole.size());
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_TRUE(rows[i].record == whole[i]) << i;
  EXPECT_EQ(store->stats().damaged, 0);
  EXPECT_FALSE(store->record_by_digest(rows[0].record.digest)->has_value());
  EXPECT_EQ(store->stats().damaged, 1);
}

TEST(StoreDamage, AJobWithADamagedResultSaysSo) {
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  ASSERT_TRUE(tell_story(*open_or_die({.file = file}), [] {}).ok());
  Outside(file).put("UPDATE jobs SET result = ?", "no message");
  const JobRow job = **open_or_die({.file = file})->job(1);
  EXPECT_EQ(job.state, JobState::kFailed);
  EXPECT_EQ(job.error.code(), absl::StatusCode::kDataLoss) << job.error;
}

TEST(StoreDamage, WhatIsDamagedIsStoredAgain) {
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  ASSERT_TRUE(tell_story(*open_or_die({.file = file}), [] {}).ok());
  {
    Outside outside(file);
    outside.put("UPDATE payloads SET bytes = ?", "damaged");
    outside.put("UPDATE texts SET bytes = ?", "damaged");
    outside.put("UPDATE results SET payload = ?", "damaged");
  }
  auto store = open_or_die({.file = file});
  EXPECT_FALSE(store->record_by_key(kKey, "")->has_value());
  ASSERT_TRUE(store->promote(some_record(kKey, "p"), 1).ok()) << "the same record again";
  EXPECT_TRUE((*store->record_by_key(kKey, ""))->record == some_record(kKey, "p"));
  JobRow again = some_job("again");
  again.state = JobState::kSucceeded;
  again.result = some_result(kKey);
  ASSERT_TRUE(store->create_job(again, "answer").ok());
  EXPECT_TRUE(store->whole_answer("answer")->has_value());
}

// The object's file is replaced by a folder, which can be opened but not read.
TEST(StoreDamage, AnObjectThatCannotBeReadIsMissing) {
  Scratch scratch;
  const std::string file = scratch.path("a.db"), digest = sha256_hex("o");
  auto store = open_or_die({.file = file});
  ASSERT_TRUE(store->put_blob(digest, "o").ok());
  const std::string path = cat(file, ".objects/", digest.substr(0, 2), "/", digest.substr(2));
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_FALSE(store->blob(digest)->has_value());
  EXPECT_EQ(store->missing_blobs({digest})->size(), 1u);
  EXPECT_GE(store->stats().damaged, 1);
  fs::remove(path);
  ASSERT_TRUE(store->put_blob(digest, "o").ok());
  EXPECT_EQ(**store->blob(digest), "o");
}

TEST(StoreDamage, ADamagedObjectIsMissingUntilItIsUploadedAgain) {
  Scratch scratch;
  const std::string file = scratch.path("a.db"), bytes(1000, 'o'), digest = sha256_hex(bytes);
  auto store = open_or_die({.file = file});
  ASSERT_TRUE(store->put_blob(digest, bytes).ok());
  const std::string path = file + ".objects/" + digest.substr(0, 2) + "/" + digest.substr(2);
  ASSERT_TRUE(fs::exists(path)) << path;
  std::mt19937_64 random(testing::test_seed(1));
  for (int64_t i = 0; i < testing::scaled(100); ++i) {
    {
      std::fstream damaged(path, std::ios::in | std::ios::out | std::ios::binary);
      damaged.seekp(static_cast<std::streamoff>(random() % bytes.size()));
      damaged.put(static_cast<char>('o' ^ (1 + random() % 255)));
    }
    EXPECT_FALSE(store->blob(digest)->has_value());
    EXPECT_EQ(store->missing_blobs({digest})->size(), 1u);
    ASSERT_TRUE(store->put_blob(digest, bytes).ok());
    EXPECT_EQ(**store->blob(digest), bytes);
  }
  fs::resize_file(path, 10);
  EXPECT_FALSE(store->blob(digest)->has_value());
  fs::remove(path);
  EXPECT_FALSE(store->blob(digest)->has_value());
  EXPECT_EQ(store->missing_blobs({digest, "../../etc/passwd", ""})->size(), 3u);
}

}  // namespace
}  // namespace wl

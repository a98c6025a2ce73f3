// Stores that older versions wrote, tests/data/made_before/store_*.db.gz, are migrated to the present format: no
// record, object, job or trial changes.
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "proto/wire.h"
#include "tests/server/store/fault_vfs.h"
#include "tests/server/store/samples.h"
#include "tests/server/unpack.h"
#include "tests/unit/fuzz.h"

namespace wl {
namespace {

namespace fs = std::filesystem;

// First store format that keeps payloads of records in a table of their own, so that rows of records are narrow.
constexpr int64_t kNarrow = 5;

// Returns the rows of every table, by a text "COLUMNS FROM TABLE". The columns `used_ms` are left out, since reading a
// store changes them.
std::map<std::string, Rows> tables_of(const std::string& file) {
  std::map<std::string, Rows> tables;
  for (const auto& table : rows_of(file, "SELECT name FROM sqlite_schema WHERE type = 'table'")) {
    const std::string columns = rows_of(
        file, cat("SELECT group_concat(name) FROM pragma_table_info('", table[0], "') WHERE name <> 'used_ms'"))[0][0];
    tables[cat(columns, " FROM ", table[0])] = {};
  }
  for (auto& [from, rows] : tables) rows = rows_of(file, cat("SELECT ", from, " ORDER BY 1, 2"));
  return tables;
}

// The contents of a store without a table `payloads`: each row of `records` contains its payload.
struct WideRows {
  Rows records, blobs, jobs, answers;
  explicit WideRows(const std::string& file)
      : records(rows_of(file,
                        "SELECT digest, key, environment, payload, blessed FROM records ORDER BY created_ms, digest")),
        blobs(rows_of(file, "SELECT digest, bytes FROM blobs")),
        jobs(rows_of(file, "SELECT id, result FROM jobs WHERE result IS NOT NULL")),
        answers(rows_of(file, "SELECT id, payload FROM results")) {}
  bool operator==(const WideRows&) const = default;
};

// The contents of a store of any format.
struct Before {
  std::optional<WideRows> wide;
  std::map<std::string, Rows> narrow;  // the rows of every table of a store with a table `payloads`
  explicit Before(const std::string& file) {
    if (number_in(file, "PRAGMA user_version") < kNarrow) {
      wide.emplace(file);
    } else {
      narrow = tables_of(file);
    }
  }
  bool operator==(const Before&) const = default;
};

void expect_all_there(Store& store, const WideRows& before) {
  size_t blessed = 0;
  for (const auto& row : before.records) {
    const auto record = *store.record_by_digest(row[0]);
    ASSERT_TRUE(record.has_value()) << row[0];
    EXPECT_TRUE(record->record == *decode_record(row[3])) << row[0];
    if (row[4] != "1") continue;
    ++blessed;
    EXPECT_EQ((*store.record_by_key(row[1], row[2]))->record.digest, row[0]);
  }
  EXPECT_EQ(store.list_records(std::nullopt, 10'000)->size(), blessed);
  for (const auto& row : before.blobs) EXPECT_TRUE(**store.blob(row[0]) == row[1]) << row[0];
  for (const auto& row : before.jobs) {
    EXPECT_TRUE((*store.job(std::stoll(row[0])))->result == *decode_result(row[1])) << "job " << row[0];
  }
  for (const auto& row : before.answers) EXPECT_TRUE((*store.whole_answer(row[0]))->result == *decode_result(row[1]));
}

// Expects that the tables still have the rows that they had before the update, if the store already had a table
// `payloads`. The tables may have more columns now.
void expect_rows(const std::string& file, const Before& before) {
  for (const auto& [from, rows] : before.narrow)
    EXPECT_EQ(rows_of(file, cat("SELECT ", from, " ORDER BY 1, 2")), rows) << from;
}

void expect_all_there(Store& store, const Before& before) {
  if (before.wide) return expect_all_there(store, *before.wide);
  expect_rows(store.file(), before);
  const int64_t blessed = number_in(store.file(), "SELECT count(*) FROM records WHERE blessed = 1");
  EXPECT_EQ(static_cast<int64_t>(store.list_records(std::nullopt, 10'000)->size()), blessed) << "they are shared";
  EXPECT_EQ(number_in(store.file(), "SELECT count(*) FROM jobs WHERE team = ''"), store.list_jobs(0, 1000)->size());
}

class OlderStore : public ::testing::TestWithParam<const char*> {
 protected:
  void unpack_to(const std::string& file) {
    unpack(cat(WARPLOOM_SOURCE_DIR "/tests/data/made_before/", GetParam(), ".db.gz"), file);
  }
  Scratch scratch_;
  const std::string file_ = scratch_.path("a.db");
};

TEST_P(OlderStore, HasAllThatItHad) {
  unpack_to(file_);
  const Before before(file_);
  ASSERT_TRUE(!before.wide || !before.wide->records.empty());
  const auto trials = rows_of(file_, "SELECT count(*) FROM trials WHERE phase > 0");
  for (int opened = 0; opened < 2; ++opened) {
    expect_all_there(*open_or_die({.file = file_}), before);
    EXPECT_EQ(rows_of(file_, "SELECT count(*) FROM blobs"), (Rows{{"0"}})) << "they are files";
    EXPECT_EQ(rows_of(file_, "SELECT count(*) FROM trials WHERE phase > 0"), trials);
    expect_sound(file_);
  }
  // Each text of a record is stored once, and no payload contains a text.
  EXPECT_LT(number_in(file_, "SELECT count(*) FROM texts WHERE length(bytes) > 30000"), 5) << "preludes";
  EXPECT_LT(number_in(file_, "SELECT max(length(bytes)) FROM payloads"), 30'000);
}

// Counts the moments of an update after which the files on the disk differ from those before: each statement of the
// migrations, each change that SQLite makes to the disk, and each step of an object's file. The process is killed at
// one of these moments.
struct Moments {
  int die_at = 0, passed = 0;
  void next() {
    if (++passed == die_at) raise(SIGKILL);
  }
};
Moments moments;  // counts the moments of the child process that updates the store

// Opens and closes the store in a child process that is killed at a moment (counted from 1). Returns the number of
// moments if the child completed the update, 0 if it was killed.
int update_in_child(const std::string& file, int die_at) {
  return number_of_child([&] {
    moments = {.die_at = die_at};
    // Each connection that is opened from here on counts its statements, including those inside a script.
    const auto trace = +[](sqlite3* connection, char**, const sqlite3_api_routines*) {
      return sqlite3_trace_v2(
          connection, SQLITE_TRACE_STMT,
          [](unsigned, void*, void*, void*) {
            moments.next();
            return 0;
          },
          nullptr);
    };
    sqlite3_auto_extension(reinterpret_cast<void (*)()>(trace));
    testing::FaultVfs vfs("killed");
    vfs.before_change([] { moments.next(); });
    {
      auto store = Store::open({.file = file, .at_point = [](const char*) { moments.next(); }, .vfs = vfs.name()});
      if (!store.ok()) _exit(1);
    }
    return moments.passed;
  });
}

// A migration is applied as a whole or not at all: a killed migration leaves nothing, and the next opening continues
// from there.
TEST_P(OlderStore, WhoseUpdateIsKilledAnywhereHasAllThatItHad) {
  unpack_to(file_);
  const Before before(file_);
  const int64_t format = number_in(file_, "PRAGMA user_version");
  const auto copy = [&](const std::string& from, const std::string& to) {
    for (const char* beside : {"", "-wal", "-journal"})
      if (fs::exists(from + beside)) fs::copy_file(from + beside, to + beside);
  };
  copy(file_, scratch_.path("whole.db"));
  const int all = update_in_child(scratch_.path("whole.db"), 0);
  ASSERT_GT(all, 50);
  const int step = std::max(1, all / static_cast<int>(testing::scaled(24)));
  int old = 0, kills = 0;
  for (int die_at = 1 + static_cast<int>(testing::test_seed(0)) % step; die_at <= all; die_at += step) {
    SCOPED_TRACE(cat("killed at moment ", die_at, " of ", all));
    const Scratch killed;
    const std::string file = killed.path("a.db"), seen = killed.path("seen.db");
    copy(file_, file);
    ASSERT_EQ(update_in_child(file, die_at), 0);
    ++kills;
    copy(file, seen);
    const int64_t left = number_in(seen, "PRAGMA user_version");
    EXPECT_TRUE(left >= format && left <= Store::schema_version()) << left;
    if (left < Store::schema_version()) {
      ++old;
      // If the migrations so far have made the table `payloads`, the tables cannot be compared with the old ones. The
      // contents are checked below.
      if (format >= kNarrow) {
        expect_rows(seen, before);
      } else if (left < kNarrow) {
        EXPECT_TRUE(Before(seen) == before) << "format " << left;
      }
    }
    {
      auto store = open_or_die({.file = file, .quick_check = true});
      ASSERT_NE(store, nullptr);
      expect_all_there(*store, before);
    }
    expect_sound(file);
    if (HasFailure()) return;
  }
  std::printf("%d kills at %d moments; %d left an older format\n", kills, all, old);
  if (testing::test_scale() < 1) return;
  EXPECT_GT(old, 0);
  EXPECT_LT(old, kills);
}

TEST_P(OlderStore, ThatWasCopiedIsRestored) {
  unpack_to(file_);
  const Before before(file_);
  const std::string restored = scratch_.path("restored.db");
  const absl::Status done = Store::restore(file_, restored);
  ASSERT_TRUE(done.ok()) << done;
  expect_all_there(*open_or_die({.file = restored}), before);
}

// Job 3 of the store of format 4 is in the middle of search 21.
TEST(OlderStores, LeasesGoOnWhereTheyWere) {
  Scratch scratch;
  unpack(WARPLOOM_SOURCE_DIR "/tests/data/made_before/store_schema4.db.gz", scratch.path("a.db"));
  auto store = open_or_die({.file = scratch.path("a.db")});
  constexpr int64_t kSearch = 21;
  const std::vector<BatchRow> open = store->open_batches(kSearch).value();
  ASSERT_EQ(open.size(), 1u);
  EXPECT_TRUE(open[0].leased);
  EXPECT_EQ(open[0].candidates, (std::vector<PlannedTrial>{{0, "plan one"}, {1, "plan two"}}));
  EXPECT_EQ(*store->report("done batch", "lease 2", 1, {some_trial(2)}), ReportOutcome::kDuplicate);
  EXPECT_EQ(*store->report("open batch", "lease", 1, {some_trial(0), some_trial(1)}), ReportOutcome::kAccepted);
  EXPECT_EQ(store->trials(kSearch)->size(), 3u);
  EXPECT_EQ(*store->put_worker("w", 0, {}, "", 1), 2u);
}

INSTANTIATE_TEST_SUITE_P(, OlderStore,
                         ::testing::Values("store_plan1", "store_schema3", "store_schema4", "store_schema5"),
                         [](const auto& of) { return std::string(of.param); });

}  // namespace
}  // namespace wl

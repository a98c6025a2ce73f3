// Which file a store's name means: a store has one coordinator under all its names, and a file that is no store stays
// unchanged.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "tests/server/store/samples.h"
#include "tests/unit/file_text.h"

namespace wl {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

absl::StatusCode code_of_open(const std::string& file) {
  return Store::open({.file = file}).status().code();
}

TEST(StoreNames, ASymbolicLinkIsTheSameStore) {
  Scratch scratch;
  const std::string real = scratch.path("real/a.db");
  const std::string link = scratch.path("link.db"), of_link = scratch.path("second.db"),
                    folder = scratch.path("folder");
  fs::create_directory(scratch.path("real"));
  fs::create_symlink("real/a.db", link);  // the link leads to a file that does not exist yet
  fs::create_symlink(link, of_link);
  fs::create_symlink("real", folder);
  for (const std::string& first : {real, link, of_link, folder + "/a.db"}) {
    auto store = open_or_die({.file = first});
    for (const std::string& second : {real, link, of_link, folder + "/a.db"}) {
      const auto other = Store::open({.file = second});
      EXPECT_EQ(other.status().code(), absl::StatusCode::kUnavailable) << first << ", then " << second;
    }
    ASSERT_TRUE(store->create_job(some_job(first)).ok());
  }
  EXPECT_EQ(open_or_die({.file = real})->list_jobs(0, 10)->size(), 4u) << "all were one store";
  EXPECT_TRUE(fs::is_symlink(link)) << "a link stays one";
  for (const auto& entry : fs::directory_iterator(scratch.path(""))) {
    EXPECT_EQ(entry.path().string().find("link.db-"), std::string::npos) << entry;
  }
}

TEST(StoreNames, LinksInACircleAreRefused) {
  Scratch scratch;
  fs::create_symlink("b.db", scratch.path("a.db"));
  fs::create_symlink("a.db", scratch.path("b.db"));
  EXPECT_EQ(code_of_open(scratch.path("a.db")), absl::StatusCode::kFailedPrecondition);
}

// Another process opens the store through a symbolic link while this process has it open.
TEST(StoreNames, AnotherProcessFindsTheStoreInUseByALink) {
  Scratch scratch;
  const std::string file = scratch.path("a.db"), link = scratch.path("link.db");
  fs::create_symlink(file, link);
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    if (read(go[0], &byte, 1) != 1) _exit(1);
    _exit(code_of_open(link) == absl::StatusCode::kUnavailable ? 0 : 2);
  }
  auto store = open_or_die({.file = file});
  ASSERT_EQ(write(go[1], "x", 1), 1);
  int status = 0;
  waitpid(child, &status, 0);
  ::close(go[0]);
  ::close(go[1]);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(StoreNames, AFileOfTwoNamesIsRefused) {
  Scratch scratch;
  const std::string file = scratch.path("a.db"), other = scratch.path("other.db");
  auto store = open_or_die({.file = file});
  fs::create_hard_link(file, other);
  const auto second = Store::open({.file = other});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("2 names (hard links)"));
  ASSERT_TRUE(store->create_job(some_job("r")).ok()) << "the one that has it goes on";
  store.reset();
  EXPECT_EQ(code_of_open(file), absl::StatusCode::kFailedPrecondition);
  fs::remove(other);
  EXPECT_EQ(open_or_die({.file = file})->list_jobs(0, 10)->size(), 1u);
}

TEST(StoreNames, ARenamedStoreIsStillInUse) {
  Scratch scratch;
  const std::string file = scratch.path("a.db"), moved = scratch.path("moved.db");
  auto store = open_or_die({.file = file});
  fs::rename(file, moved);
  EXPECT_EQ(code_of_open(moved), absl::StatusCode::kUnavailable);
  // The second opening, which was refused, did not release the locks of the first: another connection still cannot
  // write.
  sqlite3* outside = nullptr;
  ASSERT_EQ(sqlite3_open(moved.c_str(), &outside), SQLITE_OK);
  EXPECT_NE(sqlite3_exec(outside, "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE", nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(outside);
}

TEST(StoreNames, NamesOfNoFileAreRefused) {
  for (const char* name : {"", ":memory:", "file:a.db?mode=memory", "folder/"}) {
    EXPECT_EQ(code_of_open(name), absl::StatusCode::kInvalidArgument) << name;
  }
  Scratch scratch;
  EXPECT_EQ(code_of_open(scratch.path("")), absl::StatusCode::kInvalidArgument);
  fs::create_directory(scratch.path("folder"));
  EXPECT_EQ(code_of_open(scratch.path("folder")), absl::StatusCode::kFailedPrecondition);
}

using Files = std::map<std::string, std::string>;

// Returns the contents of all files of a folder, by file name, except those of lock files.
Files files_of(const std::string& folder) {
  Files files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().extension() == ".lock") continue;
    files[entry.path().filename()] = testing::file_text(entry.path());
  }
  return files;
}

void expect_untouched(const Scratch& scratch, const std::string& name, absl::StatusCode code) {
  const Files before = files_of(scratch.path(""));
  const auto opened = Store::open({.file = scratch.path(name)});
  EXPECT_EQ(opened.status().code(), code) << name << ": " << opened.status();
  EXPECT_TRUE(files_of(scratch.path("")) == before) << name << " or what lies beside it was changed";
}

TEST(StoreNames, AForeignDatabaseIsLeftAlone) {
  Scratch scratch;
  run_in(scratch.path("tables.db"), "CREATE TABLE t (x); INSERT INTO t VALUES (1)");
  run_in(scratch.path("id.db"), "PRAGMA application_id = 77; VACUUM");
  run_in(scratch.path("version.db"), "PRAGMA user_version = 3; VACUUM");
  run_in(scratch.path("wal.db"), "PRAGMA journal_mode = WAL; CREATE TABLE t (x)");
  for (const char* name : {"tables.db", "id.db", "version.db", "wal.db"}) {
    expect_untouched(scratch, name, absl::StatusCode::kFailedPrecondition);
  }
  // The database's log holds a write that its main file does not have yet.
  const pid_t child = fork();
  if (child == 0) {
    run_in(scratch.path("open.db"), "PRAGMA journal_mode = WAL; CREATE TABLE t (x)");
    sqlite3* left_open = nullptr;
    sqlite3_open(scratch.path("open.db").c_str(), &left_open);
    sqlite3_exec(left_open, "INSERT INTO t VALUES (2)", nullptr, nullptr, nullptr);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  ASSERT_TRUE(fs::exists(scratch.path("open.db-wal")));
  expect_untouched(scratch, "open.db", absl::StatusCode::kFailedPrecondition);
}

TEST(StoreNames, WhatIsNoDatabaseIsLeftAlone) {
  Scratch scratch;
  std::ofstream(scratch.path("text")) << std::string(5000, 'x');
  std::ofstream(scratch.path("short")) << "SQLite";
  std::ofstream(scratch.path("half"), std::ios::binary) << std::string("SQLite format 3\0", 16);
  for (const char* name : {"text", "short", "half"}) expect_untouched(scratch, name, absl::StatusCode::kDataLoss);
  // An empty file, such as mktemp makes, may become a store.
  std::ofstream(scratch.path("empty"));
  EXPECT_TRUE(open_or_die({.file = scratch.path("empty")})->create_job(some_job("r")).ok());
}

TEST(StoreNames, ANewerStoreIsLeftAlone) {
  Scratch scratch;
  { open_or_die({.file = scratch.path("new.db")}); }
  {
    // user_version is at byte 60 of the file, big endian.
    std::fstream file(scratch.path("new.db"), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(63);
    file.put(99);
  }
  expect_untouched(scratch, "new.db", absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Store::open({.file = scratch.path("new.db")}).status().message()), HasSubstr("format 99"));
}

TEST(StoreNames, AStoreThatWasHalfMadeIsMadeAgain) {
  Scratch scratch;
  std::ofstream(scratch.path("a.db.new")) << "the beginning of a file";
  EXPECT_TRUE(open_or_die({.file = scratch.path("a.db")})->create_job(some_job("r")).ok());
  EXPECT_FALSE(fs::exists(scratch.path("a.db.new")));
}

}  // namespace
}  // namespace wl

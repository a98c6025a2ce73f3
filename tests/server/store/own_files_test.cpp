// Other programs remove, replace or truncate the files of a store that a coordinator has open.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "server/store/disk.h"
#include "tests/server/outside.h"
#include "tests/server/store/samples.h"

namespace wl {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class StoreFiles : public ::testing::Test {
 protected:
  void open() {
    store = Store::open({.file = file, .on_broken = [this](const absl::Status&) { ++told; }}).value();
    ASSERT_TRUE(store->create_job(some_job("first")).ok());
  }
  // Expects that the next write and all later calls are refused, and that `on_broken` is called once.
  void expect_noticed(const std::string& why) {
    const absl::Status refused = store->create_job(some_job("second")).status();
    EXPECT_THAT(std::string(refused.message()), HasSubstr(why));
    EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
    EXPECT_TRUE(absl::IsDataLoss(store->create_job(some_job("third")).status()));
    EXPECT_TRUE(absl::IsDataLoss(store->job(1).status())) << "nothing is read either";
    EXPECT_EQ(told, 1);
  }
  std::vector<std::string> requests() {
    std::vector<std::string> out;
    for (const auto& row : rows_of(file, "SELECT request_id FROM jobs ORDER BY 1")) out.push_back(row[0]);
    return out;
  }

  Scratch scratch;
  const std::string file = scratch.path("a.db"), log = file + "-wal";
  std::atomic<int> told = 0;
  std::unique_ptr<Store> store;
};

// A file may be replaced after a process has opened it and before OwnFiles notes its identity.
TEST_F(StoreFiles, AFileThatThisProcessDoesNotHaveOpenIsNotItsOwn) {
  const int database = ::open(file.c_str(), O_RDWR | O_CREAT, 0600), own = ::open(log.c_str(), O_RDWR | O_CREAT, 0600);
  EXPECT_EQ(OwnFiles(file).look(false), OwnFiles::Lost::kNothing);
  fs::remove(log);
  std::ofstream(log) << "";
  OwnFiles late(file);  // this object is made after the log was replaced
  EXPECT_EQ(late.look(false), OwnFiles::Lost::kLog);
  EXPECT_THAT(late.why(), HasSubstr("-wal was replaced"));
  fs::remove(log);
  OwnFiles later(file);
  std::ofstream(log) << "";
  EXPECT_EQ(later.look(false), OwnFiles::Lost::kLog);
  fs::remove(file);
  std::ofstream(file) << "";
  EXPECT_EQ(OwnFiles(file).look(false), OwnFiles::Lost::kDatabase);
  ::close(database);
  ::close(own);
}

TEST_F(StoreFiles, ARemovedLogIsNoticedAndLosesNothing) {
  open();
  fs::remove(log);
  expect_noticed("-wal was removed by another program");
  store.reset();
  EXPECT_THAT(requests(), ::testing::Contains("first")) << "it was acknowledged";
  expect_sound(file);
}

TEST_F(StoreFiles, AReplacedLogIsNoticed) {
  open();
  fs::rename(log, scratch.path("away"));
  fs::copy_file(scratch.path("away"), log);
  expect_noticed("-wal was replaced by another program");
}

TEST_F(StoreFiles, ACutLogIsNoticed) {
  open();
  fs::resize_file(log, 100);
  expect_noticed("-wal was cut from");
}

TEST_F(StoreFiles, AReplacedStoreIsNoticed) {
  open();
  fs::copy_file(file, scratch.path("copy"));
  fs::rename(scratch.path("copy"), file);
  expect_noticed("a.db was replaced by another program");
}

TEST_F(StoreFiles, ARemovedStoreIsNoticed) {
  open();
  fs::remove(file);
  expect_noticed("a.db was removed");
}

// A removed file is noticed even if nobody calls the store.
TEST_F(StoreFiles, AreLookedAtWithoutAnyWrite) {
  open();
  fs::remove(log);
  while (told == 0) std::this_thread::yield();
  EXPECT_TRUE(absl::IsDataLoss(store->job(1).status()));
}

TEST_F(StoreFiles, AreTheirOwnersAlone) {
  const mode_t before = umask(0);
  open();
  EXPECT_TRUE(store->put_blob(sha256_hex("object"), "object").ok());
  umask(before);
  for (const auto& entry : fs::recursive_directory_iterator(scratch.path("."))) {
    if (entry.path().extension() == ".lock") continue;  // lock files are readable by all: they name the store's process
    struct stat found = {};
    ASSERT_EQ(stat(entry.path().c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 077, 0u) << entry.path();
  }
}

}  // namespace
}  // namespace wl

// A process is killed while it makes a backup: its store is unchanged, and a file under the backup's name is a complete
// backup.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "server/store/disk.h"
#include "tests/server/store/fault_vfs.h"
#include "tests/server/store/samples.h"
#include "tests/unit/fuzz.h"

namespace wl {
namespace {

namespace fs = std::filesystem;

// Forwards all calls on files to FileCalls, and calls `before` ahead of each call that changes what is on the disk.
class WatchedFiles : public FileCalls {
 public:
  explicit WatchedFiles(std::function<void()> before) : before_(std::move(before)) {}
  ssize_t write(int file, const void* bytes, size_t size) const override {
    before_();
    return FileCalls::write(file, bytes, size);
  }
  int fsync(int file) const override {
    before_();
    return FileCalls::fsync(file);
  }
  int make_folder(const std::string& path) const override {
    before_();
    return FileCalls::make_folder(path);
  }
  int rename(const std::string& from, const std::string& to) const override {
    before_();
    return FileCalls::rename(from, to);
  }
  int link(const std::string& from, const std::string& to) const override {
    before_();
    return FileCalls::link(from, to);
  }

 private:
  const std::function<void()> before_;
};

// Makes a backup in a child process that is killed at the n-th change of the disk since the backup began. Returns the
// number of changes if the child completed the backup, 0 if it was killed.
int back_up_in_child(const std::string& file, const std::string& backup, int die_at) {
  return number_of_child([&] {
    int passed = 0;
    bool begun = false;
    const auto count = [&] {
      if (begun && ++passed == die_at) raise(SIGKILL);
    };
    testing::FaultVfs vfs("killed backup");
    vfs.before_change(count);
    const WatchedFiles files(count);
    auto store = Store::open({.file = file, .vfs = vfs.name(), .files = &files});
    if (!store.ok()) _exit(1);
    begun = true;
    if (!(*store)->backup(backup).ok()) _exit(2);
    return passed;
  });
}

TEST(StoreBackup, ThatIsKilledAnywhereIsWholeOrNotThere) {
  constexpr int kStory = 8;
  Scratch scratch;
  const std::string file = scratch.path("a.db");
  ASSERT_TRUE(tell_story(
                  *open_or_die({.file = file}), [] {}, 1)
                  .ok());
  const int all = back_up_in_child(file, scratch.path("whole.db"), 0);
  ASSERT_GT(all, 20);
  const int step = std::max(1, all / static_cast<int>(testing::scaled(40)));
  int named = 0, kills = 0;
  for (int die_at = 1 + static_cast<int>(testing::test_seed(0)) % step; die_at <= all; die_at += step, ++kills) {
    SCOPED_TRACE(cat("killed at change ", die_at, " of ", all));
    Scratch killed;
    const std::string backup = killed.path("backup.db"), again = killed.path("again.db");
    ASSERT_EQ(back_up_in_child(file, backup, die_at), 0);
    {
      auto store = open_or_die({.file = file, .quick_check = true});
      ASSERT_NE(store, nullptr);
      check_story(*store, kStory, 1);
      EXPECT_TRUE(store->backup(again).ok());
    }
    for (const std::string& made : {backup, again}) {
      if (!fs::exists(made)) continue;
      named += made == backup ? 1 : 0;
      expect_sound(made);
      check_story(*open_or_die({.file = made}), kStory, 1);
    }
    if (HasFailure()) return;
  }
  std::printf("%d kills at %d changes; %d left a whole backup\n", kills, all, named);
}

}  // namespace
}  // namespace wl

// Files of objects on a failing disk: each call on these files fails once, and afterwards every row of an object has
// its file on the disk.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "server/store/disk.h"
#include "tests/server/store/samples.h"
#include "tests/unit/file_text.h"
#include "tests/unit/fuzz.h"

namespace wl {
namespace {

namespace fs = std::filesystem;

constexpr char kFailedFolder[] = "fsync of a folder";

enum class FileFault { kIoError, kFullDisk, kShortWrite };

// Makes one call fail, and tracks what a power cut could take: files that are not synced, and names in folders that
// were not synced since the name was made.
class FaultyFiles : public FileCalls {
 public:
  // Begins to count the calls in which `fault` can occur, and makes call `number` fail (counted from 1). With 0 it only
  // counts.
  void arm(FileFault fault, int number) {
    fault_ = fault;
    number_ = number;
    calls_ = 0;
    failed_.clear();
  }
  int calls() const { return calls_; }
  const std::string& failed() const { return failed_; }  // name of the call that failed
  std::set<std::string> undurable() const {
    std::set<std::string> all = unsynced_;
    all.insert(unnamed_.begin(), unnamed_.end());
    return all;
  }

  int open(const std::string& path, int flags) const override {
    if (fails("open", (flags & O_CREAT) != 0)) return -1;
    const int file = FileCalls::open(path, flags);
    if (file >= 0) paths_[file] = path;
    return file;
  }
  ssize_t read(int file, void* out, size_t size) const override {
    return fails("read", false) ? -1 : FileCalls::read(file, out, size);
  }
  ssize_t write(int file, const void* bytes, size_t size) const override {
    unsynced_.insert(paths_[file]);
    if (full_) return error(ENOSPC);
    if (!fails("write", true)) return FileCalls::write(file, bytes, size);
    if (fault_ != FileFault::kShortWrite) return -1;
    full_ = true;  // the disk stays full until the file is closed
    return FileCalls::write(file, bytes, size / 2);
  }
  int fsync(int file) const override {
    if (fails(fs::is_directory(paths_[file]) ? kFailedFolder : "fsync", false)) return -1;
    unsynced_.erase(paths_[file]);
    std::erase_if(unnamed_, [&](const std::string& name) { return fs::path(name).parent_path() == paths_[file]; });
    return FileCalls::fsync(file);
  }
  int close(int file) const override {
    paths_.erase(file);
    const bool failing = fails("close", false);
    const int code = FileCalls::close(file);
    full_ = false;
    return failing ? error(EIO) : code;
  }
  int make_folder(const std::string& path) const override {
    struct stat found = {};
    if (stat(path.c_str(), &found) != 0) unnamed_.insert(path);
    return fails("mkdir", true) ? -1 : FileCalls::make_folder(path);
  }
  int rename(const std::string& from, const std::string& to) const override {
    if (fails("rename", true)) return -1;
    if (unsynced_.erase(from) > 0) unsynced_.insert(to);
    unnamed_.insert(to);
    return FileCalls::rename(from, to);
  }
  int link(const std::string& from, const std::string& to) const override {
    return fails("link", true) ? -1 : FileCalls::link(from, to);
  }
  int unlink(const std::string& path) const override {
    if (fails("unlink", false)) return -1;
    unsynced_.erase(path);
    return FileCalls::unlink(path);
  }

 private:
  static int error(int number) {
    errno = number;
    return -1;
  }
  // `fills`: whether the call takes up room on the disk.
  bool fails(const char* call, bool fills) const {
    if (fault_ == FileFault::kFullDisk && !fills) return false;
    if (fault_ == FileFault::kShortWrite && std::strcmp(call, "write") != 0) return false;
    if (++calls_ != number_) return false;
    failed_ = call;
    errno = fault_ == FileFault::kIoError ? EIO : ENOSPC;
    return true;
  }

  FileFault fault_ = FileFault::kIoError;
  int number_ = 0;
  mutable int calls_ = 0;
  mutable std::string failed_;
  mutable bool full_ = false;
  mutable std::map<int, std::string> paths_;
  mutable std::set<std::string> unsynced_, unnamed_;
};

// Returns the contents of an object that is too large for a single write or read.
std::string filled(char c) {
  return std::string(100'000, c);
}

// Expects that the contents of every object file with a final name have the digest that the name states.
void expect_whole_objects(const std::string& file) {
  if (!fs::exists(file + ".objects")) return;
  for (const auto& folder : fs::directory_iterator(file + ".objects")) {
    if (folder.path().filename() == "unfinished") continue;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      EXPECT_EQ(sha256_hex(testing::file_text(entry.path())),
                cat(folder.path().filename().string(), entry.path().filename().string()));
    }
  }
}

// The objects that a store acknowledged, the objects that it may have evicted, and whether the store must report itself
// as broken.
struct Told {
  std::set<char> kept, dropped;
  bool broken = false;
};

void expect_clean(const absl::Status& status, const FaultyFiles& files) {
  EXPECT_FALSE(files.failed().empty()) << status;
  EXPECT_FALSE(status.message().empty());
  EXPECT_TRUE(absl::IsResourceExhausted(status) || absl::IsInternal(status) || absl::IsDataLoss(status)) << status;
}

// Stores objects, reads one, makes a backup and evicts, so that every kind of call on files is made. One of the calls
// may fail.
void tell(Store& store, FaultyFiles& files, const std::string& backup, Told* told) {
  for (const char c : {'a', 'b'}) {
    const absl::Status put = store.put_blob(sha256_hex(filled(c)), filled(c));
    if (put.ok()) {
      told->kept.insert(c);
      const std::string digest = sha256_hex(filled(c));
      const std::string path = cat(store.file(), ".objects/", digest.substr(0, 2), "/", digest.substr(2));
      for (const std::string& name : files.undurable())
        EXPECT_FALSE(path.starts_with(name)) << "a power cut takes what was acknowledged: " << name;
    } else {
      expect_clean(put, files);
      told->broken |= files.failed() == kFailedFolder;
    }
  }
  if (const auto read = store.blob(sha256_hex(filled('a'))); !read.ok()) {
    expect_clean(read.status(), files);
  } else if (read->has_value()) {
    EXPECT_EQ(**read, filled('a'));
  } else {
    EXPECT_TRUE(!told->kept.contains('a') || !files.failed().empty());
  }
  if (const absl::Status made = store.backup(backup); !made.ok()) expect_clean(made, files);
  told->dropped.insert('b');
  if (const auto evicted = store.evict({.object_bytes = 1}); !evicted.ok()) expect_clean(evicted.status(), files);
}

// Runs tell() on a new store with one failing call, and checks the store. Returns the number of calls that could fail.
int tell_with_failing_call(FileFault fault, int number) {
  Scratch scratch;
  const std::string file = scratch.path("a.db"), backup = scratch.path("backup.db");
  {
    // The store has one object beforehand, which is old enough to be evicted.
    auto store = open_or_die({.file = file});
    EXPECT_TRUE(store->put_blob(sha256_hex(filled('b')), filled('b')).ok());
  }
  run_in(file, "UPDATE objects SET used_ms = 1");
  FaultyFiles files;
  files.arm(fault, number);
  Told told;
  {
    auto store = Store::open({.file = file, .files = &files});
    if (!store.ok()) {
      expect_clean(store.status(), files);
      store = Store::open({.file = file, .files = &files});  // the second attempt succeeds, since only one call fails
      EXPECT_TRUE(store.ok()) << store.status();
      if (!store.ok()) return files.calls();
    }
    tell(**store, files, backup, &told);
    const bool failed = !files.failed().empty();
    absl::Status later = (*store)->put_blob(sha256_hex(filled('c')), filled('c'));
    // If the failing call was part of put_blob(), the object is stored in a second attempt.
    if (!later.ok() && !failed) later = (*store)->put_blob(sha256_hex(filled('c')), filled('c'));
    EXPECT_TRUE(later.ok() || (*store)->stats().broken) << files.failed() << ": " << later;
    if (later.ok()) told.kept.insert('c');
    EXPECT_EQ((*store)->stats().broken, told.broken || (!failed && files.failed() == kFailedFolder)) << files.failed();
  }
  const int calls = files.calls();
  expect_whole_objects(file);
  auto store = open_or_die({.file = file});
  for (const char c : told.kept) {
    const auto found = *store->blob(sha256_hex(filled(c)));
    EXPECT_TRUE(found.has_value() || told.dropped.contains(c)) << c << " is lost";
    EXPECT_TRUE(!found || *found == filled(c)) << c;
  }
  EXPECT_TRUE(store->put_blob(sha256_hex(filled('d')), filled('d')).ok());
  EXPECT_EQ(**store->blob(sha256_hex(filled('d'))), filled('d'));
  if (fs::exists(backup)) {
    // A backup that has its final name has all objects that were in the store and could be read.
    expect_whole_objects(backup);
    auto saved = open_or_die({.file = backup});
    EXPECT_TRUE(!told.kept.contains('a') || files.failed() == "open" || files.failed() == "read" ||
                saved->blob(sha256_hex(filled('a')))->has_value());
  }
  EXPECT_TRUE(store->backup(scratch.path("again.db")).ok());
  store.reset();
  expect_sound(file);
  return calls;
}

class ObjectFaults : public ::testing::TestWithParam<FileFault> {};

TEST_P(ObjectFaults, EachCallForAnObjectFailsOnce) {
  const int calls = tell_with_failing_call(GetParam(), 0);
  EXPECT_GE(calls, GetParam() == FileFault::kShortWrite ? 2 : 5);
  std::printf("%d calls can fail so\n", calls);
  const int step = std::max(1, calls / static_cast<int>(testing::scaled(24)));
  for (int number = 1 + static_cast<int>(testing::test_seed(0)) % step; number <= calls; number += step) {
    SCOPED_TRACE(cat("call ", number, " of ", calls));
    tell_with_failing_call(GetParam(), number);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(, ObjectFaults,
                         ::testing::Values(FileFault::kIoError, FileFault::kFullDisk, FileFault::kShortWrite),
                         [](const auto& of) {
                           return std::string(of.param == FileFault::kIoError    ? "IoError"
                                              : of.param == FileFault::kFullDisk ? "FullDisk"
                                                                                 : "ShortWrite");
                         });

}  // namespace
}  // namespace wl

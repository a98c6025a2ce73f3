// Where a store lies on the disk: which file a name means, who may use it, and whether it is a store at all. Nothing
// here opens the file with SQLite, so a file that is refused was not changed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "compiler/base/status.h"

namespace wl {

inline constexpr int64_t kApplicationId = 0x574c4f4d;  // "WLOM"

// The file that `name` means, with every symbolic link resolved: the files beside it are named after it, so that each
// name of a store leads to the same ones. The file need not exist; its folder is made. InvalidArgument: the name of no
// file; FailedPrecondition: a network disk (where a backup may lie, but no store), or links in a circle;
// PermissionDenied: the folder cannot be made.
absl::StatusOr<std::string> real_file(const std::string& name, bool of_backup = false);

// The right to use a store, held by one object at a time over all processes. It must outlive every connection of this
// process to the file: closing a descriptor of a file drops the locks that SQLite has on it.
class StoreLock {
 public:
  // `file`: as real_file() says. `in_turn`: it is held for one command, and others may wait for that.
  StoreLock(std::string file, bool in_turn) : file_(std::move(file)), in_turn_(in_turn) {}
  ~StoreLock();
  StoreLock(const StoreLock&) = delete;
  StoreLock& operator=(const StoreLock&) = delete;

  // Locks the name, by the file FILE.lock. Unavailable: another coordinator has it, and holder_in_turn() says whether
  // it is to be waited for; PermissionDenied: not writable.
  absl::Status take_name();
  // Locks the file itself, which must exist: it may have been renamed, or be mounted under another name. Unavailable
  // and PermissionDenied as above; FailedPrecondition: the file has several names (hard links), or is no plain file.
  // Each name of a file has a write-ahead log of its own, so that what was committed under one is missing under
  // another.
  absl::Status take_file();
  // Whether the file, which is locked, is a store of a format up to `newest`, by its header. DataLoss: no database;
  // FailedPrecondition: a database of another program, or a newer store.
  absl::Status check_header(int64_t newest) const;

 private:
  absl::Status in_use() const;
  absl::Status name_in_use() const;
  std::string file_;
  bool in_turn_;
  int name_ = -1, database_ = -1;  // descriptors
  std::pair<dev_t, ino_t> inode_ = {};
};

// The id of the process that holds a store in turn, where `status` is of a lock that is Unavailable for that reason.
std::optional<std::string> holder_in_turn(const absl::Status& status);

// The files of a store that this process has open, by what the kernel says of their names: the database and its
// write-ahead log. Another program may remove, replace or cut them (a clean-up, a restore, an editor), and nobody is
// told: what is written from then on is gone with the next end of this process. Not safe for several threads.
class OwnFiles {
 public:
  // `file`: as real_file() says. This process has it open and has read it, so that its log is there.
  explicit OwnFiles(const std::string& file);

  enum class Lost { kNothing, kLog, kDatabase };
  // Looks at both names. `changed`: this process has just written them, so their sizes are as it left them; otherwise
  // they have not become smaller since. The log alone is lost: this process can still read what it had in it.
  Lost look(bool changed);
  // What was found, for people; after something was lost.
  const std::string& why() const { return why_; }

 private:
  struct File {
    std::string path;
    dev_t device = 0;
    ino_t inode = 0;
    int64_t bytes = 0;
  };
  bool is_there(File* file, bool changed);

  File database_, log_;
  std::string why_;
};

// The system calls by which the files beside the database are made and read, each with its result and errno. Tests
// derive from it and let them fail. Any thread.
class FileCalls {
 public:
  virtual ~FileCalls() = default;
  virtual int open(const std::string& path, int flags) const;
  virtual ssize_t read(int file, void* out, size_t size) const;
  virtual ssize_t write(int file, const void* bytes, size_t size) const;
  virtual int fsync(int file) const;
  virtual int close(int file) const;
  virtual int make_folder(const std::string& path) const;
  virtual int rename(const std::string& from, const std::string& to) const;
  virtual int link(const std::string& from, const std::string& to) const;
  virtual int unlink(const std::string& path) const;
};
const FileCalls& system_calls();

// True when the file is missing or has no bytes.
bool is_empty_file(const std::string& file);
// Makes the entries of the folder durable, after a file in it was made, renamed or removed. DataLoss: the sync failed,
// so it is not known what is on the disk, and another sync would not tell. Internal: it could not be tried.
absl::Status sync_folder(const std::string& folder, const FileCalls& calls = system_calls());
// Makes the bytes of a file durable. No connection of this process may have it open. Errors as sync_folder().
absl::Status sync_file(const std::string& file, const FileCalls& calls = system_calls());

// What both checks of a file say: that of its header and that of its pragmas.
absl::Status foreign_file(const std::string& file);
absl::Status newer_file(const std::string& file, int64_t version, int64_t newest);

}  // namespace wl

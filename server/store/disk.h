// The files of a store on the disk: which file a name means, who may use it, and whether it is a store at all. Nothing
// here opens the file with SQLite, so a file that is refused is not changed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "compiler/base/status.h"

namespace wl {

inline constexpr int64_t kApplicationId = 0x574c4f4d;  // SQLite's application_id of a store: the letters "WLOM"

// Returns the file that `name` means, with every symbolic link resolved. Other files of a store are named after that
// file, so all names of a store lead to the same files. The file need not exist; its folder is created.
// InvalidArgument: `name` is not the name of a file; FailedPrecondition: the file is on a network disk (where a backup
// may be, but no store), or links form a circle; PermissionDenied: the folder cannot be created.
absl::StatusOr<std::string> real_file(const std::string& name, bool of_backup = false);

// The lock of a store, which only one object in all processes can hold at a time. It must outlive every connection of
// this process to the file, because closing any descriptor of a file drops the locks that SQLite has on the file.
class StoreLock {
 public:
  // `file`: a result of real_file(). `in_turn`: the store is held for one command only, and other processes may wait
  // for the end of the command.
  StoreLock(std::string file, bool in_turn) : file_(std::move(file)), in_turn_(in_turn) {}
  ~StoreLock();
  StoreLock(const StoreLock&) = delete;
  StoreLock& operator=(const StoreLock&) = delete;

  // Locks the name of the store by locking the file FILE.lock. Unavailable: another coordinator has the lock, and
  // holder_in_turn() says whether to wait for it; PermissionDenied: FILE.lock is not writable.
  absl::Status take_name();
  // Locks the file itself, which must exist: another coordinator may use it under another name, after a rename or
  // through a mount. Unavailable and PermissionDenied: as for take_name(). FailedPrecondition: the file has several
  // hard links, or is no regular file. Each name of a file has a write-ahead log of its own, so writes that are
  // committed under one name would be missing under another.
  absl::Status take_file();
  // Checks the header of the locked file: it must be that of a store whose format is `newest` or older. DataLoss: the
  // file is no database; FailedPrecondition: it is a database of another program, or a store of a newer format.
  absl::Status check_header(int64_t newest) const;

 private:
  absl::Status in_use() const;
  absl::Status name_in_use() const;
  std::string file_;
  bool in_turn_;
  int name_ = -1, database_ = -1;  // descriptors of the lock file and of the database; -1: not open
  std::pair<dev_t, ino_t> inode_ = {};
};

// If `status` is the error of take_name() that another process holds the store for one command only, returns the id of
// that process; otherwise nullopt.
std::optional<std::string> holder_in_turn(const absl::Status& status);

// Watches the files of a store that this process has open: the database and its write-ahead log. Another program (a
// clean-up, a restore, an editor) may remove, replace or truncate them without an error in this process, and what is
// written from then on is lost when this process ends. To be used by one thread at a time.
class OwnFiles {
 public:
  // `file`: a result of real_file(). This process has opened and read the file, so its log exists.
  explicit OwnFiles(const std::string& file);

  enum class Lost { kNothing, kLog, kDatabase };
  // Compares the files that now have the names of the database and of its log with the files that this process has
  // open. kLog: only the log is lost, and this process can still read it. `changed`: whether this process has just
  // written the files, so that any size is right. If not, a file that is smaller than before was truncated.
  Lost look(bool changed);
  // The description of what look() found, for messages; valid after a file was lost.
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

// The system calls on files beside the database, each with the call's own result and errno. Tests derive from the class
// to let calls fail. Thread-safe.
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

// Whether the file is missing or has no bytes.
bool is_empty_file(const std::string& file);
// Makes the entries of a folder durable, after a file in it was made, renamed or removed. DataLoss: the sync failed, so
// it is not known what is on the disk, and another sync would not tell. Internal: the folder cannot be opened.
absl::Status sync_folder(const std::string& folder, const FileCalls& calls = system_calls());
// Makes the contents of a file durable. No SQLite connection of this process may have the file open, since it would
// lose its locks on the file. Errors as for sync_folder().
absl::Status sync_file(const std::string& file, const FileCalls& calls = system_calls());

// Return the errors that check_header() and check_format() share: the file belongs to another program, or has a newer
// format.
absl::Status foreign_file(const std::string& file);
absl::Status newer_file(const std::string& file, int64_t version, int64_t newest);

}  // namespace wl

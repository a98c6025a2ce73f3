#include "server/store/disk.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "absl/strings/cord.h"
#include "absl/strings/str_split.h"

namespace wl {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLinks = 40;  // most symbolic links that are followed, as many as the kernel follows
constexpr int kMostLooks = 100;
constexpr std::chrono::milliseconds kLookAgain{10};
// What follows the process id in the lock file of a store if the process holds the store for one command only.
constexpr const char* kInTurn = "in-turn";
constexpr const char* kHolder = "warploom.store-holder";

// Whether a folder is on a network disk, where neither locks nor the shared memory of the write-ahead log work.
bool is_network_disk(const std::string& folder) {
  struct statfs disk = {};
  if (statfs(folder.c_str(), &disk) != 0) return false;
  switch (static_cast<uint32_t>(disk.f_type)) {
    case 0x6969:      // the file system NFS
    case 0xFF534D42:  // the file system CIFS
    case 0xFE534D42:  // the file system SMB2
    case 0x0BD00BD0:  // the file system Lustre
      return true;
  }
  return false;
}

// The files that stores of this process have locked. Such a file must not be opened to try its lock, because closing
// that descriptor would drop SQLite's locks on the file.
struct OpenFiles {
  std::mutex mutex;
  std::set<std::pair<dev_t, ino_t>> inodes;
};
OpenFiles& open_files() {
  static OpenFiles files;
  return files;
}

uint32_t big_endian(const unsigned char* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

absl::Status sync_path(const std::string& path, int flags, const FileCalls& calls) {
  const auto failed = [&](int error) {
    return cat(path, ": cannot be made durable: ", std::strerror(error), "; check that disk");
  };
  const int file = calls.open(path, flags);
  if (file < 0) return absl::InternalError(failed(errno));
  const int error = calls.fsync(file) == 0 ? 0 : errno;
  calls.close(file);
  return error == 0 ? absl::OkStatus() : absl::DataLossError(failed(error));
}

}  // namespace

absl::StatusOr<std::string> real_file(const std::string& name, bool of_backup) {
  if (name.empty() || name.starts_with(":memory:") || name.starts_with("file:") || name.ends_with('/') ||
      name.find('\0') != std::string::npos) {
    return invalid("store \"", name, "\": expected the path of a file");
  }
  fs::path file = name;
  std::error_code failed;
  for (int links = 0; fs::is_symlink(file, failed); ++links) {
    if (links == kMostLinks) {
      return absl::FailedPreconditionError(
          cat("store ", name, ": its symbolic links lead in a circle; name the file itself"));
    }
    file = file.parent_path() / fs::read_symlink(file, failed);
  }
  const fs::path folder = fs::absolute(file).parent_path();
  fs::create_directories(folder, failed);
  const fs::path real = failed ? folder : fs::canonical(folder, failed);
  if (failed) {
    return absl::PermissionDeniedError(cat("store ", name, ": cannot make its folder ", folder.string(), ": ",
                                           failed.message(), "; name another store"));
  }
  if (!of_backup && is_network_disk(real.string())) {
    return absl::FailedPreconditionError(cat("store ", name,
                                             ": lies on a network disk, whose locks cannot be relied on; "
                                             "name a file on a local disk"));
  }
  return (real / file.filename()).string();
}

StoreLock::~StoreLock() {
  if (database_ >= 0) {
    const std::lock_guard lock(open_files().mutex);
    open_files().inodes.erase(inode_);
    ::close(database_);
  }
  if (name_ >= 0) ::close(name_);
}

absl::Status StoreLock::in_use() const {
  return absl::UnavailableError(cat("store ", file_, ": is in use by another coordinator",
                                    "; stop it, connect to it with --server, or name another store"));
}

// Returns the error that another process has the lock, with the id of that process. The process writes its id into the
// file soon after it has locked the file, so the file is read several times.
absl::Status StoreLock::name_in_use() const {
  char text[64] = {};
  for (int looks = 0; looks < kMostLooks; ++looks) {
    const ssize_t size = pread(name_, text, sizeof text - 1, 0);
    text[std::max<ssize_t>(size, 0)] = 0;
    // If no process has the id that was read, an earlier holder of the lock wrote it, so the file is read again.
    if (size > 0 && (::kill(static_cast<pid_t>(std::atol(text)), 0) == 0 || errno == EPERM)) break;
    std::this_thread::sleep_for(kLookAgain);
  }
  if (text[0] == 0) return in_use();
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  absl::Status status =
      absl::UnavailableError(cat("store ", file_, ": is in use by another coordinator (process ", words[0],
                                 "); stop it, connect to it with --server, or name another store"));
  if (words.size() > 1 && words[1] == kInTurn) status.SetPayload(kHolder, absl::Cord(words[0]));
  return status;
}

absl::Status StoreLock::take_name() {
  const std::string path = file_ + ".lock";
  name_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (name_ < 0) {
    return absl::PermissionDeniedError(cat("store ", file_, ": cannot write ", path, ": ", std::strerror(errno),
                                           "; make its folder writable or name another store"));
  }
  if (flock(name_, LOCK_EX | LOCK_NB) != 0) return name_in_use();
  // The process id in the lock file only tells others who holds the lock, so failing to write it (on a full disk) is
  // no error.
  const std::string owner = cat(getpid(), in_turn_ ? " " : "", in_turn_ ? kInTurn : "");
  if (ftruncate(name_, 0) != 0 || pwrite(name_, owner.data(), owner.size(), 0) < 0) return absl::OkStatus();
  return absl::OkStatus();
}

absl::Status StoreLock::take_file() {
  OpenFiles& known = open_files();
  const std::lock_guard lock(known.mutex);
  struct stat found = {};
  if (stat(file_.c_str(), &found) == 0) {
    if (!S_ISREG(found.st_mode)) {
      return absl::FailedPreconditionError(cat("store ", file_, ": is no plain file; name another store"));
    }
    if (found.st_nlink > 1) {
      return absl::FailedPreconditionError(
          cat("store ", file_, ": its file has ", found.st_nlink,
              " names (hard links), and each would have a write-ahead log of its own; remove the other names, or copy "
              "the file and name the copy"));
    }
    if (known.inodes.contains({found.st_dev, found.st_ino})) return in_use();
  }
  const int opened = ::open(file_.c_str(), O_RDWR | O_CLOEXEC);
  if (opened < 0) {
    return absl::PermissionDeniedError(cat("store ", file_, ": cannot be opened for writing: ", std::strerror(errno),
                                           "; change its permissions or name another store"));
  }
  if (fstat(opened, &found) != 0 || flock(opened, LOCK_EX | LOCK_NB) != 0) {
    ::close(opened);
    return in_use();
  }
  database_ = opened;
  inode_ = {found.st_dev, found.st_ino};
  known.inodes.insert(inode_);
  return absl::OkStatus();
}

absl::Status StoreLock::check_header(int64_t newest) const {
  // Offsets in the header of the database and in the header of the schema's page
  // (https://www.sqlite.org/fileformat.html).
  constexpr size_t kVersion = 60, kApplication = 68, kPageKind = 100, kCells = 103, kRead = 108;
  constexpr unsigned char kLeafPage = 13;
  unsigned char bytes[kRead] = {};
  const ssize_t size = pread(database_, bytes, sizeof bytes, 0);
  if (size != static_cast<ssize_t>(kRead) || std::memcmp(bytes, "SQLite format 3", 16) != 0) {
    return absl::DataLossError(cat("store ", file_, ": is no database; restore a backup or name another store"));
  }
  const uint32_t application = big_endian(bytes + kApplication), version = big_endian(bytes + kVersion);
  if (application == kApplicationId) {
    return version > newest ? newer_file(file_, version, newest) : absl::OkStatus();
  }
  // Older versions made the tables in the write-ahead log, so the database file itself may have none yet.
  const bool bare =
      application == 0 && version == 0 && bytes[kPageKind] == kLeafPage && bytes[kCells] == 0 && bytes[kCells + 1] == 0;
  return bare ? absl::OkStatus() : foreign_file(file_);
}

namespace {

// Whether this process has the file open; true if that cannot be found out.
bool is_open_here(dev_t device, ino_t inode) {
  std::error_code error;
  for (const auto& descriptor : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    struct stat of = {};
    if (stat(descriptor.path().c_str(), &of) == 0 && of.st_dev == device && of.st_ino == inode) return true;
  }
  return static_cast<bool>(error);
}

}  // namespace

OwnFiles::OwnFiles(const std::string& file) {
  database_.path = file;
  log_.path = file + "-wal";
  for (File* own : {&database_, &log_}) {
    struct stat now = {};
    // If another program has removed or replaced the file since this process opened it, `inode` stays 0. No file has
    // this number, so look() will report the file as lost.
    if (stat(own->path.c_str(), &now) != 0 || !is_open_here(now.st_dev, now.st_ino)) continue;
    own->device = now.st_dev;
    own->inode = now.st_ino;
    own->bytes = now.st_size;
  }
}

bool OwnFiles::is_there(File* file, bool changed) {
  struct stat now = {};
  const bool found = stat(file->path.c_str(), &now) == 0;
  if (!found) {
    why_ = cat(file->path, " was removed");
  } else if (now.st_dev != file->device || now.st_ino != file->inode) {
    why_ = cat(file->path, " was replaced");
  } else if (!changed && now.st_size < file->bytes) {
    why_ = cat(file->path, " was cut from ", file->bytes, " to ", now.st_size, " bytes");
  } else {
    file->bytes = now.st_size;
    return true;
  }
  return false;
}

OwnFiles::Lost OwnFiles::look(bool changed) {
  if (!is_there(&database_, changed)) return Lost::kDatabase;
  return is_there(&log_, changed) ? Lost::kNothing : Lost::kLog;
}

std::optional<std::string> holder_in_turn(const absl::Status& status) {
  if (const auto holder = status.GetPayload(kHolder)) return std::string(*holder);
  return std::nullopt;
}

bool is_empty_file(const std::string& file) {
  struct stat found = {};
  return stat(file.c_str(), &found) != 0 ? errno == ENOENT : S_ISREG(found.st_mode) && found.st_size == 0;
}

int FileCalls::open(const std::string& path, int flags) const {
  return ::open(path.c_str(), flags | O_CLOEXEC, 0600);
}
ssize_t FileCalls::read(int file, void* out, size_t size) const {
  return ::read(file, out, size);
}
ssize_t FileCalls::write(int file, const void* bytes, size_t size) const {
  return ::write(file, bytes, size);
}
int FileCalls::fsync(int file) const {
  return ::fsync(file);
}
int FileCalls::close(int file) const {
  return ::close(file);
}
int FileCalls::make_folder(const std::string& path) const {
  return ::mkdir(path.c_str(), 0700);
}
int FileCalls::rename(const std::string& from, const std::string& to) const {
  return ::rename(from.c_str(), to.c_str());
}
int FileCalls::link(const std::string& from, const std::string& to) const {
  return ::link(from.c_str(), to.c_str());
}
int FileCalls::unlink(const std::string& path) const {
  return ::unlink(path.c_str());
}

const FileCalls& system_calls() {
  static const FileCalls calls;
  return calls;
}

absl::Status sync_folder(const std::string& folder, const FileCalls& calls) {
  return sync_path(folder, O_RDONLY | O_DIRECTORY, calls);
}
absl::Status sync_file(const std::string& file, const FileCalls& calls) {
  return sync_path(file, O_RDWR, calls);
}

absl::Status foreign_file(const std::string& file) {
  return absl::FailedPreconditionError(
      cat("store ", file, ": is a database of another program, and was not changed; name another file"));
}

absl::Status newer_file(const std::string& file, int64_t version, int64_t newest) {
  return absl::FailedPreconditionError(cat("store ", file, ": has format ", version, ", this Warploom knows up to ",
                                           newest, "; the file was not changed; use a newer Warploom"));
}

}  // namespace wl

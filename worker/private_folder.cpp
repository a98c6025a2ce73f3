#include "worker/private_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "compiler/base/status.h"
#include "files/read.h"

namespace wl {
namespace {

constexpr const char* kPrefix = "measure.";
constexpr const char* kOwner = "/.owner";

// A lock (flock) on the folder that contains the private folders. A process holds it shared while it makes a private
// folder that has no owner file yet. So while a process holds it exclusively, every private folder without an owner
// file was left by a killed process. Nothing is locked if the folder cannot be opened.
class ParentLock {
 public:
  ParentLock(const std::string& parent, int operation)
      : file_(open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (file_ >= 0) locked_ = flock(file_, operation) == 0;
  }
  ~ParentLock() {
    if (file_ >= 0) close(file_);
  }
  ParentLock(const ParentLock&) = delete;
  ParentLock& operator=(const ParentLock&) = delete;
  bool locked() const { return locked_; }

 private:
  int file_;
  bool locked_ = false;
};

// Makes the owner file of a folder, which stays locked while this process lives, and returns the file's descriptor; -1:
// the file cannot be made. The file gets its name only after it is locked, so no process finds it unlocked.
int own(const std::string& folder) {
  const std::string name = folder + kOwner, unlocked = name + ".new";
  const int file = open(unlocked.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return -1;
  if (flock(file, LOCK_EX | LOCK_NB) == 0 && rename(unlocked.c_str(), name.c_str()) == 0) return file;
  close(file);
  return -1;
}

// Whether the process that made the folder has ended. `none_made`: whether no process is making a folder at present.
bool is_orphan(const std::string& folder, bool none_made) {
  struct stat found = {};
  if (lstat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode) || found.st_uid != geteuid()) return false;
  const int file = open((folder + kOwner).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  // Without an owner file, the process that made the folder was killed before it made the file, or while it removed the
  // folder.
  if (file < 0) return none_made && errno == ENOENT;
  const bool orphan = flock(file, LOCK_EX | LOCK_NB) == 0;
  close(file);
  return orphan;
}

}  // namespace

absl::StatusOr<PrivateFolder> PrivateFolder::make(const std::string& parent) {
  std::string path = cat(parent, "/", kPrefix, "XXXXXX");
  const ParentLock making(parent, LOCK_SH);
  if (!mkdtemp(path.data()))
    return absl::UnavailableError(absl::StrCat("cannot make a folder in ", parent, ": ", std::strerror(errno)));
  PrivateFolder folder;
  std::error_code ignored;
  folder.path_ = std::filesystem::absolute(path, ignored).string();
  folder.owner_ = own(path);
  if (folder.owner_ < 0)
    return absl::UnavailableError(absl::StrCat("cannot lock a file in ", path, ": ", std::strerror(errno)));
  return folder;
}

void PrivateFolder::sweep(const std::string& parent) {
  // Does not wait for the lock, because a process that a signal stopped while it held the lock would block this process
  // for ever.
  const ParentLock alone(parent, LOCK_EX | LOCK_NB);
  std::error_code ignored;
  for (auto at = std::filesystem::directory_iterator(parent, ignored); at != std::filesystem::directory_iterator();
       at.increment(ignored)) {
    if (at->path().filename().string().starts_with(kPrefix) && is_orphan(at->path().string(), alone.locked()))
      std::filesystem::remove_all(at->path(), ignored);
  }
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  if (owner_ >= 0) close(owner_);
}

absl::StatusOr<std::string> PrivateFolder::read(const std::string& path) {
  absl::StatusOr<std::string> bytes = read_file(path);
  if (!bytes.ok()) return absl::UnavailableError(bytes.status().message());
  return bytes;
}

}  // namespace wl

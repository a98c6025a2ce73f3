#include "client/fetch/disk_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "absl/strings/numbers.h"
#include "client/program/files.h"
#include "files/read.h"

namespace wl {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::system_clock;

// Age at which a folder that is no complete entry is removed. Such folders are left by processes that ended while they
// wrote.
constexpr auto kAbandoned = std::chrono::hours(1);

// Owner of a file descriptor. Closing it releases its flock.
struct Lock {
  explicit Lock(int of) : fd(of) {}
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() { ::close(fd); }
  int fd;
};

// Locks a folder without waiting. `how`: LOCK_SH or LOCK_EX. The result holds the lock while it lives; null: another
// process holds a lock that excludes this one, or the folder is gone.
std::shared_ptr<const void> locked(const fs::path& folder, int how) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  std::shared_ptr<const void> hold = std::make_shared<const Lock>(fd);
  if (::flock(fd, how | LOCK_NB) != 0) return nullptr;
  // If another process renamed the folder between open() and flock(), the lock is not on the folder that now has this
  // path, and null is returned.
  struct stat of_lock = {}, of_path = {};
  if (::fstat(fd, &of_lock) != 0 || ::stat(folder.c_str(), &of_path) != 0) return nullptr;
  return of_lock.st_ino == of_path.st_ino && of_lock.st_dev == of_path.st_dev ? hold : nullptr;
}

// Returns the time at which an entry was requested, which its name says; nullopt for a folder that is no entry.
std::optional<Clock::time_point> made_at(const fs::path& folder) {
  const std::string name = folder.filename().string();
  int64_t ns = 0;
  if (!absl::SimpleAtoi(name.substr(0, name.find('-')), &ns) || name.find('-') == std::string::npos) return {};
  return Clock::time_point(std::chrono::duration_cast<Clock::duration>(std::chrono::nanoseconds(ns)));
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_directory(ignored) && !at->is_symlink(ignored)) out.push_back(at->path());
  }
  return out;
}

struct Kept {
  fs::path folder;
  int64_t bytes = 0;
  fs::file_time_type used;
};

Kept kept_at(const fs::path& folder) {
  std::error_code ignored;
  Kept kept{folder, 0, fs::last_write_time(folder, ignored)};
  for (fs::recursive_directory_iterator at(folder, ignored), end; !ignored && at != end; at.increment(ignored)) {
    std::error_code gone;
    const auto size = at->is_regular_file(gone) ? at->file_size(gone) : 0;
    if (!gone) kept.bytes += static_cast<int64_t>(size);
  }
  return kept;
}

// Removes a folder. It is renamed first, so that other processes see it vanish in one step. Returns whether it is gone.
bool removed(const fs::path& folder) {
  const fs::path aside = folder.parent_path() / cat(".", folder.filename().string(), ".gone");
  std::error_code error;
  fs::rename(folder, aside, error);
  if (error) return false;
  fs::remove_all(aside, error);
  return true;
}

}  // namespace

std::optional<DiskCache::Entry> DiskCache::find(const std::string& key) const {
  std::vector<std::pair<Clock::time_point, fs::path>> entries;
  for (const fs::path& folder : folders_in(fs::path(folder_) / key))
    if (const auto made = made_at(folder)) entries.emplace_back(*made, folder);
  std::sort(entries.rbegin(), entries.rend());
  for (const auto& [made, folder] : entries) {
    const std::shared_ptr<const void> hold = locked(folder, LOCK_SH);
    if (hold == nullptr) continue;
    ::utimensat(AT_FDCWD, folder.c_str(), nullptr, 0);  // marks the entry as used now; may fail in a read-only cache
    return Entry{folder.string(), hold, made};
  }
  return {};
}

std::string DiskCache::why_not_writable() const {
  if (const absl::Status made = make_folders(folder_); !made.ok()) return std::string(made.message());
  std::string probe = folder_ + "/.probe.XXXXXX";
  const int file = ::mkstemp(probe.data());
  if (file < 0) return std::strerror(errno);
  const std::string bytes(1 << 20, 'x');
  std::string why;
  for (size_t at = 0; at < bytes.size() && why.empty();) {
    const ssize_t written = ::write(file, bytes.data() + at, bytes.size() - at);
    if (written >= 0) at += static_cast<size_t>(written);
    if (written < 0 && errno != EINTR) why = std::strerror(errno);
  }
  ::close(file);
  ::unlink(probe.c_str());
  return why;
}

absl::StatusOr<DiskCache::Entry> DiskCache::add(const std::string& key, const Write& write) const {
  const Clock::time_point now = Clock::now();
  const int64_t ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count();
  const fs::path folder = fs::path(folder_) / key / cat(ns, "-", ::getpid());
  WL_RETURN_IF_ERROR(make_folders(folder.parent_path().string()));
  if (const absl::Status written = write(folder.string()); !written.ok()) {
    std::error_code has_others;
    fs::remove(folder.parent_path(), has_others);
    return written;
  }
  const std::shared_ptr<const void> hold = locked(folder, LOCK_SH);
  if (hold == nullptr) return absl::UnavailableError(cat(folder.string(), " was removed while it was written"));
  evict();
  return Entry{folder.string(), hold, now};
}

bool DiskCache::remove(const Entry& entry) {
  return removed(entry.folder);
}

void DiskCache::evict() const {
  std::vector<Kept> kept;
  int64_t bytes = 0;
  for (const fs::path& of_key : folders_in(folder_)) {
    for (const fs::path& folder : folders_in(of_key)) {
      std::error_code error;
      if (made_at(folder)) {
        kept.push_back(kept_at(folder));
        bytes += kept.back().bytes;
      } else if (fs::file_time_type::clock::now() - fs::last_write_time(folder, error) > kAbandoned && !error) {
        fs::remove_all(folder, error);
      }
    }
  }
  std::sort(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) { return a.used < b.used; });
  for (const Kept& entry : kept) {
    if (bytes <= most_bytes_) return;
    const std::shared_ptr<const void> mine = locked(entry.folder, LOCK_EX);
    if (mine == nullptr || !removed(entry.folder)) continue;
    bytes -= entry.bytes;
    std::error_code not_empty;
    fs::remove(entry.folder.parent_path(), not_empty);
  }
}

absl::StatusOr<CacheFolder> open_cache(const std::string& folder) {
  if (const fs::path parent = fs::path(folder).parent_path(); !parent.empty())
    WL_RETURN_IF_ERROR(make_folders(parent.string()));
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return invalid("cannot create folder ", folder, ": ", std::strerror(errno));
  struct stat facts = {};
  if (::stat(folder.c_str(), &facts) != 0) return invalid("cannot read ", folder, ": ", std::strerror(errno));
  if (!S_ISDIR(facts.st_mode)) return invalid("the cache ", folder, " is not a folder");
  const bool own = facts.st_uid == ::geteuid(), open = (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (own && !open) return CacheFolder{folder};
  return absl::FailedPreconditionError(cat("the cache ", folder,
                                           own ? " may be written by others" : " belongs to another user",
                                           ", who could let this program run their code; name another folder",
                                           own ? cat(", or run chmod go-w ", folder) : ""));
}

absl::StatusOr<CacheFolder> temporary_cache() {
  struct Temporary {
    explicit Temporary(std::string made) : path(std::move(made)) {}
    Temporary(const Temporary&) = delete;
    Temporary& operator=(const Temporary&) = delete;
    ~Temporary() {
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
    std::string path;
  };
  WL_ASSIGN_OR_RETURN(std::string path, temporary_folder());
  path += "/warploom-bundles.XXXXXX";
  if (::mkdtemp(path.data()) == nullptr)
    return absl::UnavailableError(cat("cannot create a temporary folder ", path, ": ", std::strerror(errno)));
  return CacheFolder{path, std::make_shared<const Temporary>(path)};
}

absl::StatusOr<std::string> default_cache_folder() {
  const std::string folder = user_cache_folder();
  if (!folder.empty()) return cat(folder, "/bundles");
  return absl::FailedPreconditionError("no place for the cache: neither XDG_CACHE_HOME nor HOME is set; name a folder");
}

}  // namespace wl

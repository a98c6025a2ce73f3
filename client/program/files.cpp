#include "client/program/files.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>

namespace wl {
namespace fs = std::filesystem;
namespace {

absl::Status failed(std::string_view what, const std::string& path, int error) {
  std::string message = cat("cannot ", what, " ", path, ": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    return absl::ResourceExhaustedError(cat(message, "; free some space and run the command again"));
  }
  return absl::InvalidArgumentError(message);
}

struct OpenFile {
  int fd;
  ~OpenFile() {
    if (fd >= 0) ::close(fd);
  }
};

// The temporary folders of all PendingFolders that exist; g_mutex guards them.
std::mutex g_mutex;
std::set<std::string> g_temporaries;

void forget(const std::string& temporary) {
  const std::scoped_lock lock(g_mutex);
  g_temporaries.erase(temporary);
}

}  // namespace

absl::Status write_file(const std::string& path, std::string_view bytes) {
  OpenFile file{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
  if (file.fd < 0) return failed("write", path, errno);
  while (!bytes.empty()) {
    ssize_t n = ::write(file.fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failed("write", path, errno);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  int fd = file.fd;
  file.fd = -1;
  if (::close(fd) != 0) return failed("write", path, errno);
  return absl::OkStatus();
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::string user_cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return cat(cache, "/warploom");
  const char* home = std::getenv("HOME");
  return home != nullptr && home[0] == '/' ? cat(home, "/.cache/warploom") : "";
}

absl::Status make_folders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return failed("create folder", path, error.value());
  return absl::OkStatus();
}

absl::StatusOr<PendingFolder> PendingFolder::create(const std::string& path) {
  fs::path target = fs::path(path).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();  // a path that ends with a slash has no file name
  fs::path parent = target.has_parent_path() ? target.parent_path() : fs::path(".");
  WL_RETURN_IF_ERROR(make_folders(parent.string()));
  std::string temporary = (parent / cat(".", target.filename().string(), ".XXXXXX")).string();
  if (::mkdtemp(temporary.data()) == nullptr) return failed("create a folder in", parent.string(), errno);
  fs::permissions(temporary, fs::perms(0755), fs::perm_options::replace);
  return PendingFolder(target.string(), temporary);
}

PendingFolder::PendingFolder(std::string final_path, std::string temporary)
    : final_(std::move(final_path)), temporary_(std::move(temporary)) {
  const std::scoped_lock lock(g_mutex);
  g_temporaries.insert(temporary_);
}

void PendingFolder::remove_all() {
  const std::scoped_lock lock(g_mutex);
  std::error_code ignored;
  for (const std::string& temporary : g_temporaries) fs::remove_all(temporary, ignored);
}

PendingFolder::PendingFolder(PendingFolder&& other) noexcept
    : final_(std::move(other.final_)), temporary_(std::move(other.temporary_)) {
  other.temporary_.clear();
}

PendingFolder::~PendingFolder() {
  if (temporary_.empty()) return;
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
  forget(temporary_);
}

absl::Status PendingFolder::commit() {
  if (::rename(temporary_.c_str(), final_.c_str()) == 0) {
    forget(temporary_);
    temporary_.clear();
    return absl::OkStatus();
  }
  // A folder with the final name exists and is not empty. It is exchanged with the new folder, and the destructor
  // removes it.
  if (errno != ENOTEMPTY && errno != EEXIST) return failed("create", final_, errno);
  if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, final_.c_str(), RENAME_EXCHANGE) == 0)
    return absl::OkStatus();
  if (errno != EINVAL && errno != ENOSYS) return failed("replace", final_, errno);
  // The file system cannot exchange two folders, so the existing folder is renamed before the new one gets its name.
  std::string aside = cat(temporary_, ".old");
  if (::rename(final_.c_str(), aside.c_str()) != 0) return failed("replace", final_, errno);
  if (::rename(temporary_.c_str(), final_.c_str()) != 0) {
    int error = errno;
    ::rename(aside.c_str(), final_.c_str());
    return failed("replace", final_, error);
  }
  temporary_ = aside;
  return absl::OkStatus();
}

}  // namespace wl

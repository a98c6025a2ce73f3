#include "server/store/objects.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "compiler/base/sha256.h"
#include "server/store/disk.h"
#include "server/store/functions.h"

namespace wl {
namespace {

namespace fs = std::filesystem;

constexpr char kUnfinished[] = "unfinished";  // no digest is called so

absl::Status failure(const std::string& path, int error) {
  const std::string what = cat("object ", path, ": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    return absl::ResourceExhaustedError(cat(what, ": the disk is full and it was not stored: free space, then repeat"));
  }
  if (error == EACCES || error == EPERM || error == EROFS) {
    return absl::PermissionDeniedError(cat(what, "; the folder must be writable: change its permissions"));
  }
  return absl::InternalError(cat(what, "; it was not stored: check that disk"));
}

int write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

}  // namespace

absl::Status ObjectFolder::open() {
  std::error_code failed;
  const fs::path unfinished = fs::path(folder_) / kUnfinished;
  fs::remove_all(unfinished, failed);
  fs::create_directories(unfinished, failed);
  if (failed) return failure(unfinished.string(), failed.value());
  WL_RETURN_IF_ERROR(sync_folder(folder_));
  return sync_folder(fs::path(folder_).parent_path().string());
}

std::string ObjectFolder::path_of(const std::string& digest) const {
  return cat(folder_, "/", digest.substr(0, 2), "/", digest.substr(2));
}

absl::Status ObjectFolder::place(const std::string& made, const std::string& digest) {
  const std::string path = path_of(digest);
  const fs::path parent = fs::path(path).parent_path();
  std::error_code failed;
  fs::create_directory(parent, failed);
  if (failed) return failure(parent.string(), failed.value());
  if (rename(made.c_str(), path.c_str()) != 0) return failure(path, errno);
  point("object named");
  WL_RETURN_IF_ERROR(sync_folder(parent.string()));
  return sync_folder(folder_);  // another thread may have made `parent` just now
}

absl::Status ObjectFolder::put(const std::string& digest, std::string_view bytes) {
  static std::atomic<uint64_t> number = 0;
  if (!is_sha256(digest)) return invalid("object ", digest, ": expected a SHA-256 in 64 hexadecimal digits");
  const std::string made = cat(folder_, "/", kUnfinished, "/", number++);
  const int file = ::open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return failure(made, errno);
  int error = write_all(file, bytes);
  point("object written");
  if (error == 0 && fsync(file) != 0) error = errno;
  if (::close(file) != 0 && error == 0) error = errno;
  point("object synced");
  const absl::Status done = error == 0 ? place(made, digest) : failure(made, error);
  if (!done.ok()) unlink(made.c_str());
  return done;
}

std::optional<std::string> ObjectFolder::get(const std::string& digest, bool* damaged) const {
  if (damaged != nullptr) *damaged = false;
  if (!is_sha256(digest)) return std::nullopt;
  std::ifstream in(path_of(digest), std::ios::binary);
  if (!in) return std::nullopt;
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  if (sha256_hex(bytes) == digest) return bytes;
  if (damaged != nullptr) *damaged = true;
  return std::nullopt;
}

bool ObjectFolder::has(const std::string& digest, int64_t size) const {
  struct stat found = {};
  return is_sha256(digest) && stat(path_of(digest).c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
         found.st_size == size;
}

void ObjectFolder::remove(const std::string& digest) {
  if (is_sha256(digest)) unlink(path_of(digest).c_str());
}

absl::Status ObjectFolder::take(const std::string& digest, const ObjectFolder& from) {
  std::optional<std::string> bytes = from.get(digest);
  if (!bytes) return absl::NotFoundError(cat("object ", digest, " is not in ", from.folder_));
  if (get(digest)) return absl::OkStatus();
  const std::string made = cat(folder_, "/", kUnfinished, "/", digest);
  unlink(made.c_str());
  if (link(from.path_of(digest).c_str(), made.c_str()) == 0) return place(made, digest);
  return put(digest, *bytes);
}

}  // namespace wl

#include "server/store/objects.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "compiler/base/sha256.h"
#include "files/read.h"
#include "server/store/sql/functions.h"

namespace wl {
namespace {

namespace fs = std::filesystem;

// Folder of files that are still being written; other folders have names of hexadecimal digits.
constexpr char kUnfinished[] = "unfinished";

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

int write_all(const FileCalls& calls, int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = calls.write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return 0;
}

int read_all(const FileCalls& calls, int file, std::string* out) {
  std::string part(1 << 16, 0);
  for (;;) {
    const ssize_t size = calls.read(file, part.data(), part.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return size < 0 ? errno : 0;
    out->append(part, 0, static_cast<size_t>(size));
  }
}

}  // namespace

absl::Status ObjectFolder::open() {
  const std::string unfinished = cat(folder_, "/", kUnfinished);
  for (const std::string& folder : {folder_, unfinished})
    if (calls_.make_folder(folder) != 0 && errno != EEXIST) return failure(folder, errno);
  std::error_code failed;
  // If a file cannot be removed, the next file of that name will overwrite it.
  for (const auto& entry : fs::directory_iterator(unfinished, failed)) calls_.unlink(entry.path().string());
  if (failed) return failure(unfinished, failed.value());
  WL_RETURN_IF_ERROR(sync_folder(folder_, calls_));
  return sync_folder(fs::path(folder_).parent_path().string(), calls_);
}

std::string ObjectFolder::path_of(const std::string& digest) const {
  return cat(folder_, "/", digest.substr(0, 2), "/", digest.substr(2));
}

absl::Status ObjectFolder::place(const std::string& made, const std::string& digest) {
  const std::string path = path_of(digest), parent = fs::path(path).parent_path().string();
  absl::Status done;
  if (calls_.make_folder(parent) != 0 && errno != EEXIST) {
    done = failure(parent, errno);
  } else if (calls_.rename(made, path) != 0) {
    done = failure(path, errno);
  }
  if (!done.ok()) {
    calls_.unlink(made);
    return done;
  }
  point("object named");
  WL_RETURN_IF_ERROR(sync_folder(parent, calls_));
  return sync_folder(folder_, calls_);  // another thread may have created the folder `parent` just now
}

absl::Status ObjectFolder::put(const std::string& digest, std::string_view bytes) {
  static std::atomic<uint64_t> number = 0;
  if (!is_sha256(digest)) return invalid("object ", digest, ": expected a SHA-256 in 64 hexadecimal digits");
  const std::string made = cat(folder_, "/", kUnfinished, "/", number++);
  const int file = calls_.open(made, O_WRONLY | O_CREAT | O_TRUNC);
  if (file < 0) return failure(made, errno);
  int error = write_all(calls_, file, bytes);
  point("object written");
  if (error == 0 && calls_.fsync(file) != 0) error = errno;
  if (calls_.close(file) != 0 && error == 0) error = errno;
  point("object synced");
  if (error == 0) return place(made, digest);
  calls_.unlink(made);
  return failure(made, error);
}

absl::StatusOr<std::string> ObjectFolder::get(const std::string& digest) const {
  const auto missing = [&] { return absl::NotFoundError(cat("object ", digest, " is not in ", folder_)); };
  if (!is_sha256(digest)) return missing();
  const int file = calls_.open(path_of(digest), O_RDONLY | O_NONBLOCK);
  int error = file < 0 ? errno : 0;
  if (error == ENOENT) return missing();
  const std::string what = cat("object ", digest, ": ");
  std::string bytes;
  if (error == 0) {
    struct stat found = {};
    const bool is_object = fstat(file, &found) == 0 && S_ISREG(found.st_mode) && found.st_size <= kMostModel;
    if (is_object) bytes.reserve(static_cast<size_t>(found.st_size));
    if (is_object) error = read_all(calls_, file, &bytes);
    calls_.close(file);
    if (!is_object)
      return absl::DataLossError(cat(what, path_of(digest), " is no regular file of at most ", kMostModel, " bytes"));
  }
  if (error == 0 && sha256_hex(bytes) == digest) return bytes;
  if (error == 0) return absl::DataLossError(cat(what, "its bytes do not have its digest"));
  const std::string why = cat(what, "cannot be read: ", std::strerror(error));
  if (error == EIO || error == EISDIR) return absl::DataLossError(why);
  return absl::InternalError(cat(why, "; check ", folder_));
}

bool ObjectFolder::has(const std::string& digest, int64_t size) const {
  struct stat found = {};
  return is_sha256(digest) && stat(path_of(digest).c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
         found.st_size == size;
}

absl::Status ObjectFolder::remove(const std::string& digest) {
  if (!is_sha256(digest) || calls_.unlink(path_of(digest)) == 0 || errno == ENOENT) return absl::OkStatus();
  return absl::InternalError(
      cat("object ", path_of(digest), ": cannot be removed: ", std::strerror(errno), "; remove the file"));
}

std::vector<std::string> ObjectFolder::names(const std::string& first_digits) const {
  std::vector<std::string> found;
  std::error_code failed;
  for (auto at = fs::directory_iterator(cat(folder_, "/", first_digits), failed);
       !failed && at != fs::directory_iterator(); at.increment(failed)) {
    std::string digest = first_digits + at->path().filename().string();
    if (is_sha256(digest)) found.push_back(std::move(digest));
  }
  return found;
}

absl::Status ObjectFolder::take(const std::string& digest, const ObjectFolder& from) {
  const absl::StatusOr<std::string> bytes = from.get(digest);
  if (absl::IsDataLoss(bytes.status())) return absl::NotFoundError(bytes.status().message());
  WL_RETURN_IF_ERROR(bytes.status());
  if (get(digest).ok()) return absl::OkStatus();
  const std::string made = cat(folder_, "/", kUnfinished, "/", digest);
  calls_.unlink(made);
  if (calls_.link(from.path_of(digest), made) == 0) return place(made, digest);
  return put(digest, *bytes);
}

}  // namespace wl

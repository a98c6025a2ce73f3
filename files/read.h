// Files that users name, opened in one place: a regular file of at most so many bytes, or an error that says which
// file, what it is, how large it is and what the limit is. A pipe, a device or a folder is neither waited for nor read.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/base/status.h"

namespace wl {

// Limits, in bytes.
inline constexpr int64_t kMostSettings = int64_t{16} << 20;  // what people write: configurations, callers, certificates
inline constexpr int64_t kMostModel = (int64_t{2} << 30) - 1;  // a graph or an object; no ONNX file may be larger

// Arrays may be as large as the memory that this machine has left (MemAvailable of /proc/meminfo).
int64_t most_array_bytes();

// InvalidArgument when `bytes`, which `what` says it has, are more than an array may have or are not to be had.
// Asked before memory is taken by a size that a file says.
absl::Status check_array_bytes(std::string_view what, int64_t bytes);

class RegularFile {
 public:
  // InvalidArgument, "cannot read PATH: reason": the file cannot be opened, is no regular file (once links are
  // followed), or has more than `most` bytes.
  static absl::StatusOr<RegularFile> open(const std::string& path, int64_t most);
  RegularFile(RegularFile&& other) noexcept;
  RegularFile& operator=(RegularFile&&) = delete;
  ~RegularFile();

  int64_t size() const { return facts_.st_size; }
  const struct stat& facts() const { return facts_; }  // as they were when the file was opened
  int descriptor() const { return descriptor_; }

  // The next bytes of the file, at most `most`; 0 at its end, -1 when they cannot be read (errno).
  int64_t next(char* to, int64_t most) const;
  // All bytes. InvalidArgument: an error of the disk, or more bytes than the limit since the file grew.
  // ResourceExhausted: no memory for them.
  absl::StatusOr<std::string> all() const;
  // `length` bytes from byte `offset` on. InvalidArgument: the file has fewer; else as all().
  absl::StatusOr<std::string> part(int64_t offset, int64_t length) const;

 private:
  RegularFile(std::string path, int64_t most, int descriptor)
      : path_(std::move(path)), most_(most), descriptor_(descriptor) {}
  std::string path_;
  int64_t most_;
  int descriptor_;
  struct stat facts_ = {};
};

// All bytes of a regular file; errors as those of open() and all().
absl::StatusOr<std::string> read_file(const std::string& path, int64_t most = kMostModel);

// OK if the path names a regular file, for what others open: SQLite, gRPC, the dynamic linker.
absl::Status check_file(const std::string& path, int64_t most = kMostModel);

// The folder for temporary files: TMPDIR, or /tmp. Unavailable, "TMPDIR ...": it is no folder.
absl::StatusOr<std::string> temporary_folder();

}  // namespace wl

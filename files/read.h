// Opens the files that users name. A file must be a regular file and must not exceed a size limit. The error names the
// file, and says either what kind of file it is, or its size and the limit. A pipe, a device or a folder is refused
// without waiting for it or reading it.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/base/status.h"

namespace wl {

// The largest size in bytes of configurations, lists of callers and certificates.
inline constexpr int64_t kMostSettings = int64_t{16} << 20;
// The largest size in bytes of a file with a graph or a compiled object; no ONNX file may be larger.
inline constexpr int64_t kMostModel = (int64_t{2} << 30) - 1;

// Returns the largest size in bytes that an array may have: the memory that this machine has left (MemAvailable of
// /proc/meminfo) or, if that is not known, all its memory.
int64_t most_array_bytes();

// Checks the size of an array, which a file states, before memory is allocated. InvalidArgument: `bytes`, the size of
// `what`, is above most_array_bytes().
absl::Status check_array_bytes(std::string_view what, int64_t bytes);

class RegularFile {
 public:
  // Opens a file. InvalidArgument, "cannot read PATH: reason": it cannot be opened, is no regular file (once links are
  // followed), or has more than `most` bytes.
  static absl::StatusOr<RegularFile> open(const std::string& path, int64_t most);
  RegularFile(RegularFile&& other) noexcept;
  RegularFile& operator=(RegularFile&&) = delete;
  ~RegularFile();

  int64_t size() const { return facts_.st_size; }
  const struct stat& facts() const { return facts_; }  // the facts that fstat() returned when the file was opened
  int descriptor() const { return descriptor_; }

  // Reads the next bytes, at most `most`, into `to`. Returns how many were read; 0 at the end; -1 on an error (errno).
  int64_t next(char* to, int64_t most) const;
  // Returns all bytes of the file; next() must not have read any. InvalidArgument: the bytes cannot be read, or the
  // file has grown beyond its limit since it was opened. ResourceExhausted: there is no memory for the bytes.
  absl::StatusOr<std::string> all() const;
  // Returns `length` bytes from byte `offset` on. InvalidArgument: the file has fewer bytes, they cannot be read, or
  // there is not that much memory (check_array_bytes). ResourceExhausted as in all().
  absl::StatusOr<std::string> part(int64_t offset, int64_t length) const;

 private:
  RegularFile(std::string path, int64_t most, int descriptor)
      : path_(std::move(path)), most_(most), descriptor_(descriptor) {}
  std::string path_;
  int64_t most_;
  int descriptor_;
  struct stat facts_ = {};
};

// Returns all bytes of a regular file. The errors are those of RegularFile's open() and all().
absl::StatusOr<std::string> read_file(const std::string& path, int64_t most = kMostModel);

// Checks a path that other code opens by itself, such as the dynamic linker. The errors are those of RegularFile::open.
absl::Status check_file(const std::string& path, int64_t most = kMostModel);

// Returns the folder for temporary files: TMPDIR, or /tmp. Unavailable, with what to do: it is not a folder.
absl::StatusOr<std::string> temporary_folder();

}  // namespace wl

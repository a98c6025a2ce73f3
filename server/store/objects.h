// Compiled objects as files beside the store: FOLDER/ab/cdef..., named by the digest of their bytes. A file gets its
// name only when it is complete and on the disk, and is never changed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compiler/base/status.h"
#include "server/store/disk.h"

namespace wl {

// All functions may be called from any thread.
class ObjectFolder {
 public:
  // `at_point`: for tests, which can stop the process there; called with "object written", "object synced" and "object
  // named". `calls` must outlive the object.
  explicit ObjectFolder(std::string folder, std::function<void(const char*)> at_point = {},
                        const FileCalls& calls = system_calls())
      : folder_(std::move(folder)), at_point_(std::move(at_point)), calls_(calls) {}

  // Creates the folder, and removes unfinished files.
  absl::Status open();
  // Stores an object durably under the digest of its bytes, and replaces a damaged file. ResourceExhausted: the disk is
  // full.
  // DataLoss: the sync of a folder failed, so it is not known which of the latest files are on the disk.
  absl::Status put(const std::string& digest, std::string_view bytes);
  // Reads an object. NotFound: there is no such file; DataLoss: its bytes have another digest, or cannot be read.
  absl::StatusOr<std::string> get(const std::string& digest) const;
  // Whether the object has a file of this size. The contents of the file are not checked.
  bool has(const std::string& digest, int64_t size) const;
  absl::Status remove(const std::string& digest);  // removes an object's file; OK also if it is missing
  // Returns the digests that begin with these two digits and have a file, which may be damaged.
  std::vector<std::string> names(const std::string& first_digits) const;
  // Takes an object from another folder, as a hard link if possible, else as a copy. NotFound: the object is missing or
  // damaged in `from`. Other errors as for put().
  absl::Status take(const std::string& digest, const ObjectFolder& from);
  const std::string& folder() const { return folder_; }

 private:
  std::string path_of(const std::string& digest) const;
  absl::Status place(const std::string& made, const std::string& digest);
  void point(const char* name) const {
    if (at_point_) at_point_(name);
  }
  std::string folder_;
  std::function<void(const char*)> at_point_;
  const FileCalls& calls_;
};

}  // namespace wl

// Compiled objects as files beside the store: FOLDER/ab/cdef..., named by the digest of their bytes. A file appears
// under its name when it is whole and on the disk, and is never changed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "compiler/base/status.h"

namespace wl {

// Any thread.
class ObjectFolder {
 public:
  // `at_point`: called at "object written", "object synced" and "object named"; tests die there.
  explicit ObjectFolder(std::string folder, std::function<void(const char*)> at_point = {})
      : folder_(std::move(folder)), at_point_(std::move(at_point)) {}

  // Makes the folder, and removes files that were not finished.
  absl::Status open();
  // The bytes are on the disk under their digest, also if they were damaged there. ResourceExhausted: the disk is full.
  absl::Status put(const std::string& digest, std::string_view bytes);
  // Nothing when the file is missing, or does not have its digest; `damaged` tells these apart.
  std::optional<std::string> get(const std::string& digest, bool* damaged = nullptr) const;
  bool has(const std::string& digest, int64_t size) const;  // looks at the size only
  void remove(const std::string& digest);
  // Puts the object of another folder into this one: by a second name of the same file if that is possible.
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
};

}  // namespace wl

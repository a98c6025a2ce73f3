// A folder of one's own that is removed again on every path.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace wl {

class PrivateFolder {
 public:
  // A fresh folder in `parent`, readable by this user alone. Unavailable when it cannot be made.
  static absl::StatusOr<PrivateFolder> make(const std::string& parent);
  PrivateFolder() = default;
  PrivateFolder(PrivateFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  ~PrivateFolder();

  const std::string& path() const { return path_; }  // absolute
  // The bytes of a file, by its path; Unavailable when it cannot be read.
  static absl::StatusOr<std::string> read(const std::string& path);

 private:
  std::string path_;
};

}  // namespace wl

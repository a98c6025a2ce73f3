// A private folder that is removed on every path.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace wl {

class PrivateFolder {
 public:
  // Makes a fresh folder in `parent` that only this user can read. Unavailable when that fails.
  static absl::StatusOr<PrivateFolder> make(const std::string& parent);
  PrivateFolder() = default;
  PrivateFolder(PrivateFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  ~PrivateFolder();

  const std::string& path() const { return path_; }  // returns the absolute path of the folder
  // Returns the bytes of a file; Unavailable when it cannot be read.
  static absl::StatusOr<std::string> read(const std::string& path);

 private:
  std::string path_;
};

}  // namespace wl

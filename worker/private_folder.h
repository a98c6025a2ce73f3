// A private folder that the destructor removes. A process that is killed leaves its folders behind; the next process
// that calls sweep() removes them.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace wl {

class PrivateFolder {
 public:
  // Makes a fresh folder in `parent` that only this user can read. Unavailable if that fails.
  static absl::StatusOr<PrivateFolder> make(const std::string& parent);
  // Removes the folders of this user in `parent` whose processes have ended.
  static void sweep(const std::string& parent);
  PrivateFolder() = default;
  PrivateFolder(PrivateFolder&& other) noexcept
      : path_(std::exchange(other.path_, "")), owner_(std::exchange(other.owner_, -1)) {}
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  ~PrivateFolder();

  const std::string& path() const { return path_; }  // absolute path of the folder
  // Returns the bytes of a file; Unavailable if it cannot be read.
  static absl::StatusOr<std::string> read(const std::string& path);

 private:
  std::string path_;
  int owner_ = -1;  // descriptor of the owner file, whose lock shows that this process is alive
};

}  // namespace wl

// Files of the client: whole reads and writes whose failures name the path and the reason, and folders that appear
// whole or not at all.
#pragma once

#include <string>
#include <string_view>

#include "compiler/base/status.h"

namespace wl {

// Errors: InvalidArgument "cannot read PATH: reason".
absl::StatusOr<std::string> read_file(const std::string& path);

// A full disk is ResourceExhausted, anything else InvalidArgument; both name the path.
absl::Status write_file(const std::string& path, std::string_view bytes);

bool is_folder(const std::string& path);

// Creates the folder and its parents.
absl::Status make_folders(const std::string& path);

// A folder under construction beside its final place: removed unless commit() gave it its name.
class PendingFolder {
 public:
  // `path` is the final name. Nothing is created there before commit().
  static absl::StatusOr<PendingFolder> create(const std::string& path);
  PendingFolder(PendingFolder&& other) noexcept;
  PendingFolder& operator=(PendingFolder&&) = delete;
  ~PendingFolder();

  const std::string& path() const { return temporary_; }  // where to write
  // Replaces what is at the final name; an observer sees the old folder or the new one, whole.
  absl::Status commit();

 private:
  PendingFolder(std::string final_path, std::string temporary)
      : final_(std::move(final_path)), temporary_(std::move(temporary)) {}
  std::string final_, temporary_;
};

}  // namespace wl

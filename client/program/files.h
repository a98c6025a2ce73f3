// Writes files and folders of the client (files/read.h reads them): whole files, with errors that name path and reason,
// and folders that appear completely or not at all.
#pragma once

#include <string>
#include <string_view>

#include "compiler/base/status.h"
#include "files/read.h"

namespace wl {

// Writes a whole file. ResourceExhausted: the disk is full. InvalidArgument: writing failed for any other reason.
// Errors name the path.
absl::Status write_file(const std::string& path, std::string_view bytes);

bool is_folder(const std::string& path);

// Returns the path of "warploom" in the user's cache folder; "" if neither XDG_CACHE_HOME nor HOME is an absolute path.
std::string user_cache_folder();

// Creates a folder and its parents.
absl::Status make_folders(const std::string& path);

// A folder under construction beside its final place. It is removed unless commit() has renamed it.
class PendingFolder {
 public:
  // `path` is the final name. Nothing is created there before commit().
  static absl::StatusOr<PendingFolder> create(const std::string& path);
  PendingFolder(PendingFolder&& other) noexcept;
  PendingFolder& operator=(PendingFolder&&) = delete;
  ~PendingFolder();

  const std::string& path() const { return temporary_; }  // returns the folder in which to write
  // Removes all folders that were not committed, for a program that ends without destructors. Any thread may call it.
  static void remove_all();
  // Gives the folder its final name, and removes an older folder of that name. A reader sees either the complete old
  // folder or the complete new one. On file systems that cannot exchange folders, neither exists for a moment.
  absl::Status commit();

 private:
  PendingFolder(std::string final_path, std::string temporary);
  std::string final_, temporary_;
};

}  // namespace wl

// A private folder for a test, which is removed with all it contains when the object is destroyed.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace wl {

class Scratch {
 public:
  Scratch() : folder_((std::filesystem::temp_directory_path() / "warploom-test-XXXXXX").string()) {
    if (mkdtemp(folder_.data()) == nullptr) abort();
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& folder() const { return folder_; }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

 private:
  std::string folder_;
};

}  // namespace wl

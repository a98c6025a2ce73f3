// Reads whole files.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace wl::testing {

// Returns the contents of a file, or "" if the file cannot be read.
inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

}  // namespace wl::testing

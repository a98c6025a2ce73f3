// What a golden is: a group with the target and the choices for which its kernel is recorded.
#pragma once

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace wl::testing {

inline std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Golden {
  const char* name;
  const char* target;
  std::vector<std::pair<const char*, int64_t>> choices;  // by the names of plans, beside the default schedule
  const char* graph;
  bool everywhere = false;  // GPUs' choices are the golden's too
  const char* folder = "";  // of its file: that of its table
};

}  // namespace wl::testing

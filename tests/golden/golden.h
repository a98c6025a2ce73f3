// A golden: a group with the target and the schedule choices for which its plan, kernel and source are recorded.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace wl::testing {

struct Golden {
  const char* name;
  const char* target;
  std::vector<std::pair<const char*, int64_t>> choices;  // by their names in plans; all others are the default ones
  const char* graph;
  bool everywhere = false;  // whether GPU targets are recorded with these choices too
  const char* folder = "";  // folder of its file, set by its table
};

}  // namespace wl::testing

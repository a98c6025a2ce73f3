// A golden: a group, and the target and schedule choices for which the group's plan, kernel and source are recorded.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace wl::testing {

struct Golden {
  const char* name;
  const char* target;
  std::vector<std::pair<const char*, int64_t>> choices;  // choices that are not the default, with their names in plans
  const char* graph;
  bool everywhere = false;  // whether kernels of the GPU targets are also recorded with these choices
  const char* folder = "";  // folder of the golden's file, set by the golden's table
};

}  // namespace wl::testing

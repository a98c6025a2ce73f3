// A golden: a group, and the target and schedule choices for which the group's plan, kernel and source are recorded.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace wl::testing {

struct Golden {
  const char* name;
  const char* target;
  std::vector<std::pair<const char*, int64_t>> choices;  // choices (by their names in plans) that are not the default
  const char* graph;
  bool everywhere = false;  // whether kernels for GPUs have these choices too, not the default ones
  const char* folder = "";  // folder of the golden's file, set by the table of goldens
};

}  // namespace wl::testing

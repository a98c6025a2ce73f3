// Files that a worker writes for compilers and runners.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace wl {

// Replaces the contents of a file by these parts, one after another. Unavailable, with the path: the file cannot be
// written completely.
absl::Status write_parts(const std::string& path, const std::vector<std::string_view>& parts);

}  // namespace wl

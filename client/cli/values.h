// Parses values of the command line and of batch files.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "compiler/base/status.h"

namespace wl {

// parse_seconds() parses a time such as "90", "90s", "5m" or "1h" to seconds, parse_assignment() an assignment such as
// "batch=8" to its name and value. Errors quote the text.
absl::StatusOr<double> parse_seconds(const std::string& text);
absl::StatusOr<std::pair<std::string, std::string>> parse_assignment(const std::string& text);
// Parses a list of extents such as "64,128": distinct whole numbers. Error messages quote `text`.
absl::StatusOr<std::vector<int64_t>> parse_extents(const std::string& list, const std::string& text);

}  // namespace wl

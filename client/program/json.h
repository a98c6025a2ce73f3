// JSON as the client writes it: members in the order in which they were added, with one style for files and reports.
#pragma once

#include <string>

#include "nlohmann/json.hpp"

namespace wl {

using Json = nlohmann::ordered_json;

// Formats JSON with one line per member and a final newline. Bytes that are not UTF-8 are replaced.
std::string text_of(const Json& json);
// Formats JSON on one line, with a final newline. Bytes that are not UTF-8 are replaced.
std::string line_of(const Json& json);

}  // namespace wl

#include "client/cli/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "absl/strings/str_split.h"

namespace wl {

absl::StatusOr<double> parse_seconds(const std::string& text) {
  char* end = nullptr;
  double value = std::strtod(text.c_str(), &end);
  std::string unit = end;
  double factor = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (end == text.c_str() || factor == 0 || !(value > 0) || !std::isfinite(value)) {
    return invalid("expected a time such as 90, 90s, 5m or 1h, found \"", text, "\"");
  }
  return value * factor;
}

absl::StatusOr<std::pair<std::string, std::string>> parse_assignment(const std::string& text) {
  size_t at = text.find('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
    return invalid("expected NAME=VALUE, found \"", text, "\"");
  }
  return std::pair(text.substr(0, at), text.substr(at + 1));
}

absl::StatusOr<std::vector<int64_t>> parse_extents(const std::string& list, const std::string& text) {
  std::vector<int64_t> extents;
  const std::vector<std::string> items = absl::StrSplit(list, ',');
  for (const std::string& item : items) {
    int64_t extent = -1;
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), extent);
    if (error != std::errc() || end != item.data() + item.size() || extent < 0 ||
        std::find(extents.begin(), extents.end(), extent) != extents.end()) {
      return invalid("expected NAME=N with a whole number, or several, each once, found \"", text, "\"");
    }
    extents.push_back(extent);
  }
  return extents;
}

}  // namespace wl

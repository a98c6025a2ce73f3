#include "client/cli/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <random>

#include "absl/strings/str_split.h"
#include "proto/trace.h"

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

std::string new_request_id() {
  std::random_device device;
  std::string id;
  for (int i = 0; i < 16; ++i) {
    unsigned byte = device() & 0xff;
    if (i == 6) byte = (byte & 0x0f) | 0x40;
    if (i == 8) byte = (byte & 0x3f) | 0x80;
    append(&id, i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", absl::Hex(byte, absl::kZeroPad2));
  }
  return id;
}

std::string trace_of_job(const std::string& given) {
  if (!given.empty()) return given;
  const char* parent = std::getenv("TRACEPARENT");
  // What cannot be read is as if it were not there, as the standard says.
  const absl::StatusOr<std::string> trace = parse_trace(parent == nullptr ? "" : parent);
  return trace.ok() ? *trace : new_trace();
}

}  // namespace wl

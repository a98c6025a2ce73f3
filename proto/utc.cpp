#include "proto/utc.h"

#include <array>
#include <ctime>

namespace wl {

std::string utc_text(int64_t unix_s, const char* form) {
  const time_t at = unix_s;
  tm parts = {};
  gmtime_r(&at, &parts);
  std::array<char, 64> text = {};
  return {text.data(), std::strftime(text.data(), text.size(), form, &parts)};
}

std::optional<int64_t> utc_seconds(const std::string& text, const char* form) {
  tm parts = {};
  const char* const end = strptime(text.c_str(), form, &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return timegm(&parts);
}

}  // namespace wl

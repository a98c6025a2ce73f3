// Points in time as text, in UTC. The parameter `form` is a format of strftime() and strptime().
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace wl {

std::string utc_text(int64_t unix_s, const char* form);
// Returns the time that a text gives, in seconds since 1970; nullopt if the text does not have exactly this form.
std::optional<int64_t> utc_seconds(const std::string& text, const char* form);

}  // namespace wl

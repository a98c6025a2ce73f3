#include "server/daemon_values.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "server/services/callers.h"

namespace wl {

absl::StatusOr<OfferRule> parse_offer(const std::string& text) {
  if (text == "none") return OfferRule::kNone;
  if (text == "confirmed") return OfferRule::kConfirmed;
  if (text == "all") return OfferRule::kAll;
  return invalid("--offer: expected none, confirmed or all, found \"", text, "\"");
}

absl::StatusOr<int64_t> parse_life(const std::string& text) {
  if (text == "never") return kForEver;
  int64_t count = 0;
  const int64_t unit = text.ends_with('d') ? 86'400 : text.ends_with('h') ? 3600 : 0;
  if (unit == 0 || !absl::SimpleAtoi(text.substr(0, text.size() - 1), &count) || count < 1 || count > 100'000)
    return invalid("--expires: expected a time such as 30d or 12h, or never, found \"", text, "\"");
  return count * unit;
}

absl::StatusOr<EngineSettings::Background> parse_background(const std::string& text) {
  if (text == "never") return EngineSettings::Background{};
  EngineSettings::Background hours{.on = true};
  if (text == "always") return hours;
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('-', 1));
  const bool numbers =
      absl::SimpleAtoi(parts.first, &hours.from_hour) && absl::SimpleAtoi(parts.second, &hours.to_hour);
  const auto is_hour = [](int hour) { return hour >= 0 && hour < 24; };
  if (!numbers || !is_hour(hours.from_hour) || !is_hour(hours.to_hour) || hours.from_hour == hours.to_hour)
    return invalid(
        "--background-hours: expected always, never, or two different hours from 0 to 23 such as 20-6, found "
        "\"",
        text, "\"");
  return hours;
}

}  // namespace wl

#include "server/upstream/via.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/base/status.h"

namespace wl {
namespace {

constexpr size_t kMostBytes = 1024;

}  // namespace

std::string print_via(const Via& via) {
  return absl::StrJoin(via, ",");
}

Via parse_via(std::string_view text) {
  if (text.empty()) return {};
  if (text.size() > kMostBytes) return Via(kMostHops);
  return absl::StrSplit(absl::string_view(text.data(), text.size()), ',');
}

std::string why_not_ask(const std::string& id, const Via& via) {
  if (std::find(via.begin(), via.end(), id) != via.end()) {
    return "this coordinator is its own upstream, perhaps through others; take --upstream away from one of them";
  }
  if (via.size() >= kMostHops)
    return cat("the question has passed ", via.size(), " coordinators, and may pass ", kMostHops);
  return "";
}

}  // namespace wl

// The coordinators that a question has passed, by the ids of their processes, in order. A coordinator that finds its
// own id among them, or too many ids, does not pass the question on, so that a circle of upstreams does no harm.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wl {

using Via = std::vector<std::string>;

// Name of the call metadata with the ids, separated by commas.
inline constexpr const char kViaHeader[] = "warploom-via";
inline constexpr size_t kMostHops = 8;

std::string print_via(const Via& via);
// Reads the text of print_via(). A text that is longer than print_via() writes counts as kMostHops hops.
Via parse_via(std::string_view text);
// Returns why the coordinator with this id must not pass on a question that has passed the coordinators of `via`; "":
// it may.
std::string why_not_ask(const std::string& id, const Via& via);

}  // namespace wl

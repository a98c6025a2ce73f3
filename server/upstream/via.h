// The way of a question: the coordinators that it has passed, by the ids of their processes, the first one first. A
// coordinator that finds itself there, or too many others, asks nobody: so a circle of upstreams ends.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wl {

using Via = std::vector<std::string>;

inline constexpr const char kViaHeader[] = "warploom-via";  // metadata of a call; ids with commas between them
inline constexpr size_t kMostHops = 8;

std::string print_via(const Via& via);
// Reads what print_via() prints. What is longer than any that is sent counts as kMostHops hops.
Via parse_via(std::string_view text);
// Why a coordinator of this id asks nobody for a question that has come this way; "": it may ask.
std::string why_not_ask(const std::string& id, const Via& via);

}  // namespace wl

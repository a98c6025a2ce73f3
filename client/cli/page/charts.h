// The charts of a page, as HTML and SVG that take the page's width, and their colours from its style. Groups are
// labelled by their numbers in the report, from 0. Tables of the page have the same values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/cli/page/page.h"

namespace wl {

std::string html_text(std::string_view text);  // escapes a text for HTML and SVG

// Return a member of a report; 0 or "" if it is missing, as in reports of older versions. text_in() formats a member
// that is not text as JSON.
double number_in(const Json& json, const char* key);
std::string text_in(const Json& json, const char* key);

// Draws two bars for each group: the times of its default kernels and of its tuned ones, summed over its occurrences.
std::string bars_html(const Json& groups);
// Draws, for each group, the best time so far divided by the final best time, as a function of the number of trials,
// with the names of the groups below.
std::string curves_svg(const std::vector<Curve>& curves);
// Draws the roofline: every group by its operations per byte and per second, below the lines of the machine's limits.
std::string roofline_svg(const Json& groups, const Limits& limits);

}  // namespace wl

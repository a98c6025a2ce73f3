// The charts of a page, as SVG whose colours are the page's. What a chart shows is also in a table.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/cli/page/page.h"

namespace wl {

std::string html_text(std::string_view text);  // for HTML and SVG: no character of it is markup

// Values of a report, which may lack what later versions add: 0 and "" where there is none. What is not text is shown
// as JSON.
double number_in(const Json& json, const char* key);
std::string text_in(const Json& json, const char* key);

// A bar for the default kernels of each group and one for the tuned ones, of all its occurrences.
std::string bars_svg(const Json& groups);
// The best time of each group over its last, by trials.
std::string curves_svg(const std::vector<Curve>& curves);
// Operations a byte and operations a second of every group, below what the machine reaches.
std::string roofline_svg(const Json& groups, const Limits& limits);

}  // namespace wl

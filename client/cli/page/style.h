// The style sheet of a page: the text of client/cli/page/style.css.in, built into the program.
#pragma once

#include <string_view>

namespace wl {

std::string_view page_style();

}  // namespace wl

// The style of a page: client/cli/page/style.css.in.
#pragma once

#include <string_view>

namespace wl {

std::string_view page_style();

}  // namespace wl

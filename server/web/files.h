// The files of server/web/pages, which the build puts into the program.
#pragma once

#include <span>
#include <string_view>
#include <utility>

namespace wl {

// Names without their folder, and texts.
std::span<const std::pair<std::string_view, std::string_view>> web_files();

}  // namespace wl

// The files of client/cli/export/files, which are built into the program: name and text of each.
#pragma once

#include <span>
#include <string_view>
#include <utility>

namespace wl {

std::span<const std::pair<std::string_view, std::string_view>> export_files();

}  // namespace wl

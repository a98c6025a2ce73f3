// The files of client/cli/export/files, by name.
#pragma once

#include <span>
#include <string_view>
#include <utility>

namespace wl {

std::span<const std::pair<std::string_view, std::string_view>> export_files();

}  // namespace wl

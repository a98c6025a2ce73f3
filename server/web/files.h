// The files of server/web/pages, which the build puts into the program.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace wl {

// Names without their folder, and texts.
std::span<const std::pair<std::string_view, std::string_view>> web_files();

// What is served as it is.
struct WebFile {
  std::string type, tag;
  std::shared_ptr<const std::string> body;
};
using WebFiles = std::map<std::string, WebFile, std::less<>>;  // by name

}  // namespace wl

// The files of server/web/pages, which the build embeds into the program.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace wl {

// Returns the name, without folder, and the text of each file.
std::span<const std::pair<std::string_view, std::string_view>> web_files();

// A file as it is served. `type`: MIME type; `tag`: ETag.
struct WebFile {
  std::string type, tag;
  std::shared_ptr<const std::string> body;
};
using WebFiles = std::map<std::string, WebFile, std::less<>>;  // the files by name

}  // namespace wl

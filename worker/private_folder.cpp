#include "worker/private_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "compiler/base/status.h"

namespace wl {

absl::StatusOr<PrivateFolder> PrivateFolder::make(const std::string& parent) {
  std::string path = parent + "/measure.XXXXXX";
  if (!mkdtemp(path.data()))
    return absl::UnavailableError(absl::StrCat("cannot make a folder in ", parent, ": ", std::strerror(errno)));
  PrivateFolder folder;
  std::error_code ignored;
  folder.path_ = std::filesystem::absolute(path, ignored).string();
  return folder;
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

absl::StatusOr<std::string> PrivateFolder::read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  if (!file) return absl::UnavailableError(absl::StrCat("cannot read ", path));
  return bytes.str();
}

}  // namespace wl

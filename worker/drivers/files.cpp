#include "worker/drivers/files.h"

#include <fstream>

#include "absl/strings/str_cat.h"

namespace wl {

absl::Status write_parts(const std::string& path, const std::vector<std::string_view>& parts) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  for (std::string_view part : parts) file.write(part.data(), static_cast<std::streamsize>(part.size()));
  file.close();
  if (!file) return absl::UnavailableError(absl::StrCat("cannot write ", path, "; is the disk full?"));
  return absl::OkStatus();
}

}  // namespace wl

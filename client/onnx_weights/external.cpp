#include "client/onnx_weights/external.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "files/read.h"

namespace wl {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<std::string> read_part(const fs::path& folder, const std::string& location, int64_t offset,
                                      int64_t length) {
  const std::string path = (folder / location).string();
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return invalid("cannot read ", path, ": ", error.message());
  const fs::path root = fs::canonical(folder, error);
  if (error) return invalid("cannot read ", folder.string(), ": ", error.message());
  if (std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first != root.end())
    return invalid("cannot read ", path, ": it leads out of the model's folder, to ", real.string());
  WL_ASSIGN_OR_RETURN(const RegularFile file, RegularFile::open(real.string(), std::numeric_limits<int64_t>::max()));
  return file.part(offset, length);
}

}  // namespace

ExternalData external_files_of(const std::string& path) {
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty()) folder = ".";
  return [folder](const std::string& location, int64_t offset, int64_t length) {
    return read_part(folder, location, offset, length);
  };
}

}  // namespace wl

#include "client/onnx_weights/external.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

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
  if (!fs::is_regular_file(real, error)) return invalid("cannot read ", path, ": expected a file");
  const auto size = static_cast<int64_t>(fs::file_size(real, error));
  if (error) return invalid("cannot read ", path, ": ", error.message());
  if (offset > size || length > size - offset) {
    return invalid("cannot read ", path, ": it has ", size, " bytes, ", length, " from byte ", offset,
                   " on were expected");
  }
  std::ifstream file(real, std::ios::binary);
  std::string bytes(static_cast<size_t>(length), '\0');
  if (!file || !file.seekg(offset) || !file.read(bytes.data(), length))
    return invalid("cannot read ", path, ": ", std::strerror(errno));
  return bytes;
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

#include "client/onnx_weights/visit.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "client/onnx_weights/external.h"
#include "compiler/import/weights.h"

namespace wl {

absl::Status visit_onnx(const std::string& path, const ArrayVisitor& visit) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return invalid("cannot read ", path, ": ", std::strerror(errno));
  const auto read = [&](char* to, int most) {
    file.read(to, most);
    return file.bad() ? -1 : static_cast<int>(file.gcount());
  };
  const absl::Status status = visit_weights(read, visit, external_files_of(path));
  return status.ok() ? status : absl::Status(status.code(), cat(path, ": ", status.message()));
}

}  // namespace wl

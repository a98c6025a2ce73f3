#include "client/onnx_weights/visit.h"

#include "client/onnx_weights/external.h"
#include "compiler/import/weights.h"
#include "files/read.h"

namespace wl {

absl::Status visit_onnx(const std::string& path, const ArrayVisitor& visit) {
  WL_ASSIGN_OR_RETURN(const RegularFile file, RegularFile::open(path, kMostModel));
  const auto read = [&](char* to, int most) { return static_cast<int>(file.next(to, most)); };
  const absl::Status status = visit_weights(read, visit, external_files_of(path));
  return status.ok() ? status : absl::Status(status.code(), cat(path, ": ", status.message()));
}

}  // namespace wl

#include "client/c/onnx.h"

#include "client/c/warploom.h"
#include "runtime/object.h"

namespace wl {
namespace {

using Visit = void (*)(const std::string& path, const ArrayVisitor& visit, absl::Status& result);

// The name has the version: C++ types pass between the two, so both are of one build.
constexpr const char* kObject = "libwarploom-onnx-" WARPLOOM_VERSION ".so";

absl::StatusOr<Visit> loaded() {
  static auto* const kLoaded = new absl::StatusOr<SharedObject>(
      SharedObject::open_beside(reinterpret_cast<const void*>(&warploom_version), kObject));
  WL_RETURN_IF_ERROR(kLoaded->status());
  WL_ASSIGN_OR_RETURN(void* const symbol, (*kLoaded)->symbol("warploom_visit_onnx"));
  return reinterpret_cast<Visit>(symbol);
}

}  // namespace

absl::Status visit_onnx_lazily(const std::string& path, const ArrayVisitor& visit) {
  const absl::StatusOr<Visit> onnx = loaded();
  if (!onnx.ok())
    return absl::FailedPreconditionError(cat(path, ": ONNX files are read by ", kObject, ": ", onnx.status().message(),
                                             "; weights may also come from an .npz or .npy files"));
  absl::Status result;
  (*onnx)(path, visit, result);
  return result;
}

}  // namespace wl

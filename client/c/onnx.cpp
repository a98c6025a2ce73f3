#include "client/c/onnx.h"

#include "client/c/plugin.h"

namespace wl {

absl::Status visit_onnx_lazily(const std::string& path, const ArrayVisitor& visit) {
  static const auto* const kReader = new Plugin("onnx", "ONNX files are read by");
  const absl::StatusOr<void*> symbol = kReader->symbol("warploom_visit_onnx");
  if (!symbol.ok())
    return absl::Status(symbol.status().code(), cat(path, ": ", symbol.status().message(),
                                                    "; weights may also come from an .npz or .npy files"));
  absl::Status result;
  reinterpret_cast<void (*)(const std::string&, const ArrayVisitor&, absl::Status&)> (*symbol)(path, visit, result);
  return result;
}

}  // namespace wl

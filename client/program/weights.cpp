#include "client/program/weights.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "client/program/files.h"

namespace wl {
namespace {

namespace fs = std::filesystem;

absl::Status visit_npy(const fs::path& path, const ArrayVisitor& visit) {
  WL_ASSIGN_OR_RETURN(std::string bytes, read_file(path.string(), most_array_bytes()));
  WL_ASSIGN_OR_RETURN(Array array, parse_npy(bytes, path.string()));
  return visit(path.stem().string(), array.dtype, array.shape, array.bytes);
}

}  // namespace

absl::Status visit_arrays(const std::string& path, const ArrayVisitor& visit, OnnxReader onnx) {
  if (is_folder(path)) {
    std::vector<fs::path> files;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
      if (entry.path().extension() == ".npy") files.push_back(entry.path());
    }
    if (error) return invalid("cannot read ", path, ": ", error.message());
    if (files.empty()) return invalid("cannot read ", path, ": expected NAME.npy files in it, found none");
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) WL_RETURN_IF_ERROR(visit_npy(file, visit));
    return absl::OkStatus();
  }
  if (path.ends_with(".npy")) return visit_npy(path, visit);
  if (path.ends_with(".onnx")) {
    if (onnx == nullptr) return unimplemented("cannot read ", path, ": this program reads weights from .npz and .npy");
    return onnx(path, visit);
  }
  WL_ASSIGN_OR_RETURN(std::string bytes, read_file(path, most_array_bytes()));
  WL_ASSIGN_OR_RETURN(const auto arrays, parse_npz(bytes, path));
  for (const auto& [name, array] : arrays) WL_RETURN_IF_ERROR(visit(name, array.dtype, array.shape, array.bytes));
  return absl::OkStatus();
}

}  // namespace wl

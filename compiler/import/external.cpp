#include "compiler/import/external.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "compiler/import/literal.h"
#include "onnx/onnx_pb.h"

namespace wl::onnx_import {
namespace {

// Returns whether a path leads out of the folder that it is relative to. Both `/` and `\` count as separators, since a
// model may have been written on another system.
bool leaves_its_folder(const std::string& location) {
  if (location.starts_with('/') || location.starts_with('\\') || location.find(':') != std::string::npos) return true;
  const std::vector<std::string> parts = absl::StrSplit(location, absl::ByAnyChar("/\\"));
  return std::find(parts.begin(), parts.end(), "..") != parts.end();
}

}  // namespace

absl::Status embed(onnx::TensorProto& tensor, const ExternalData& read, std::string_view what) {
  if (tensor.data_location() != onnx::TensorProto::EXTERNAL) return absl::OkStatus();
  std::string location;
  int64_t offset = 0, length = -1;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    int64_t* number = entry.key() == "offset" ? &offset : entry.key() == "length" ? &length : nullptr;
    if (number != nullptr && (!absl::SimpleAtoi(entry.value(), number) || *number < 0)) {
      return invalid(what, ": ", entry.key(), " of its external data is '", entry.value(),
                     "', expected a number of bytes");
    }
  }
  if (location.empty()) return invalid(what, ": its values are in another file, but no location names it");
  if (leaves_its_folder(location)) {
    return invalid(what, ": its values are in '", location,
                   "', which is not within the model's folder; only relative paths without .. are read");
  }
  if (!read) {
    return unimplemented(what, ": its values are in another file ('", location,
                         "'), which cannot be read here; save the model with its data inside "
                         "(onnx.save_model without save_as_external_data)");
  }
  WL_ASSIGN_OR_RETURN(const StoredType type, stored_type_of(tensor, what));
  const int64_t bytes = elements(type.shape) * size_of(type.dtype);
  if (length >= 0 && length != bytes) {
    return invalid(what, ": ", type_text(type.dtype, type.shape), " needs ", bytes, " bytes, its external data has ",
                   length);
  }
  auto values = bytes == 0 ? std::string() : read(location, offset, bytes);
  if (!values.ok()) return absl::Status(values.status().code(), cat(what, ": ", values.status().message()));
  if (static_cast<int64_t>(values->size()) != bytes) {
    return invalid(what, ": '", location, "' gave ", values->size(), " bytes, expected ", bytes);
  }
  tensor.clear_data_location();
  tensor.clear_external_data();
  tensor.set_raw_data(*std::move(values));
  return absl::OkStatus();
}

}  // namespace wl::onnx_import

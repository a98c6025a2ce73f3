// Reads arrays out of ONNX files, for visit_arrays() and Model::load_weights().
#pragma once

#include <string>

#include "client/program/weights.h"

namespace wl {

// An OnnxReader (client/program/weights.h). Reads the file in parts, since a whole copy would need as much memory again
// as the weights.
absl::Status visit_onnx(const std::string& path, const ArrayVisitor& visit);

}  // namespace wl

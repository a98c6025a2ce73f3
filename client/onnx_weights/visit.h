// Reads arrays out of ONNX files, for visit_arrays() and Model::load_weights().
#pragma once

#include <string>

#include "client/program/weights.h"

namespace wl {

// An OnnxReader. The file is never read as a whole, since it is as large as the weights, which have their own memory.
absl::Status visit_onnx(const std::string& path, const ArrayVisitor& visit);

}  // namespace wl

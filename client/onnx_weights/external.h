// Reads the files beside an ONNX model that hold its tensors' values.
#pragma once

#include <string>

#include "compiler/import/external.h"

namespace wl {

// Returns a function that reads files within the folder of the model at `path`. Its errors name the file.
// InvalidArgument: the file is missing, is shorter than the requested bytes, is not a regular file, or is outside the
// folder once links are followed.
ExternalData external_files_of(const std::string& path);

}  // namespace wl

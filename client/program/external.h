// The files beside an ONNX model that hold its tensors' values.
#pragma once

#include <string>

#include "compiler/import/external.h"

namespace wl {

// Reads files within the folder of the model at `path`. Errors, which name the file: InvalidArgument when it is
// missing, shorter than the bytes that are asked for, no file, or outside the folder once links are followed.
ExternalData files_beside(const std::string& path);

}  // namespace wl

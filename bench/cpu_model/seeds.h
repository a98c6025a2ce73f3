// The benefit of the model for kernels that nobody tunes: compares the first proposal for each contraction of a model
// by the space's own rule with that of the model, timed alternately.
#pragma once

#include <string>
#include <vector>

#include "compiler/base/status.h"

namespace wl {

// Compiles both kernels of every contraction group of the ONNX files into FOLDER, times them in `rounds` with all
// threads and returns Markdown: a row for each group whose proposals differ, and the geometric mean over all groups.
// With 0 rounds it only compiles; with `compile` false it only times.
absl::StatusOr<std::string> compare_seeds(const std::vector<std::string>& files, const std::string& folder, int rounds,
                                          bool compile);

}  // namespace wl

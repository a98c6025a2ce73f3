// The benefit of the cost model for kernels that are not tuned: compares, for each contraction of an ONNX model, the
// first seed of its space as space_of() orders the seeds with the first one as the cost model orders them.
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

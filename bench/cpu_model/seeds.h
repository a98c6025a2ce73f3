// What the model does for kernels that nobody tunes: the first seed of a model's contractions by the space's own rule
// and by the model, timed in turns.
#pragma once

#include <string>
#include <vector>

#include "compiler/base/status.h"

namespace wl {

// Compiles both kernels of every contraction group of the ONNX files into FOLDER, times them in `rounds` with all
// threads and returns Markdown: a row for each group whose seeds differ, and the geometric mean over all groups. With
// rounds 0 it only compiles, with compile false it only times.
absl::StatusOr<std::string> compare_seeds(const std::vector<std::string>& files, const std::string& folder, int rounds,
                                          bool compile);

}  // namespace wl

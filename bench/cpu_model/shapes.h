// The contractions that bench/cpu_model measures: those that calibrate the model, and those that it ranks. No shape is
// in both.
#pragma once

#include <string>
#include <vector>

namespace wl {

struct CpuShape {
  std::string name;
  std::string graph;  // text
  int points = 0;     // schedules recorded
  // Micro-kernels: the only schedules taken have this height and width. 0: drawn from the whole space.
  int height = 0, vectors = 0;
};

std::vector<CpuShape> micro_kernels();  // operands in the first cache
std::vector<CpuShape> calibration_shapes();
std::vector<CpuShape> ranked_shapes();

}  // namespace wl

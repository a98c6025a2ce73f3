// The contractions that bench/cpu_model measures: those that calibrate the model, and others, which it ranks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "compiler/target/target.h"

namespace wl {

struct CpuShape {
  std::string name;
  std::string graph;  // canonical text of the shape's graph
  int points = 0;     // number of schedules that are recorded of this shape
  // Micro-kernels only: rows, and vectors in a row, of the register tile that every schedule has. 0: schedules are
  // drawn from the whole space.
  int height = 0, vectors = 0;
  bool seeds = false;    // whether the seeds of the space and of the cost model are recorded before drawn schedules
  size_t pipelined = 0;  // if not 0: the schedules are pipelined_points(), with this many of each kind
};

// Contractions whose operands fit in the first-level cache, one for each micro-kernel that the target's registers hold.
std::vector<CpuShape> micro_kernels(const Target& target);
std::vector<CpuShape> calibration_shapes();
// Returns the shapes to rank. Some have weights in panels of the target's first panel width.
std::vector<CpuShape> ranked_shapes(const Target& target);

}  // namespace wl

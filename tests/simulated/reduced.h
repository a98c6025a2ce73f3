// Kernels of GPU targets on the simulated GPU. A group of any size is lowered for the target at its full shape, then
// shrunk to the smallest group for which the same schedule gives the same instructions apart from numbers. The text of
// the shrunk group's kernel is the one that the target prints, and the simulator's prelude executes it.
#pragma once

#include <string>
#include <vector>

#include "compiler/base/records.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/space.h"

namespace wl::testing {

// Returns a kernel's instructions with all numbers replaced except 0 and 1, followed by the functions that its text
// calls. Kernels with equal skeletons differ only in numbers.
std::string skeleton(const Kernel& kernel, const Machine& machine);

// Returns the machine of a simulated GPU whose waves have as many threads as those of the given GPU.
Machine simulator_of(const Machine& gpu);

// Prints a kernel of a GPU target for the target's simulator, and a kernel of a CPU target for that target itself.
absl::StatusOr<Source> simulated(Kernel kernel, const Machine& machine);

// Runs all blocks of a kernel for the simulated GPU, from the kernel's object at `path`. Returns "", the reason why the
// object cannot be loaded, or the simulator's error.
std::string run_simulated(const std::string& path, const Source& source, const std::vector<void*>& args);

struct Reduced {
  Graph graph;
  std::string plan;
  Source source;  // the kernel's text for the simulated GPU
};
// Fails if the group cannot be lowered, or if its text for the target differs from its text for the simulator.
absl::StatusOr<Reduced> reduce(const Graph& group, const std::string& plan, const Machine& machine);

}  // namespace wl::testing

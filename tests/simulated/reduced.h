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

// Returns a kernel's instructions without numbers other than 0 and 1, and the functions that the kernel's text calls.
std::string skeleton(const Kernel& kernel, const Machine& machine);

// Returns the simulator's row for a GPU target: the row with the same wave size.
Machine simulator_of(const Machine& gpu);

// Prints a kernel of a GPU target for the target's simulator, and a kernel of a CPU target for that target itself.
absl::StatusOr<Source> simulated(Kernel kernel, const Machine& machine);

// Runs all blocks of a kernel for the simulated GPU, from the kernel's object at `path`. Returns "", the reason why the
// object cannot be loaded, or the simulator's error.
std::string run_simulated(const std::string& path, const Source& source, const std::vector<void*>& args);

struct Reduced {
  Graph graph;
  std::string plan;
  Source source;  // the source for the machine that simulator_of() returns
};
// Fails if the group cannot be lowered, or if its text for the target differs from its text for the simulator.
absl::StatusOr<Reduced> reduce(const Graph& group, const std::string& plan, const Machine& machine);

}  // namespace wl::testing

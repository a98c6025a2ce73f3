// Compares what a program computes with the double-precision oracle (docs/numerics.md, "What run --check looks at").
#pragma once

#include <string>
#include <vector>

#include "client/program/executor.h"

namespace wl {

struct OutputCheck {
  std::string name;  // of the output; by steps: of the value
  int step = -1;     // by steps: which
  int samples = 0, wrong = 0;
  double max_error = 0, bound = 0;  // of the sample with the largest error relative to its bound
  int64_t index = 0;                // where
  double expected = 0, found = 0;
  bool operator==(const OutputCheck&) const = default;
};

// Sampled elements of every output against the oracle of the whole graph, after a run. `all_generated`: every input
// came from generate() with this seed; otherwise the oracle reads them from the executor's memory.
absl::StatusOr<std::vector<OutputCheck>> check_outputs(const Executor& executor, uint64_t seed, bool all_generated);

// Runs the program, and compares sampled elements of everything that a step stores with the oracle of that step alone,
// over what the step really read. What a step leaves unwritten is wrong too.
absl::StatusOr<std::vector<OutputCheck>> check_steps(Executor& executor, uint64_t seed);

// About how many elementary operations the oracle of the whole graph needs at most.
double work_of(const Graph& graph);

}  // namespace wl

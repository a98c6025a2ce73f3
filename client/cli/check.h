// Compares the results of a program with the double-precision oracle (docs/numerics.md, "What run --check looks at").
#pragma once

#include <string>
#include <vector>

#include "client/program/executor.h"
#include "compiler/ir/eval.h"

namespace wl {

struct OutputCheck {
  std::string name;  // name of the output or, by steps, of the value
  int step = -1;     // number of the step in a check by steps, otherwise -1
  int samples = 0, wrong = 0;
  double max_error = 0, bound = 0;  // of the sample with the largest error relative to its bound
  int64_t index = 0;                // the element with that error
  double expected = 0, found = 0;
  bool operator==(const OutputCheck&) const = default;
};

// Compares sampled elements of every output with the oracle of the whole graph, after a run. `all_generated`: every
// input came from generate() with this seed; otherwise the oracle reads inputs from the executor's memory.
absl::StatusOr<std::vector<OutputCheck>> check_outputs(const Executor& executor, uint64_t seed, bool all_generated);

// The graph of a program. InvalidArgument: it does not have the program's outputs.
absl::StatusOr<Graph> graph_of(const Program& program);

// Sampled elements of an output.
struct ExpectedOutput {
  std::vector<int64_t> indices;  // row-major
  std::vector<double> bounds;    // how far other values may be from these
  std::string elements;          // in the output's dtype
};
// What the oracle of a program's whole graph expects of every output, in order, for the inputs in the executor's
// memory; without elements that it cannot bound. Nothing is run.
absl::StatusOr<std::vector<ExpectedOutput>> expected_outputs(const Executor& executor, const Graph& graph,
                                                             uint64_t seed);
// The same elements as a run has left them in memory, with bounds of 0.
std::vector<ExpectedOutput> found_outputs(const Executor& executor, const Graph& graph, uint64_t seed);

// Runs the program and compares sampled elements of every stored value with the oracle of its step alone, applied to
// the values that the step really read. An element that a step does not write is an error too.
absl::StatusOr<std::vector<OutputCheck>> check_steps(Executor& executor, uint64_t seed);

// Returns an upper estimate of the elementary operations that the oracle of the whole graph needs.
double work_of(const Graph& graph);

}  // namespace wl

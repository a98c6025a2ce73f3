// Compares the results of a program with the oracle, the double-precision evaluation of its graph (docs/numerics.md,
// "What run --check looks at").
#pragma once

#include <string>
#include <vector>

#include "client/program/executor.h"
#include "compiler/ir/eval.h"

namespace wl {

struct OutputCheck {
  std::string name;  // name of the output or, in a check by steps, of the value that the step computes
  int step = -1;     // index of the checked step, in a check by steps; -1: the whole program is checked
  int samples = 0, wrong = 0;
  // The absolute error, and the bound, of the sample with the largest error relative to its bound.
  double max_error = 0, bound = 0;
  int64_t index = 0;  // row-major index of the sample whose error is max_error
  double expected = 0, found = 0;
  bool operator==(const OutputCheck&) const = default;
};

// Compares sampled elements of every output with the oracle of the whole graph, after a run. `all_generated`: every
// input came from generate() with this seed; otherwise the oracle reads inputs from the executor's memory.
absl::StatusOr<std::vector<OutputCheck>> check_outputs(const Executor& executor, uint64_t seed, bool all_generated);

// Returns the graph of a program. InvalidArgument: the graph has other outputs than the program.
absl::StatusOr<Graph> graph_of(const Program& program);

// Elements of an output, at sampled places.
struct ExpectedOutput {
  std::vector<int64_t> indices;  // row-major indices of the sampled elements
  // For each sampled element, the largest absolute difference that a correct value may have from it.
  std::vector<double> bounds;
  std::string elements;  // bytes of the sampled elements, in the output's dtype
};
// Returns the elements that the oracle of the whole graph expects of every output, in order, for the inputs in the
// executor's memory. Leaves out elements without a finite bound. No kernel is run.
absl::StatusOr<std::vector<ExpectedOutput>> expected_outputs(const Executor& executor, const Graph& graph,
                                                             uint64_t seed);
// Returns the sampled elements that a run has left in memory, with bounds of 0.
std::vector<ExpectedOutput> found_outputs(const Executor& executor, const Graph& graph, uint64_t seed);

// Runs the program step by step, and compares sampled elements of every value that a step stores with the oracle of
// that step alone, applied to the values that the step read. An element that a step does not write is also wrong.
absl::StatusOr<std::vector<OutputCheck>> check_steps(Executor& executor, uint64_t seed);

// Returns an upper estimate of the elementary operations that the oracle of the whole graph needs.
double work_of(const Graph& graph);

}  // namespace wl

// Composes what a Program computes from the graphs of its steps. If the composition is the graph that was tuned, then a
// program whose steps are all right is right as a whole.
#pragma once

#include "client/program/program.h"

namespace wl {

// Returns the steps' graphs joined at the program's buffers, with the inputs of `whole`. InvalidArgument: the steps do
// not fit together.
absl::StatusOr<Graph> compose(const Program& program, const Graph& whole);

// Whether the composition of the steps and `whole` simplify to the same graph. False does not prove that they differ in
// value.
absl::StatusOr<bool> steps_make(const Program& program, const Graph& whole);

}  // namespace wl

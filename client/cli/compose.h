// What a Program computes, put together from what its steps compute. If that is the graph that was asked for, then a
// program whose steps are each right is right as a whole.
#pragma once

#include "client/program/program.h"

namespace wl {

// The steps' graphs, joined at the program's buffers, over the inputs of `whole`. Errors: InvalidArgument when the
// steps do not fit together.
absl::StatusOr<Graph> compose(const Program& program, const Graph& whole);

// Whether the composition of the steps and `whole` become the same graph when both are simplified. False is no proof
// that they differ in value.
absl::StatusOr<bool> steps_make(const Program& program, const Graph& whole);

}  // namespace wl

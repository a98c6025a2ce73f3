// What a Program launches, as the result of the job that it was made of. If the graph that its steps make together is
// the one that was tuned, then a program whose steps are all right is right as a whole.
#pragma once

#include <string>

#include "client/program/program.h"
#include "compiler/base/job.h"

namespace wl {

// Of a result, what compose() and an inspection look at: groups with key, graph, plan and count, steps, buffers,
// inputs, outputs and the device. `report`: of the bundle, as text, which says how large the device is; "": nobody
// knows.
JobResult result_of(const Program& program, const std::string& report = "");

// Whether the composition of the steps and `whole` simplify to the same graph. False does not prove that they differ in
// value.
absl::StatusOr<bool> steps_make(const Program& program, const Graph& whole);

}  // namespace wl

// Converts a Program back to a job's result, and compares the graph that its steps compute together with the whole
// graph: if they are the same, a program whose steps are all correct is correct as a whole.
#pragma once

#include <string>

#include "client/program/program.h"
#include "compiler/base/job.h"

namespace wl {

// Returns those parts of a result that compose() and an inspection read: groups with key, graph, plan and count, steps,
// buffers, inputs, outputs and the device. `report`: the bundle's report as JSON text, which has the device's threads
// and cache sizes; "": these are unknown.
JobResult result_of(const Program& program, const std::string& report = "");

// Whether the composition of the steps and `whole` simplify to the same graph. False does not prove that they differ in
// value.
absl::StatusOr<bool> steps_make(const Program& program, const Graph& whole);

}  // namespace wl

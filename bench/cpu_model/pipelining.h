// The speed-up on a CPU of fetching operands before they are used: the products of bench/gpu_model/alcop.h in f32,
// measured with schedules that read the right operand in place, the same ones with prefetches, and schedules that copy
// it into panels first.
#pragma once

#include <string>
#include <vector>

#include "bench/cpu_model/record.h"

namespace wl {

std::vector<CpuShape> pipelined_shapes();
// Returns schedules of a shape: those that read the right operand in place without prefetches and that the cost model
// expects to be fastest (`shape.pipelined` of them), each followed by the same schedule with every legal prefetch
// distance; then as many schedules that copy the right operand.
std::vector<Point> pipelined_points(const OpenShape& open);
// Returns Markdown from a folder with the samples of all pipelined_shapes(): least times, speed-ups, and bars beside
// those of the paper. InvalidArgument: a shape has no samples.
absl::StatusOr<std::string> pipelining_table(const std::string& folder);

}  // namespace wl

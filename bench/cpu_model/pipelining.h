// What it is worth on a CPU that operands are fetched before they are used: the products of bench/gpu_model/alcop.h in
// f32, measured with schedules that read the right operand in place, the same ones with prefetches, and schedules that
// copy it into panels first.
#pragma once

#include <string>
#include <vector>

#include "bench/cpu_model/record.h"

namespace wl {

std::vector<CpuShape> pipelined_shapes();
// The schedules that the cost model expects to be fastest without prefetches, each with every legal distance of its
// prefetches, then as many of those that copy the right operand.
std::vector<Point> pipelined_points(const OpenShape& open);
// Markdown of a folder that holds the samples of all pipelined_shapes(): least times, speed-ups, and bars beside the
// paper's. Errors: a shape without samples.
absl::StatusOr<std::string> pipelining_table(const std::string& folder);

}  // namespace wl

// The part of measuring that comes before any device time: where a batch runs, its objects, and in which order they are
// tried.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "worker/drivers/cpu/cpu.h"
#include "worker/drivers/messages.h"
#include "worker/measure.h"

namespace wl {

// "cpu", or the name of the GPU that a batch's candidates are for; "none" when it is not in options.gpus.
std::string device_of(const Batch& batch, const MeasureOptions& options);

// The arguments of a batch's problem as a runner gets them, but for the seed.
SetupCommand setup_of(const Batch& batch);

// Compiles every candidate with the compilers of its family; those that GPU judgement rejects are kRejected.
absl::StatusOr<std::vector<Compiled>> compile_batch(const Batch& batch, const MeasureOptions& options,
                                                    const std::string& folder,
                                                    const std::function<void(int done)>& progress);

// Most promising first, by what is known of the code; else as they come.
std::vector<size_t> order_of(const std::vector<Compiled>& compiled);

}  // namespace wl

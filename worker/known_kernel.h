// Tells what is wrong with a machine from what is wrong with candidates: a kernel that is known to be right is measured
// as they are. While that fails, nothing that is measured here says anything about a candidate.
#pragma once

#include "worker/measure.h"

namespace wl {

// Compiles, loads, runs and checks a small kernel as candidates for the device are. Unavailable: it failed; says how,
// and what to do about the machine. Cancelled: as options.cancel says. `prelude`: a text before the kernel's, such as
// that of a candidate; empty for GPUs, whose kernel has its own.
absl::Status known_kernel_works(const Device& device, const MeasureOptions& options, const std::string& prelude = "");

// measure(), whose trials are verdicts on candidates alone: where the known kernel fails, before the first batch
// (`sound`, which is set once it worked) or after a batch in which none is correct or some did not compile, the batch
// is Unavailable and has no trials.
absl::StatusOr<Measured> measure_soundly(const Batch& batch, const Device& device, const MeasureOptions& options,
                                         bool* sound);

}  // namespace wl

// Kernels that are known to be right: what shows that a machine compiles, loads and runs kernels at all, and how fast.
// While they fail, nothing that is measured here says anything about a candidate.
#pragma once

#include <string>
#include <vector>

#include "compiler/base/rates.h"
#include "worker/drivers/cpu/tables.h"
#include "worker/measure.h"

namespace wl {

// A kernel, and what it is checked with.
struct Probe {
  Source source;
  std::vector<BufferSpec> buffers;
  Check check;
  double amount = 0;  // bytes or operations of one run
};

// A kernel of a CPU: its body in C++, in which `V` is a vector of f32, `args` are the buffers and `block` is the number
// of the thread's block. Its grid is the caller's to set.
Source cpu_probe_source(const Device& device, const std::string& entry, const std::string& body);

// Copies memory: far more than the caches have or, if `small`, little, so that all of it takes no time.
Probe copy_probe(const Device& device, bool small);
// Multiplies and adds in registers, as fast as the device can.
Probe multiply_add_probe(const Device& device);

// Compiles, checks and times a probe by measure(), as candidates are. `gpu`: null for the CPU. Errors are those of
// measure().
absl::StatusOr<Trial> measured(const Probe& probe, const Gpus::Gpu* gpu, MeasureOptions options);

// Compiles, loads, runs and checks a small kernel as candidates for the device are. Unavailable: it failed; says how,
// and what to do about the machine. Cancelled: as options.cancel says. `prelude`: a text before the kernel's, such as
// that of a candidate; empty for GPUs, whose kernel has its own.
absl::Status known_kernel_works(const Device& device, const MeasureOptions& options, const std::string& prelude = "");

// measure(), whose trials are verdicts on candidates alone: where the known kernel fails, before the first batch
// (`sound`, which is set once it worked) or after a batch in which none is correct or some did not compile, the batch
// is Unavailable and has no trials.
absl::StatusOr<Measured> measure_soundly(const Batch& batch, const Device& device, const MeasureOptions& options,
                                         bool* sound);

// Times multiply-adds of f32, and reads: of a CPU from memory and from each of its caches, of a GPU, whose copies are
// timed, from memory alone. Takes less than a second on a machine that does nothing else, and at most some seconds for
// each kernel. `options` are those of a batch, and options.gpus has the device if it is a GPU. A memory whose kernel
// fails is left out; the error is that of the multiply-adds, or of measure().
absl::StatusOr<MeasuredRates> measure_rates(const Device& device, const MeasureOptions& options);

const CpuTarget& cpu_row(const Device& device);
// A detail of a device as a number; 0 if it has none.
int64_t device_number(const Device& device, const std::string& name);

}  // namespace wl

// Probes are kernels that are known to be right. They show whether this machine can compile, load and run kernels at
// all, and how fast. While a probe fails, a failed candidate may be the machine's fault.
#pragma once

#include <string>
#include <vector>

#include "compiler/base/rates.h"
#include "worker/drivers/cpu/tables.h"
#include "worker/measure.h"

namespace wl {

// A known kernel, its arguments, and the values with which it is checked.
struct Probe {
  Source source;
  std::vector<BufferSpec> buffers;
  Check check;
  double amount = 0;  // how much one run of the kernel does: number of bytes moved, or of arithmetic operations
};

// Returns a kernel for a CPU with the C++ text `body`, in which `V` is a vector of f32, `args` are the buffers and
// `block` is the number of the block. The kernel's grid is 1 until the caller sets it.
Source cpu_probe_source(const Device& device, const std::string& entry, const std::string& body);

// Returns a probe that copies memory: far more bytes than the caches have or, if `small`, so few that it takes hardly
// any time.
Probe copy_probe(const Device& device, bool small);
// Returns a probe that makes multiply-adds in registers, at the peak rate of the device.
Probe multiply_add_probe(const Device& device);

// Compiles, checks and times a probe by measure(), as candidates are. `gpu`: null for the CPU. Errors are those of
// measure().
absl::StatusOr<Trial> measured(const Probe& probe, const Gpus::Gpu* gpu, MeasureOptions options);

// Compiles, loads, runs and checks a small probe as candidates for the device are. Unavailable: the probe failed; the
// message says how, and what to do about the machine. Cancelled: options.cancel is set. `prelude`: text before the
// kernel, such as the prelude of a candidate; empty for GPUs, whose probe has its own.
absl::Status known_kernel_works(const Device& device, const MeasureOptions& options, const std::string& prelude = "");

// Does what measure() does, but blames no trial for faults of the machine. It runs a known kernel (known_kernel_works)
// before the first batch, and sets `sound` when that has worked; and again after a batch in which no candidate is
// correct or, for CPUs, some did not compile. If the known kernel fails, the whole batch is Unavailable.
absl::StatusOr<Measured> measure_soundly(const Batch& batch, const Device& device, const MeasureOptions& options,
                                         bool* sound);

// Measures the peak rate of f32 multiply-adds and the bandwidth of memory: for a CPU, of reads from memory and from
// each of its caches; for a GPU, of a copy in its memory. Takes less than a second on an idle machine, and at most a
// few seconds for each kernel. `options` are those of a batch; options.gpus has the device if it is a GPU. A memory
// whose kernel fails is left out. Fails if the multiply-adds fail (Unavailable), or as measure() does.
absl::StatusOr<MeasuredRates> measure_rates(const Device& device, const MeasureOptions& options);

// Returns the row of cpu_targets() for the target of a device. The table must have such a row.
const CpuTarget& cpu_row(const Device& device);
// Returns a detail of a device as a number; 0 if it has none.
int64_t device_number(const Device& device, const std::string& name);

}  // namespace wl

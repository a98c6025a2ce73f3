// Kernels that are known to be right: what shows that a machine compiles, loads and runs kernels at all, and how fast.
#pragma once

#include <string>
#include <vector>

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

// Copies memory: far more than the caches have or, if `small`, little, so that all of it takes no time.
Probe copy_probe(const Device& device, bool small);
// Multiplies and adds in registers, as fast as the device can.
Probe multiply_add_probe(const Device& device);

// Compiles, checks and times a probe by measure(), as candidates are. `gpu`: null for the CPU. Errors are those of
// measure().
absl::StatusOr<Trial> measured(const Probe& probe, const Gpus::Gpu* gpu, MeasureOptions options);

const CpuTarget& cpu_row(const Device& device);
// A detail of a device as a number; 0 if it has none.
int64_t device_number(const Device& device, const std::string& name);

}  // namespace wl

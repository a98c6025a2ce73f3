// Kernels as AMD machine code, executed without a GPU: compiled as a worker does, and launched by the driver that opens
// an emulator of AMD's instructions (emulator.py). It fills local memory and registers with a pattern before every
// launch, and runs the waves of a block in the order that it was started with.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/base/records.h"
#include "compiler/ir/graph.h"
#include "compiler/target/target.h"
#include "runtime/gpu_kernel.h"

namespace wl::testing {

// What the emulator executes in less than a second, in instructions of waves. Longer kernels are left out.
inline constexpr int64_t kMostInstructions = 300'000;

class EmulatedDevice {
 public:
  // The device of this process; null when it was not started with the emulator.
  static EmulatedDevice* get();

  const std::string& target() const { return target_; }  // "hip:gfx1100"
  // The row of the target as a worker would describe it, with so few units that small groups keep all of them busy.
  Machine machine() const;
  // Compiles a kernel. `why` receives the compiler's errors.
  absl::StatusOr<std::string> compile(const Source& source) const;

  struct Argument {
    std::string bytes;    // before the launch; afterwards those of an output are what is in it
    bool output = false;  // poisoned as a worker does where `dtype` is given
  };
  // Runs all passes of a kernel once. OutOfRange: one block executes so many instructions that all would execute more
  // than kMostInstructions; the message says how many. DataLoss: it writes beside an argument. Internal: it fails, and
  // then so does all that follows in this process.
  absl::Status run(const Source& source, const std::string& code, std::vector<Argument>& arguments);

  // The number of instructions of the last kernel that ran, or was left out, as one block and the grid tell.
  int64_t instructions() const { return instructions_; }

 private:
  absl::Status launch(const Source& source, const GpuKernel& kernel, const std::vector<GpuBuffer>& buffers,
                      int64_t grid, int64_t passes);
  absl::Status put(const GpuBuffer& buffer, const std::string& bytes) const;

  std::unique_ptr<GpuDevice> device_;
  GpuTimer timer_;
  std::string target_;
  int64_t instructions_ = 0;
};

// Runs a group's kernel with inputs from `seed` and compares every element with the oracle. Returns "" or what is
// wrong. nullopt: it was left out, which is printed.
std::optional<std::string> run_group(EmulatedDevice& device, const Graph& group, const Source& source,
                                     const std::string& plan, uint64_t seed);

}  // namespace wl::testing

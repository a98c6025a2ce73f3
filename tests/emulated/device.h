// Kernels as AMD machine code, executed without a GPU: a kernel is compiled as a worker compiles it, and is launched
// by a driver whose device is an emulator of AMD's instructions (emulator.py). The emulator fills local memory and
// registers with a pattern before every launch, and runs the waves of a block in the order of EMU_ORDER: forward,
// backward or random.
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

// The largest number of wave instructions that a kernel may execute, which takes the emulator less than a second.
// Longer kernels are left out.
inline constexpr int64_t kMostInstructions = 300'000;

class EmulatedDevice {
 public:
  // Returns the device of this process, or null if the process was not started with the emulator.
  static EmulatedDevice* get();

  const std::string& target() const { return target_; }  // the emulated target, e.g. "hip:gfx1100"
  // Returns the row of the target in kTargets, but with so few compute units that small groups keep all of them busy.
  Machine machine() const;
  // Compiles a kernel to a code object. The error OutOfRange means that the kernel is left out, since it spills
  // registers or the emulator would execute it wrongly. Other errors are the compiler's.
  absl::StatusOr<std::string> compile(const Source& source) const;

  struct Argument {
    std::string bytes;    // the argument's contents before the launch and, for an output, after it
    bool output = false;  // whether the argument is an output, whose contents are read back after the launch
  };
  // Runs all passes of a kernel once. Errors: OutOfRange, if all blocks would execute more than kMostInstructions,
  // judging by one block; the message says how many. DataLoss, if the kernel writes outside an argument. Internal, if
  // the launch fails; later launches of this process then fail as well.
  absl::Status run(const Source& source, const std::string& code, std::vector<Argument>& arguments);

  // Returns the number of wave instructions of the last kernel that ran, or that was too long to run: the number of
  // one block, times the blocks of the grid and the passes.
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

// Runs a group's kernel with inputs from `seed` and compares every element with the oracle. Returns "" or the first
// error; nullopt if the kernel was left out, in which case it prints so.
std::optional<std::string> run_group(EmulatedDevice& device, const Graph& group, const Source& source,
                                     const std::string& plan, uint64_t seed);

}  // namespace wl::testing

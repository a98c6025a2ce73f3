// GPU kernels as machine code, made without a GPU: CUDA by NVRTC, which is opened at run time, HIP by clang alone. What
// the compilers say about the code (registers, spills, how wide its accesses are) is there before anything runs.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/base/records.h"

namespace wl {

struct GpuCode {
  std::string binary;                     // a cubin; empty for HIP, which is judged by its assembly
  std::string assembly;                   // PTX, or AMDGPU's
  int registers = 0;                      // of a lane, 32 bits each
  int64_t spill_bytes = 0;                // of a lane, stored and loaded
  int64_t stack_bytes = 0;                // of a lane, in device memory
  int widest_load = 0, widest_store = 0;  // bytes that one access of a lane to device memory moves
  int narrowest_load = 0, narrowest_store = 0;
  bool compare_and_swap = false;  // an atomic became a loop
  double seconds = 0;             // of compiling
};

// "" when this machine can make code for a target ("cuda:sm_90a", "hip:gfx90a"); else what is missing.
std::string gpu_compiler_missing(const std::string& target);

// Unavailable: no compiler here knows the target, and why. InvalidArgument: the first lines of what it said. HIP's
// intermediate files go to `folder`.
absl::StatusOr<GpuCode> compile_gpu(const Source& source, const std::string& folder);

}  // namespace wl

// GPU kernels as machine code, made without a GPU: CUDA by NVRTC, HIP by clang alone or, where clang does not know the
// architecture, by hipRTC; both libraries are opened at run time. What the code is like (registers, spills, how wide
// its accesses are) is there before anything runs. A new family: a file and a case in gpu_code.cpp.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/base/records.h"

namespace wl {

// One kernel of a unit. Occupancy is not filled in: that takes limits (worker/drivers/gpu/code_judge.h).
struct GpuCode : CodeFacts {
  std::string assembly;  // PTX or AMDGPU's; "" where the compiler gives none
};

// Several kernels that were compiled together, which costs a fraction of compiling each.
struct GpuUnit {
  std::string binary;  // cubin or code object, what a driver loads
  std::vector<GpuCode> kernels;
  double seconds = 0;  // of compiling
};

// "" when this machine can make code for a target ("cuda:sm_90a", "hip:gfx90a"); else what is missing.
std::string gpu_compiler_missing(const std::string& target);

// "nvrtc=13.0", "clang=14.0.6", "hiprtc=5.2": what compiles for a family ("cuda", "hip") here; "" when nothing does.
std::string gpu_compiler_version(const std::string& family);

// Sources of one target and prelude, with distinct entries. Unavailable: no compiler here knows the target, and why.
// InvalidArgument: the first lines of what it said. Intermediate files go to `folder`.
absl::StatusOr<GpuUnit> compile_gpu(std::span<const Source> sources, const std::string& folder);

}  // namespace wl

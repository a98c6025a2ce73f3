// Compiles GPU kernels to machine code without a GPU: CUDA by NVRTC; HIP by clang or, if no clang knows the
// architecture, by hipRTC. Both libraries are opened at run time. Registers, spills and access widths are known before
// anything runs. A new GPU family needs a file and a case in gpu/code.cpp.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/base/records.h"

namespace wl {

// One kernel of a translation unit. Its occupancy is not set, since it depends on limits of the device
// (worker/drivers/gpu/code_judge.h).
struct GpuCode : CodeFacts {
  // The kernel as PTX or AMDGPU assembly (disassembled if hipRTC compiled it). Empty: this machine cannot provide it,
  // and the access widths are unknown (0).
  std::string assembly;
};

// Several kernels that were compiled together, which costs much less than compiling each by itself.
struct GpuUnit {
  std::string binary;  // bytes of a cubin or code object, which the driver loads
  std::vector<GpuCode> kernels;
  double seconds = 0;  // wall time of the compilation in seconds
};

// Returns "" if this machine can compile for a target ("cuda:sm_90a", "hip:gfx90a"), otherwise a message about what is
// missing.
std::string gpu_compiler_missing(const std::string& target);

// Returns the compiler of this machine for a target, as "nvrtc=13.0", "clang=22.1.8" or "hiprtc=5.2"; "": there is
// none. For an AMD GPU it is the newest clang on PATH (clang++ or clang++-N) that knows the architecture, otherwise
// hipRTC.
std::string gpu_compiler_version(const std::string& target);

// Returns the options with which NVRTC compiles kernels for a CUDA target, or clang compiles to assembly for a HIP
// target.
std::vector<std::string> gpu_flags(const std::string& target);

// Compiles sources of one target and prelude with distinct entries. A source that calls a library must be alone; its
// text is its object (compiler/base/matmul.h). Intermediate files go to `folder`. Unavailable: no compiler of this
// machine knows the target, and the message says why. InvalidArgument: the first lines of the compiler's errors.
absl::StatusOr<GpuUnit> compile_gpu(std::span<const Source> sources, const std::string& folder);

}  // namespace wl

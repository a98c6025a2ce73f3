// Compiles GPU kernels to machine code without a GPU: CUDA by NVRTC; HIP by clang or, where no clang knows the
// architecture, by hipRTC. Both libraries are opened at run time. Registers, spills and widths of accesses are known
// before anything runs. A new family needs a file and a case in gpu/code.cpp.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/base/records.h"

namespace wl {

// One kernel of a unit. Occupancy is not filled in, since it depends on limits (worker/drivers/gpu/code_judge.h).
struct GpuCode : CodeFacts {
  // PTX, or AMDGPU assembly, of hipRTC's code by disassembling it; "" where nothing on this machine gives any, and then
  // widths of accesses are not known (0).
  std::string assembly;
};

// Several kernels that were compiled together, which costs a fraction of compiling each.
struct GpuUnit {
  std::string binary;  // a cubin or code object, as drivers load it
  std::vector<GpuCode> kernels;
  double seconds = 0;  // seconds that the compilation took
};

// Returns "" when this machine can compile for a target ("cuda:sm_90a", "hip:gfx90a"), otherwise what is missing.
std::string gpu_compiler_missing(const std::string& target);

// Returns the compiler that this machine has for a target, as "nvrtc=13.0", "clang=22.1.8" or "hiprtc=5.2"; "" when
// there is none. For an AMD GPU it is the newest clang on PATH (clang++ or clang++-N) that knows the architecture,
// otherwise hipRTC.
std::string gpu_compiler_version(const std::string& target);

// Returns the options with which NVRTC compiles kernels for a CUDA target, and clang for a HIP target to assembly.
std::vector<std::string> gpu_flags(const std::string& target);

// Compiles sources of one target and prelude with distinct entries; a source with a library is a unit of its own, and
// its text is its object (compiler/base/matmul.h). Intermediate files go to `folder`. Unavailable: no
// compiler on this machine knows the target; the message says why. InvalidArgument: the first lines of the compiler's
// errors.
absl::StatusOr<GpuUnit> compile_gpu(std::span<const Source> sources, const std::string& folder);

}  // namespace wl

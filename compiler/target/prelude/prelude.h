// The texts that go before every generated kernel, embedded at build time by cmake/embed.cmake.
#ifndef WARPLOOM_COMPILER_TARGET_PRELUDE_PRELUDE_H_
#define WARPLOOM_COMPILER_TARGET_PRELUDE_PRELUDE_H_

#include <string_view>

namespace wl {

// C++17 for g++ and clang++, without includes. The kernel's text defines WL_LANES (1, 4, 8 or 16) first; flags:
// -std=c++17 -O2 -ffp-contract=fast -fno-math-errno -fno-trapping-math, never -ffast-math. Static storage.
std::string_view cpu_prelude();

// What follows it for targets with tile registers.
std::string_view cpu_tile_prelude();

// The text before kernels that call oneDNN, in the same C++ and without includes either.
std::string_view onednn_prelude();

// The preludes of GPUs: the target's own half and what they all share. The text before defines WL_LANES (elements of a
// thread's vector: 1, 2, 4, 8 or 16) and WL_WAVE (lanes that run together).
std::string_view cuda_prelude();  // for NVRTC; flags: see cuda.h
std::string_view hip_prelude();   // for clang -x hip -nogpuinc -nogpulib
std::string_view sim_prelude();   // C++17 for g++ and clang++, on a host: a thread is a fiber

}  // namespace wl

#endif  // WARPLOOM_COMPILER_TARGET_PRELUDE_PRELUDE_H_

// A Target is data: limits, vector width, rates. One printer serves all of them; what differs in spelling is a function
// of the target's prelude. A CPU or GPU generation is a row of kTargets.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "compiler/base/records.h"
#include "compiler/base/status.h"

namespace wl {

// What a GPU can do beyond loads, arithmetic and shuffles.
enum GpuFeature : uint32_t {
  kAsyncCopy = 1,     // global -> shared without registers (cp.async, LDS-direct loads)
  kTensorMemory = 2,  // bulk tensor copies (TMA)
  kClusters = 4,      // blocks that share shared memory
  kMmaF16 = 8,        // matrix instructions of one warp, by operand
  kMmaBf16 = 16,
  kMmaF8 = 32,
  kMmaWarpgroup = 64,     // wgmma
  kMmaTensorCore5 = 128,  // tcgen05
  kF64Functions = 256     // exp, log, ... of f64 come with the compiler
};

// Limits of a GPU; wave 0: none. "Unit" is an SM or a CU. Figures are of the generation's largest common part; a worker
// reports those of its own.
struct Gpu {
  int wave = 0;  // lanes that run together
  int block_threads = 0, unit_threads = 0, unit_blocks = 0;
  int lane_registers = 0, unit_registers = 0;  // of 32 bits
  int64_t block_shared = 0, unit_shared = 0;   // bytes; a block's is what can be opted in
  int units = 0;
  int64_t l2_bytes = 0;
  double bytes_per_ns = 0;  // of device memory
  uint32_t features = 0;    // GpuFeature
};

// Of a GPU, what the code of a kernel is judged by.
CodeLimits code_limits(const Gpu& gpu);

struct Target {
  std::string_view name;    // "cpu:avx512", "cuda:sm_90a"
  std::string_view family;  // "cpu", "cuda", "hip", "sim"
  int lanes;                // f32 elements of one vector register; on a GPU of one load of a lane
  int vector_registers;
  bool masked_tails;      // masked loads and stores are one instruction
  bool streaming_stores;  // non-temporal vector stores exist
  // Nominal rates, for ranking only; per thread, elements of f32 or bytes per ns.
  double flops_per_ns;
  double copy_bytes_per_ns;
  double l2_bytes_per_ns;
  Gpu gpu = {};
  bool is_gpu() const { return gpu.wave != 0; }
};

std::span<const Target> targets();  // kTargets
// Error lists the rows there are.
absl::StatusOr<const Target*> target_named(std::string_view name);

// A target row together with the machine that will run it: what lowering and search may look at.
struct Machine {
  const Target* target = nullptr;
  int threads = 1;
  int64_t l1_bytes = 32768, l2_bytes = 1 << 20, l3_bytes = 16 << 20;
  bool gcc = true, clang = false;  // of kernels that are C++ for this machine
  int units = 0;                   // of a GPU: SMs or CUs; 0: as many as the target's row has
  int multiprocessors() const { return units > 0 ? units : target->gpu.units; }
  // Elements of a reduction that a block should have before others share it: what is shared is combined in another
  // pass.
  int64_t part_elements = 1024;
  bool operator==(const Machine&) const = default;
};
absl::StatusOr<Machine> machine_of(const Device& device);

// Text that precedes every kernel whose vectors have so many lanes: defines WL_LANES and includes the target's prelude
// by value.
std::string prelude_text(const Target& target, int lanes);

}  // namespace wl

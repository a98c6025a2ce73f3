// A Target is data: limits, vector width, rates. One printer serves all of them; what is spelled differently is a
// function of the family's prelude. A CPU or GPU generation is a row of kTargets, which has every figure that the
// compiler uses of it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/libraries.h"
#include "compiler/base/records.h"
#include "compiler/base/status.h"

namespace wl {

inline constexpr int64_t kLineBytes = 64;  // of a line of any CPU's caches

// What a target and its compiler do beyond loads, arithmetic and shuffles, where a space or a lowering asks for it.
enum TargetFeature : uint32_t {
  kAsyncCopy = 1,     // copies from global to shared memory without registers (cp.async, LDS-direct loads)
  kClusters = 2,      // blocks that read each other's shared memory
  kF64Functions = 4,  // exp, log, ... of f64 come with the compiler
  // The compiler begins loads early, so that a contraction takes half as many registers again as are counted.
  kEarlyLoads = 8,
  // A wave of 32 multiplies 16x16 by 16x8 elements of 16 bits (mma.sync.m16n8k16), sums in f32, and 16x32 by 32x8
  // bytes.
  kMma16 = 16,
  kTileRegisters = 32,  // a CPU has registers of 16 rows of 64 bytes, and multiplies them as matrices (AMX)
  // AMD's: waves of 64 multiply 16x16 by 16x16 elements of f16, or of bf16, sums in f32 (v_mfma_f32_16x16x16), and
  // waves of 32 elements of both (v_wmma_f32_16x16x16), of which lanes hold whole rows or halves of them.
  kMfmaF16 = 64,
  kMfmaBf16 = 128,
  kWmma = 256,
  kWmmaHalves = 512,
  kMfmaDeep = 2048,    // 16x32 by 32x16 elements of 16 bits at twice the rate (v_mfma_f32_16x16x32)
  kWaveGroups = 1024,  // four waves of 32 multiply 64x16 by 16xn elements of 16 bits in shared memory (wgmma)
  kPhases = 4096,      // copies arrive at objects in shared memory that threads wait for (mbarrier)
};

// Limits of a GPU; wave 0: the target is not a GPU. "Unit" is what the threads of a block share: an SM, a CU, or on
// RDNA a workgroup processor of two CUs. Figures are of the generation's largest common part; a worker reports those of
// its own.
struct Gpu {
  int wave = 0;  // lanes that run together
  int block_threads = 0, unit_threads = 0, unit_blocks = 0;
  int lane_registers = 0, unit_registers = 0;  // of 32 bits
  int64_t block_shared = 0, unit_shared = 0;   // bytes; a block's is what can be opted in
  int units = 0;
  int64_t l2_bytes = 0;
  double bytes_per_ns = 0;  // of device memory
  int banks = 32;           // of shared memory, of 4 bytes each
  // Dies that the units are on, each with an L2 of its own; blocks go to them in turns. With several: the bytes/ns of
  // all L2s together, and the bytes of the cache that lies between them and memory.
  int dies = 1;
  double l2_bytes_per_ns = 0;
  int64_t cache_bytes = 0;
};

// How fast multiply-adds are, as the lowering makes them: without matrix instructions or dot products of words,
// products of floats narrower than f32 are computed in f32. Per thread of a CPU or unit of a GPU.
struct Arithmetic {
  double flops_per_ns = 0;  // of f32; a multiply-add counts as two
  double f64 = 0;           // multiply-adds of f64 for each of f32
  double i32 = 0;           // multiply-adds of i32, and of narrower integers, for each of f32
  // Multiply-adds of dot products of words, of bf16 and of u8 with i8, for each of f32; 0: the target has none.
  double dot_bf16 = 0, dot_i8 = 0;
  // Multiply-adds of matrix instructions for each of f32: of f16 and of bf16 with sums in f32, of u8 with i8; 0: the
  // target has none.
  double matrix_f16 = 0, matrix_bf16 = 0, matrix_i8 = 0;
  double matrix_tf32 = 0;  // of products of f32 that allow it
  // Multiply-adds for each of f32, of products of `a` and `b` whose sums are kept as `sum`.
  double multiply_adds(DType a, DType b, DType sum) const;
  // Those of dot products of words of `a` and `b`; 0: the target has none.
  double dots(DType a, DType b) const;
  // Those of matrix instructions; 0: the target has none for these.
  double matrices(DType a, DType b) const;
};

// What no part of the row exceeds, by any means: a time below is no measurement (floor_ns). Per thread of a CPU or unit
// of a GPU. All 0: times are not judged.
struct Peak {
  double flops_per_ns = 0;                           // of f32; a multiply-add counts as two
  double l1_bytes_per_ns = 0, far_bytes_per_ns = 0;  // far: of any cache or memory beyond L1
  double launch_ns = 0;                              // the least time of a launch that does nothing
};

// The limits that the code of a kernel is judged by.
CodeLimits code_limits(const Gpu& gpu);

struct Target {
  std::string_view name;    // "cpu:avx512", "cuda:sm_90a"
  std::string_view family;  // "cpu", "cuda", "hip", "sim"
  int lanes;                // f32 elements of one vector register; on a GPU of one load of a lane
  int vector_registers;
  bool streaming_stores;  // non-temporal vector stores exist
  // Nominal rates, for ranking only: of a thread of a CPU, of a unit of a GPU.
  Arithmetic arithmetic;
  double copy_bytes_per_ns;
  double l2_bytes_per_ns;
  Peak peak = {};
  Gpu gpu = {};
  uint32_t features = 0;  // TargetFeature
  bool is_gpu() const { return gpu.wave != 0; }
};

std::span<const Target> targets();  // kTargets
// InvalidArgument, listing the rows, when there is no such row.
absl::StatusOr<const Target*> target_named(std::string_view name);
// InvalidArgument, with what may have been meant: no row, nor one of the words cpu, cuda and hip for any row that a
// device is of.
absl::Status check_target(std::string_view name);

// A target row and the machine that will run the kernels: all that lowering and search may know about it.
struct Machine {
  const Target* target = nullptr;
  int threads = 1;
  int64_t l1_bytes = 32768, l2_bytes = 1 << 20, l3_bytes = 16 << 20;
  bool gcc = true, clang = false;    // compilers for kernels that are C++
  const Library* library = nullptr;  // that candidates may call; null: none
  int units = 0;                     // of a GPU; 0: as many as the target's row has
  int multiprocessors() const { return units > 0 ? units : target->gpu.units; }
  // Dies that blocks go to in turns: fewer where a GPU is divided into devices of a part of its units each.
  int dies() const;
  // A reduction is divided among blocks only if each then has at least this many elements: combining the parts takes
  // another pass.
  int64_t part_elements = 1024;
  bool operator==(const Machine&) const = default;
};
absl::StatusOr<Machine> machine_of(const Device& device);

// Columns of the panels in which products find a weight: of the widest micro-kernels that reach the peak, then of
// others, for weights whose columns those do not divide. None on GPUs, whose tiles are wider.
std::vector<int64_t> panel_widths(const Target& target);

// The text that precedes a kernel whose vectors have `lanes` elements: it defines WL_LANES and contains the prelude of
// the target's family.
std::string prelude_text(const Target& target, int lanes);

}  // namespace wl

// Facts about the machines that kernels are compiled for. A Target, a row of kTargets, describes one generation of CPUs
// or GPUs: limits, vector width, rates. Every figure about machines that the compiler uses is in this table. One
// printer of kernel sources serves all targets; the prelude of each family defines what is spelled differently there.
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

inline constexpr int64_t kLineBytes = 64;  // bytes in a cache line of a CPU

// Abilities of a target or its compiler beyond loads, arithmetic and shuffles. Spaces and lowerings test them.
enum TargetFeature : uint32_t {
  kAsyncCopy = 1,     // copies from global to shared memory that bypass registers (cp.async, LDS-direct loads)
  kClusters = 2,      // thread blocks that read each other's shared memory
  kF64Functions = 4,  // the compiler provides f64 functions such as exp and log
  // The target's compiler moves loads so far ahead that a contraction needs 1.5 times as many registers as Warploom
  // counts for it.
  kEarlyLoads = 8,
  // A warp multiplies 16x16 by 16x8 elements of 16 bits (mma.sync.m16n8k16), 16x32 by 32x8 bytes, and 16x8 by 8x8
  // elements of tf32. Sums are kept in f32, those of bytes in i32.
  kMma16 = 16,
  kTileRegisters = 32,  // a CPU multiplies matrices in registers of 16 rows of 64 bytes (AMX)
  // AMD's matrix instructions for 16x16 by 16x16 elements. Sums are kept in f32, those of bytes in i32. MFMA, for waves
  // of 64, multiplies f16 or bf16 (v_mfma_f32_16x16x16). WMMA, for waves of 32, multiplies f16, bf16 and bytes
  // (v_wmma_f32_16x16x16); a lane holds a whole row of a factor (kWmma) or half a row (kWmmaHalves).
  kMfmaF16 = 64,
  kMfmaBf16 = 128,
  kWmma = 256,
  kWmmaHalves = 512,
  // MFMA of 16x32 by 32x16 elements of 16 bits, twice as fast as 16x16 by 16x16 (v_mfma_f32_16x16x32).
  kMfmaDeep = 2048,
  kWaveGroups = 1024,  // four warps multiply 64x16 by 16xn elements of 16 bits, or bytes, in shared memory (wgmma)
  kPhases = 4096,      // barrier objects in shared memory, to which copies signal that they are complete (mbarrier)
};

// Limits of a GPU; wave 0: the target is not a GPU. A unit is the processor that runs a thread block: an SM, a CU, or
// on RDNA a workgroup processor of two CUs. Figures are those of the largest common model of the generation; a worker
// reports the figures of its own GPU.
struct Gpu {
  int wave = 0;  // threads that run in lockstep: the size of a warp or wavefront
  int block_threads = 0, unit_threads = 0, unit_blocks = 0;
  int lane_registers = 0, unit_registers = 0;  // numbers of 32-bit registers: the most of one thread; all of a unit
  // Bytes of shared memory: the most that a block can request explicitly, and all of a unit.
  int64_t block_shared = 0, unit_shared = 0;
  int units = 0;
  int64_t l2_bytes = 0;
  double bytes_per_ns = 0;  // bandwidth of device memory
  int banks = 32;           // number of banks of shared memory, each 4 bytes wide
  // Number of dies, each with its own L2; consecutive blocks run on different dies in turn. The next two fields matter
  // only with several dies: the bytes/ns of all L2s together, and the bytes of the cache between the L2s and memory.
  int dies = 1;
  double l2_bytes_per_ns = 0;
  int64_t cache_bytes = 0;
};

// Nominal rates of multiply-adds in generated kernels, per CPU thread or per unit (multiprocessor) of a GPU. Unless a
// kernel uses matrix instructions or dot products of words, it computes products of floats narrower than f32 in f32.
struct Arithmetic {
  double flops_per_ns = 0;  // rate of f32 operations; a multiply-add counts as two
  // Each further rate is relative to f32: how many multiply-adds take the time of one multiply-add of f32; 0: the
  // target has no such instruction.
  double f64 = 0;
  double i32 = 0;                   // rate of i32, also valid for narrower integers
  double dot_bf16 = 0, dot_i8 = 0;  // rates of dot products of words of bf16, and of words of u8 with i8
  // Rates of matrix instructions: for f16 and bf16 with sums in f32, and for u8 with i8 with sums in i32 (matrix_i8).
  double matrix_f16 = 0, matrix_bf16 = 0, matrix_i8 = 0;
  double matrix_tf32 = 0;  // rate of matrix instructions on f32 that may be rounded to tf32
  // Returns the relative rate of products of `a` and `b` whose sums have dtype `sum`, without matrix instructions.
  double multiply_adds(DType a, DType b, DType sum) const;
  // Returns the relative rate of dot products of words of `a` and `b`; 0: the target has none.
  double dots(DType a, DType b) const;
  // Returns the relative rate of matrix instructions; 0: the target has none for these dtypes.
  double matrices(DType a, DType b) const;
};

// Rates that no CPU or GPU of the row exceeds, per CPU thread or unit of a GPU. A measured time that implies a higher
// rate counts as an error (floor_ns in compiler/model/roofline.h). All 0: no time is rejected.
struct Peak {
  double flops_per_ns = 0;                           // rate of f32 operations; a multiply-add counts as two
  double l1_bytes_per_ns = 0, far_bytes_per_ns = 0;  // bandwidth of L1; bandwidth of all caches beyond L1 and of memory
  double launch_ns = 0;                              // shortest time of an empty launch
};

// Returns the limits against which a kernel's compiled code is checked.
CodeLimits code_limits(const Gpu& gpu);

struct Target {
  std::string_view name;    // the target's name, such as "cpu:avx512" or "cuda:sm_90a"
  std::string_view family;  // the family whose prelude its kernels have: "cpu", "cuda", "hip" or "sim"
  int lanes;                // f32 elements in a vector register of a CPU, or in the widest load of one GPU thread
  int vector_registers;
  bool streaming_stores;  // whether non-temporal vector stores exist
  // Nominal rates per CPU thread or per unit of a GPU, used only to rank kernels: arithmetic, the bandwidth of memory
  // (copy_bytes_per_ns) and that of L2.
  Arithmetic arithmetic;
  double copy_bytes_per_ns;
  double l2_bytes_per_ns;
  Peak peak = {};
  Gpu gpu = {};
  uint32_t features = 0;  // the bits of TargetFeature that the target has
  bool is_gpu() const { return gpu.wave != 0; }
};

std::span<const Target> targets();  // all rows of the table of targets, kTargets
// Returns the row of this name. InvalidArgument, with a suggestion and a list of the rows: there is none.
absl::StatusOr<const Target*> target_named(std::string_view name);
// Returns OK for the name of a row, and for "cpu", "cuda" and "hip", which stand for the target of any device of that
// family; else the error of target_named().
absl::Status check_target(std::string_view name);

// A target and the sizes of the machine that will run the kernels: all that lowering and search may know about it.
struct Machine {
  const Target* target = nullptr;
  int threads = 1;
  int64_t l1_bytes = 32768, l2_bytes = 1 << 20, l3_bytes = 16 << 20;
  bool gcc = true, clang = false;    // whether the machine has these compilers for kernels in C++
  const Library* library = nullptr;  // library of kernels, such as oneDNN, that candidates may call; null: none
  int units = 0;                     // number of the GPU's multiprocessors; 0: as many as kTargets says
  int multiprocessors() const { return units > 0 ? units : target->gpu.units; }
  // Returns the number of dies that run blocks in turn. It is smaller than the number in the target's row if the
  // device is only a part of a partitioned GPU.
  int dies() const;
  // The least number of elements for each block if a reduction is divided among blocks. With fewer elements, the
  // further pass that combines the partial results of the blocks would cost more than it saves.
  int64_t part_elements = 1024;
  bool operator==(const Machine&) const = default;
};
// Returns what a GPU's compiler is told where a kernel must leave room for `blocks` blocks of `threads` threads on a
// multiprocessor: on CUDA and in the simulator that number, on HIP the number of waves on a SIMD unit. A block is
// spread over four SIMD units: those of a CU if waves have 64 lanes, otherwise those of the two CUs in RDNA's workgroup
// processor. `wave`: the lanes of a wave.
int64_t residency_bound(std::string_view target, int64_t wave, int64_t blocks, int64_t threads);
// Returns the machine of a device. InvalidArgument: the table of targets has no row for the device's target.
absl::StatusOr<Machine> machine_of(const Device& device);

// Returns the widths, in columns, of the panels into which weights of products are packed. The first width is that of
// the widest micro-kernels that reach the peak; the others serve weights whose number of columns is no multiple of it.
// Empty for GPUs, whose tiles are wider.
std::vector<int64_t> panel_widths(const Target& target);

// Returns the text that precedes a kernel whose vectors have `lanes` elements: the definition of WL_LANES and the
// prelude of the target's family.
std::string prelude_text(const Target& target, int lanes);

}  // namespace wl

// The cost of a contraction's kernel on a CPU, without running it: a sum of terms. Each term is an amount that follows
// from the kernel (steps of micro-kernels, bytes that enter a cache, vectors packed, ...) times its unit cost on the
// machine. Unit costs are measured: calibrate() fits them, none below zero, to timed schedules (at most 200 in
// bench/cpu_model.py), whose shapes may differ from those that are ranked later. Without a calibration, unit costs
// follow from the target's nominal rates (target.h). Amounts are those of the first thread, which has at least as much
// work as any other. To add a term, add a value of CpuTerm, a row of the table in cpu_cost.cpp, and the lines of
// cpu_work() that count it.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/target/target.h"

namespace wl {

enum CpuTerm : int {
  kMicro,       // ns of all micro-kernels' steps, from the table CpuCost::step_ns
  kCall,        // number of calls of micro-kernels
  kEntry,       // number of times that a micro-kernel's innermost loop is entered again within a call
  kEpilogue,    // issue slots of vector operations, other than multiply-adds, on operands and results
  kPackLane,    // number of elements that are copied to scratch one by one, or gathered
  kPackRow,     // number of rows that are copied to scratch
  kFromL2,      // ns in which micro-kernels wait for data from the L2, at the target's nominal rate
  kFromL3,      // bytes of operands that enter the L2 while micro-kernels run
  kPackFromL3,  // bytes that enter the L2 while operands are packed
  kFromMemory,  // bytes that enter the L3
  kMemoryRuns,  // number of contiguous runs of the cache lines that enter the L3
  kMasked,      // number of cache lines from memory that masked loads read; masked loads train no prefetcher
  kLaunch,      // 1 for a launch of more than one thread, else 0
  kCpuTerms
};
struct CpuTermInfo {
  std::string_view name, unit;
};
const std::array<CpuTermInfo, kCpuTerms>& cpu_terms();

struct MicroKernel {
  std::string compiler;
  int height = 0, vectors = 0;
  double step_ns = 0;  // ns of a step of matrix instructions, by the target's rates; 0: a step of vector instructions
  int hints = 0;       // number of prefetches in a step, each of which takes the place of a load
  double product = 1;  // time of one multiplication of vectors, as a multiple of that of an f32 multiply-add
  bool operator==(const MicroKernel&) const = default;
  bool operator<(const MicroKernel& other) const {
    return std::tie(compiler, height, vectors, step_ns, hints, product) <
           std::tie(other.compiler, other.height, other.vectors, other.step_ns, other.hints, other.product);
  }
};

// The amounts of one launch. The term kMicro has no amount; instead, `micro` has the number of steps of each
// micro-kernel. The amount of kFromL2 includes the time in which micro-kernels compute; cpu_ns() subtracts that time.
struct CpuWork {
  std::array<double, kCpuTerms> amount = {};
  std::vector<std::pair<MicroKernel, double>> micro;
};
// Counts the amounts of a CPU kernel of class contract. For CPU kernels of other classes only the memory terms are
// meaningful.
CpuWork cpu_work(const Kernel& kernel, const Machine& machine);

// The unit costs of one machine.
struct CpuCost {
  std::string device;                     // fingerprint of the device; empty: the costs follow from nominal rates
  std::array<double, kCpuTerms> ns = {};  // ns per unit of each term
  std::map<MicroKernel, double> step_ns;  // ns of a step of each micro-kernel that was measured
  double fma_per_ns = 1;                  // vector multiply-adds per ns, for micro-kernels that were not measured
  bool operator==(const CpuCost&) const = default;
};
CpuCost default_cpu_cost(const Machine& machine);
// Returns the predicted time of one launch in ns.
double cpu_ns(const CpuWork& work, const CpuCost& cost);

struct CpuSample {
  CpuWork work;
  double ns = 0;
  bool micro = false;  // whether the sample is one for step_ns: a single micro-kernel with its data in the L1
};
// Fits non-negative unit costs by least squares of the relative error over all samples that are not `micro`. The costs
// of default_cpu_cost() are a prior with the weight of a thousandth of a sample, so a term that occurs in no sample
// keeps its default cost.
CpuCost calibrate(const std::vector<CpuSample>& samples, const Machine& machine, std::string device);

// Convert costs to text, which has a version and then one cost in each line, with six digits of each number, and back.
std::string print(const CpuCost& cost);
absl::StatusOr<CpuCost> parse_cpu_cost(std::string_view text);

}  // namespace wl

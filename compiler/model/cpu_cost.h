// The cost of a contraction's kernel on a CPU, without running it: a sum of terms, each an amount that follows from the
// kernel (steps of micro-kernels, bytes that enter a cache, vectors packed, ...) times its unit cost on the machine.
// Unit costs are measured: calibrate() fits them, none below zero, to at most 200 timed schedules, whose shapes need
// not be those that are ranked later. Without a calibration they follow from the target's row. Amounts are those of the
// first thread, which has at least as much work as any other. To add a term: a value of CpuTerm, a row of the table in
// cpu_cost.cpp, and the lines of cpu_work() that count it.
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
  kMicro,       // ns of all micro-kernel steps, by the table of step costs
  kCall,        // calls of a micro-kernel
  kEntry,       // entries of a micro-kernel's innermost loop after the first of a call
  kEpilogue,    // issue slots of vector work other than multiply-adds: on operands, and on results
  kPackLane,    // elements copied to scratch one by one, or gathered
  kPackRow,     // rows copied to scratch
  kFromL2,      // ns that micro-kernels wait for the second cache, by the rate of the target's row
  kFromL3,      // bytes of operands that enter the second cache during micro-kernels
  kPackFromL3,  // bytes that enter the second cache during packing
  kFromMemory,  // bytes that enter the third cache
  kMemoryRuns,  // runs of contiguous lines among those of kFromMemory
  kMasked,      // lines of kFromMemory that only masked loads read, which train no prefetcher
  kLaunch,      // launches of more than one thread
  kCpuTerms
};
struct CpuTermInfo {
  std::string_view name, unit;
};
const std::array<CpuTermInfo, kCpuTerms>& cpu_terms();

struct MicroKernel {
  std::string compiler;
  int height = 0, vectors = 0;
  double step_ns = 0;  // ns of a step of matrix instructions, by the target's row; 0: a step of vectors
  int hints = 0;       // lines that a step prefetches, each of which takes the place of a load
  double product = 1;  // time of one product of vectors (of words, for example), in f32 multiply-adds
  bool operator==(const MicroKernel&) const = default;
  bool operator<(const MicroKernel& other) const {
    return std::tie(compiler, height, vectors, step_ns, hints, product) <
           std::tie(other.compiler, other.height, other.vectors, other.step_ns, other.hints, other.product);
  }
};

// The amounts of one launch. The amount of kMicro is given by `micro`, the steps of each micro-kernel. That of kFromL2
// includes the time that micro-kernels hide, which cpu_ns() subtracts.
struct CpuWork {
  std::array<double, kCpuTerms> amount = {};
  std::vector<std::pair<MicroKernel, double>> micro;
};
// Counts the amounts of a kernel of class contract without lanes. For kernels of other classes only the memory terms
// are meaningful.
CpuWork cpu_work(const Kernel& kernel, const Machine& machine);

// The unit costs of a machine.
struct CpuCost {
  std::string device;                     // fingerprint; empty: the costs follow from a target's row
  std::array<double, kCpuTerms> ns = {};  // per unit of each term
  std::map<MicroKernel, double> step_ns;  // measured micro-kernels; others follow from fma_per_ns
  double fma_per_ns = 1;                  // vector multiply-adds, for micro-kernels that are not in step_ns
  bool operator==(const CpuCost&) const = default;
};
CpuCost default_cpu_cost(const Machine& machine);
// The predicted ns of one launch.
double cpu_ns(const CpuWork& work, const CpuCost& cost);

struct CpuSample {
  CpuWork work;
  double ns = 0;
  bool micro = false;  // for step_ns: a single micro-kernel with its data in the first cache
};
// Fits non-negative unit costs by least squares of the relative error over all samples that are not `micro`. The costs
// of the target's row have the weight of a thousandth of a sample, so that a term which occurs in no sample keeps its
// cost.
CpuCost calibrate(const std::vector<CpuSample>& samples, const Machine& machine, std::string device);

// Text with a version, one cost in a line; parse_cpu_cost(print(c)) == c.
std::string print(const CpuCost& cost);
absl::StatusOr<CpuCost> parse_cpu_cost(std::string_view text);

}  // namespace wl

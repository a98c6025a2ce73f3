// What a contraction's kernel costs on a CPU, without running it: a sum of physical terms, each an amount that follows
// from the kernel (steps of micro-kernels, bytes that enter a cache, vectors packed, ...) times what one of it costs on
// the machine. The costs are measured: calibrate() fits them, none below zero, to at most 200 timed schedules of
// shapes that need not be those ranked later; without a calibration they follow from the target's row. Amounts are of
// the first thread, which has no less to do than any other. To add a term: a row of kCpuTerms and the lines of
// cpu_work() that fill it in.
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
  kMicro,       // ns that the table of micro-kernels says
  kCall,        // calls of a micro-kernel
  kEntry,       // entries of its innermost loop, beyond the first of a call
  kEpilogue,    // issue slots of vectors computed after the contraction
  kPackLane,    // elements copied to scratch one by one, or gathered
  kPackRow,     // rows copied to scratch
  kFromL2,      // ns that the row's second cache needs to feed micro-kernels, beyond those that they compute
  kFromL3,      // bytes of operands that enter the second cache in micro-kernels
  kPackFromL3,  // bytes that enter it while packing
  kFromMemory,  // bytes that enter the third cache
  kMemoryRuns,  // stretches of neighbouring lines that are read into it
  kMasked,      // lines that masked loads alone read into it: no prefetcher learns from those
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
  bool operator==(const MicroKernel&) const = default;
  bool operator<(const MicroKernel& other) const {
    return std::tie(compiler, height, vectors) < std::tie(other.compiler, other.height, other.vectors);
  }
};

// Amounts of one launch. Those of kMicro are `micro`: steps by micro-kernel; of kFromL2, what micro-kernels would hide
// included.
struct CpuWork {
  std::array<double, kCpuTerms> amount = {};
  std::vector<std::pair<MicroKernel, double>> micro;
};
// Of a kernel of class contract without lanes; of others, what its moves cost.
CpuWork cpu_work(const Kernel& kernel, const Machine& machine);

// Costs of a machine.
struct CpuCost {
  std::string device;                     // fingerprint; empty: of a target's row
  std::array<double, kCpuTerms> ns = {};  // per unit of each term
  std::map<MicroKernel, double> step_ns;  // measured; others follow from the row
  double fma_per_ns = 1;                  // vector multiply-adds, for micro-kernels that are not in step_ns
  bool operator==(const CpuCost&) const = default;
};
CpuCost default_cpu_cost(const Machine& machine);
// Predicted ns of one launch.
double cpu_ns(const CpuWork& work, const CpuCost& cost);

struct CpuSample {
  CpuWork work;
  double ns = 0;
  bool micro = false;  // measured for step_ns: one micro-kernel on data in the first cache
};
// Least squares of the relative error of all samples that are not `micro`, none of the costs negative. The target's row
// counts like a thousandth of a sample for each term, so that a term which no sample has keeps its cost.
CpuCost calibrate(const std::vector<CpuSample>& samples, const Machine& machine, std::string device);

// Versioned text, one cost a line; parse(print(c)) == c.
std::string print(const CpuCost& cost);
absl::StatusOr<CpuCost> parse_cpu_cost(std::string_view text);

}  // namespace wl

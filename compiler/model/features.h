// What a learned model may look at: a fixed list of numbers that follow from a kernel and the machine, and from nothing
// else: how much each level of memory moves against what it must, how often data is used again, how full the machine
// is, how wide vectors and how deep pipelines are, what the arithmetic is made of. All are logarithms, ratios or small
// counts, so that groups of different sizes teach each other. Amounts are counted in closed form, without running
// anything: loops at their first turn, the blocks of one thread or multiprocessor. To add a feature: a row of
// kFeatures, and one more in kFeaturesVersion, which tells older trained models apart.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/target/target.h"

namespace wl {

inline constexpr int kFeaturesVersion = 1;

struct Features {
  std::string kind;           // family of the target and class of the loops, "cpu/rows": whose kernels are alike
  std::vector<float> values;  // as feature_names()
  // What the analytic models say: cpu_cost of contractions on CPUs; of GPUs the dearest of device memory, shared memory
  // and issue slots. 0: none of them ranks such kernels.
  double analytic_ns = 0;
};
const std::vector<std::string_view>& feature_names();  // kFeatures
Features features_of(const Kernel& kernel, const Machine& machine);

}  // namespace wl

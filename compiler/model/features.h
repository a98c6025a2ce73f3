// The inputs of the learned ranker (ranker.h): a fixed list of numbers that follow from a kernel and the machine alone.
// They say how many bytes each level of memory moves compared with the least possible, how often data is reused, how
// full the machine is, how wide vectors and how deep pipelines are, and which arithmetic there is. All are logarithms,
// ratios or small counts, so that what is learned from groups of one size holds for others. Amounts are counted in
// closed form, without running anything: bounds and offsets are taken at the first iteration of every loop, for the
// blocks of one thread or multiprocessor. To add a feature, add a row to kFeatures (features.cpp) and increment
// kFeaturesVersion, by which models for another list of features are recognised.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/target/target.h"

namespace wl {

inline constexpr int kFeaturesVersion = 1;

struct Features {
  std::string kind;           // family of the target and class of the kernel, such as "cpu/rows"; each kind has a model
  std::vector<float> values;  // the value of each feature, in the order of feature_names()
  // The time of a launch in ns that an analytic model predicts: for contractions on CPUs the model of cpu_cost.h, for
  // loop nests on GPUs that of gpu_cost.h; for other kernels on GPUs the cost of a launch plus the longest of the times
  // for device memory, shared memory and issue slots. It is 0 if no analytic model ranks kernels of this kind.
  double analytic_ns = 0;
};
const std::vector<std::string_view>& feature_names();  // the names in the table kFeatures (features.cpp)
Features features_of(const Kernel& kernel, const Machine& machine);

}  // namespace wl

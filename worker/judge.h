// Whether what a candidate computed is right. The rule of docs/numerics.md, applied to sampled elements.
#pragma once

#include <string>
#include <vector>

#include "compiler/base/records.h"

namespace wl {

struct Verdict {
  bool right = true;
  double max_error = 0;  // of the sample with the largest error/bound
  double bound = 0;      // of that same sample
  std::string message;   // of the worst sample, when wrong: argument, index, expected, got, bound
};

// `got[i]` belongs to `check.samples[i]`; fewer values than samples: the first ones are judged.
Verdict judge(const Problem& problem, const Check& check, const std::vector<double>& got);

// "(3, 17)" for the row-major position `index` of an array of `shape`.
std::string coordinates(const std::vector<int64_t>& shape, int64_t index);

}  // namespace wl

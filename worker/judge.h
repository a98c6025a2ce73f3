// Judges whether a candidate's results are right, by the rule of docs/numerics.md applied to sampled elements.
#pragma once

#include <string>
#include <vector>

#include "compiler/base/records.h"

namespace wl {

struct Verdict {
  bool right = true;
  double max_error = 0;  // absolute error of the sample whose error is the largest multiple of its bound
  double bound = 0;      // bound of that sample
  std::string message;   // if the result is wrong: argument, index, expected, got and bound of the worst sample
};

// Judges the values `got`: got[i] is the value of the element check.samples[i]. If there are fewer values than samples,
// only as many samples are judged.
Verdict judge(const Problem& problem, const Check& check, const std::vector<double>& got);

// Returns "(3, 17)" for the row-major position `index` of an array of `shape`.
std::string coordinates(const std::vector<int64_t>& shape, int64_t index);

}  // namespace wl

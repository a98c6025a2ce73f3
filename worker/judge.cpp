#include "worker/judge.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace wl {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Returns the absolute error of the value `got`. It is 0 for equal infinities and for two NaNs; it is infinity if only
// one of the two values is NaN, or if they differ and one of them is infinite.
double error_of(const Check::Sample& sample, double got) {
  if (std::isnan(sample.expected)) return std::isnan(got) ? 0 : kInfinity;
  if (std::isnan(got)) return kInfinity;
  if (std::isinf(sample.expected) || std::isinf(got)) return sample.expected == got ? 0 : kInfinity;
  return std::fabs(got - sample.expected);
}

// Returns error / bound, which is more than 1 for a wrong value.
double ratio_of(double error, double bound) {
  if (error == 0) return 0;
  return bound > 0 ? error / bound : kInfinity;
}

}  // namespace

std::string coordinates(const std::vector<int64_t>& shape, int64_t index) {
  std::vector<int64_t> place(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    const int64_t extent = std::max<int64_t>(shape[d], 1);
    place[d] = index % extent;
    index /= extent;
  }
  return absl::StrCat("(", absl::StrJoin(place, ", "), ")");
}

Verdict judge(const Problem& problem, const Check& check, const std::vector<double>& got) {
  Verdict verdict;
  double worst = -1;
  int wrong = 0;
  const size_t n = std::min(check.samples.size(), got.size());
  for (size_t i = 0; i < n; ++i) {
    const Check::Sample& sample = check.samples[i];
    const double error = error_of(sample, got[i]);
    const double ratio = ratio_of(error, sample.bound);
    if (!(ratio <= 1)) ++wrong;
    if (ratio <= worst) continue;
    worst = ratio;
    verdict.max_error = error;
    verdict.bound = sample.bound;
    if (ratio <= 1) continue;
    const BufferSpec& spec = problem.buffers[static_cast<size_t>(sample.buffer)];
    verdict.right = false;
    verdict.message = absl::StrFormat("%s%s: expected %.9g, got %.9g, bound %.3g", spec.name,
                                      coordinates(spec.shape, sample.index), sample.expected, got[i], sample.bound);
  }
  if (!verdict.right) absl::StrAppend(&verdict.message, "; ", wrong, " of ", n, " samples are wrong");
  return verdict;
}

}  // namespace wl

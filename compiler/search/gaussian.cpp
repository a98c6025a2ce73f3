#include "compiler/search/gaussian.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "compiler/search/proposal.h"

namespace wl {
namespace {

constexpr double kWeights[] = {0.05, 0.3, 1, 3, 8};  // per axis: how much its whole range matters
constexpr double kNoises[] = {1e-3, 1e-2, 1e-1};     // of standardised log times
constexpr int kSweeps = 2;                           // over the axes, while fitting
constexpr size_t kMostFitted = 96;                   // trials that weights are fitted to
constexpr size_t kMostTrials = 256;                  // trials that beliefs rest on: the fastest
constexpr double kApart = 0.5;                       // part of a distance that any two values have
constexpr size_t kFewValues = 4;                     // of an axis whose alignment is not looked at
constexpr double kTail = 1.0;                        // slow times are drawn in beyond so many deviations

// Values far apart in size are far apart in effect, whatever order an axis lists them in.
std::vector<double> distances(const Axis& axis) {
  const size_t n = axis.values.size();
  std::vector<size_t> rank(n);
  for (size_t i = 0; i < n; ++i)
    rank[i] = static_cast<size_t>(
        std::count_if(axis.values.begin(), axis.values.end(), [&](int64_t v) { return v < axis.values[i]; }));
  std::vector<double> out(n * n, 0.0);
  for (size_t a = 0; a < n; ++a)
    for (size_t b = 0; b < n; ++b)
      if (a != b) {
        const double apart = std::fabs(static_cast<double>(rank[a]) - static_cast<double>(rank[b]));
        out[a * n + b] = kApart + (1 - kApart) * apart / static_cast<double>(n - 1);
      }
  return out;
}

// How many times a value can be halved: alignment, which often counts for more than size.
std::vector<double> alignments(const Axis& axis) {
  std::vector<double> out;
  double most = 1;
  for (int64_t value : axis.values) {
    out.push_back(value <= 0 ? 0 : std::countr_zero(static_cast<uint64_t>(value)));
    most = std::max(most, out.back());
  }
  for (double& value : out) value /= most;
  return out;
}

// Whether alignment says something about an axis that the order of its values does not.
bool alignment_counts(const Axis& axis) {
  const std::vector<double> of = alignments(axis);
  for (size_t a = 0; a < of.size(); ++a)
    for (size_t b = 0; b < of.size(); ++b)
      if (axis.values[a] > 0 && axis.values[a] < axis.values[b] && of[a] > of[b]) return of.size() > kFewValues;
  return false;
}

}  // namespace

Gaussian::Gaussian(const Space& space, const std::vector<Observed>& trials) {
  const auto add = [&](size_t axis, std::vector<double> distance) {
    axis_.push_back(axis);
    values_.push_back(space.axes[axis].values.size());
    distance_.push_back(std::move(distance));
  };
  for (size_t i = 0; i < space.axes.size(); ++i) {
    const Axis& axis = space.axes[i];
    if (axis.values.size() < 2) continue;
    add(i, distances(axis));
    if (!alignment_counts(axis)) continue;
    const std::vector<double> of = alignments(axis);
    std::vector<double> apart;
    for (double a : of)
      for (double b : of) apart.push_back(std::fabs(a - b));
    add(i, std::move(apart));
  }
  weight_.assign(distance_.size(), 1.0);
  std::vector<const Observed*> order;
  double slowest = 0;
  for (const Observed& trial : trials) {
    order.push_back(&trial);
    if (trial.correct) slowest = std::max(slowest, trial.ns);
  }
  std::stable_sort(order.begin(), order.end(), [](const Observed* a, const Observed* b) {
    return a->correct != b->correct ? a->correct : a->correct && a->ns < b->ns;
  });
  if (order.size() > kMostTrials) order.resize(kMostTrials);
  for (const Observed* trial : order) {
    points_.push_back(trial->point);
    y_.push_back(std::log(trial->correct ? trial->ns : slowest));
  }
  // Around the median and in units of the faster half's spread: how slow a slow point is does not matter.
  const double middle = y_[y_.size() / 2];
  double spread = 0;
  for (size_t i = 0; i <= y_.size() / 2; ++i) spread += (middle - y_[i]) * (middle - y_[i]);
  spread = std::max(1e-6, std::sqrt(spread / static_cast<double>(y_.size() / 2 + 1)));
  for (double& y : y_) {
    y = (y - middle) / spread;
    if (y > kTail) y = kTail + std::log1p(y - kTail) * 0.5;
  }
  for (size_t i = 0; i < order.size(); ++i)
    if (!order[i]->correct) y_[i] += blame(*order[i]) - 1;
  best_ = y_[0];

  // Fitted to the fastest and, evenly, to the others.
  std::vector<size_t> some(points_.size());
  std::iota(some.begin(), some.end(), size_t{0});
  if (some.size() > kMostFitted) {
    std::vector<size_t> kept(some.begin(), some.begin() + kMostFitted / 2);
    const size_t rest = some.size() - kept.size(), wanted = kMostFitted - kept.size();
    for (size_t i = 0; i < wanted; ++i) kept.push_back(kMostFitted / 2 + i * rest / wanted);
    some = std::move(kept);
  }
  double likelihood = fit(some);
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (size_t axis = 0; axis < weight_.size(); ++axis) {
      double chosen = weight_[axis];
      for (double weight : kWeights) {
        if (weight == chosen) continue;
        weight_[axis] = weight;
        if (const double other = fit(some); other > likelihood) {
          likelihood = other;
          chosen = weight;
        }
      }
      weight_[axis] = chosen;
    }
    double chosen = noise_;
    for (double noise : kNoises) {
      if (noise == chosen) continue;
      noise_ = noise;
      if (const double other = fit(some); other > likelihood) {
        likelihood = other;
        chosen = noise;
      }
    }
    noise_ = chosen;
  }
  std::vector<size_t> all(points_.size());
  std::iota(all.begin(), all.end(), size_t{0});
  (void)fit(all);
}

double Gaussian::kernel(const Point& a, const Point& b) const {
  double sum = 0;
  for (size_t i = 0; i < axis_.size(); ++i) {
    const int from = a[axis_[i]], to = b[axis_[i]];
    if (from != to) sum += weight_[i] * distance_[i][static_cast<size_t>(from) * values_[i] + static_cast<size_t>(to)];
  }
  return std::exp(-sum);
}

double Gaussian::fit(const std::vector<size_t>& which) {
  const size_t n = which.size();
  factor_.assign(n * n, 0.0);
  solution_.assign(n, 0.0);
  double likelihood = 0;
  for (size_t i = 0; i < n; ++i) {
    double* row = &factor_[i * n];
    for (size_t j = 0; j <= i; ++j) {
      const double* other = &factor_[j * n];
      double sum = i == j ? 1 + noise_ : kernel(points_[which[i]], points_[which[j]]);
      for (size_t k = 0; k < j; ++k) sum -= row[k] * other[k];
      row[j] = i == j ? std::sqrt(std::max(sum, 1e-9)) : sum / other[j];
    }
    double sum = y_[which[i]];
    for (size_t k = 0; k < i; ++k) sum -= row[k] * solution_[k];
    solution_[i] = sum / row[i];
    likelihood -= 0.5 * solution_[i] * solution_[i] + std::log(row[i]);
  }
  return likelihood;
}

Gaussian::Belief::Belief(const Gaussian& process, const std::vector<Point>& points)
    : process_(process), points_(points), mean_(points.size(), 0.0), variance_(points.size(), 1.0) {
  const size_t n = process.points_.size();
  solved_.assign(n, std::vector<double>(points.size()));
  for (size_t i = 0; i < n; ++i) {
    const double* row = &process.factor_[i * n];
    std::vector<double>& of = solved_[i];
    for (size_t p = 0; p < points.size(); ++p) of[p] = process.kernel(process.points_[i], points[p]);
    for (size_t k = 0; k < i; ++k) {
      const double factor = row[k];
      const std::vector<double>& before = solved_[k];
      for (size_t p = 0; p < points.size(); ++p) of[p] -= factor * before[p];
    }
    for (size_t p = 0; p < points.size(); ++p) {
      of[p] /= row[i];
      mean_[p] += of[p] * process.solution_[i];
      variance_[p] -= of[p] * of[p];
    }
  }
}

double Gaussian::Belief::improvement(size_t i) const {
  const double deviation = std::sqrt(std::max(variance_[i], 1e-9));
  const double z = (process_.best_ - mean_[i]) / deviation;
  return deviation * (z * 0.5 * std::erfc(-z * 0.7071067811865476) + 0.3989422804014327 * std::exp(-0.5 * z * z));
}

void Gaussian::Belief::assume(size_t i) {
  // As expected: the means stay as they are.
  std::vector<double> row(points_.size());
  const double pivot = std::sqrt(std::max(variance_[i], 0.0) + process_.noise_);
  for (size_t p = 0; p < points_.size(); ++p) {
    double sum = process_.kernel(points_[i], points_[p]);
    for (const std::vector<double>& of : solved_) sum -= of[i] * of[p];
    row[p] = sum / pivot;
  }
  for (size_t p = 0; p < points_.size(); ++p) variance_[p] -= row[p] * row[p];
  solved_.push_back(std::move(row));
}

}  // namespace wl

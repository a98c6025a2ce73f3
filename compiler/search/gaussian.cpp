#include "compiler/search/gaussian.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "compiler/search/proposal.h"

namespace wl {
namespace {

constexpr double kWeights[] = {0.05, 0.3, 1, 3, 8};  // values that are tried for the weight of each feature's distances
constexpr double kNoises[] = {1e-3, 1e-2, 1e-1};     // variances that are tried for the noise of standardised log times
constexpr int kSweeps = 2;                           // number of passes over all features while weights are fitted
constexpr size_t kMostFitted = 64;                   // maximum number of trials to which weights are fitted
constexpr size_t kMostTrials = 256;  // maximum number of trials, the fastest, from which the posterior is computed
constexpr double kApart = 0.5;       // the least distance of two different values of an axis
constexpr size_t kFewValues = 4;     // an axis with more values than this may have alignment as a further feature
// This factor times (blame() - 1) is added to the standardised time of a failed trial.
constexpr double kBlame = 2.0;
constexpr double kTail = 1.0;  // standardised times above this value are compressed logarithmically

// Returns the matrix of distances (0 to 1) between the values of an axis. They depend on the ranks of the values by
// size, not on their order on the axis.
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

// Returns the alignment of each value: how often the value can be halved, as a share of the largest such number on the
// axis. Alignment often matters more than size.
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

// Whether alignment is a feature of an axis: the axis has more than kFewValues values, and some value is better aligned
// than a larger one.
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
  take(trials);
  fit_weights();
  std::vector<size_t> all(points_.size());
  std::iota(all.begin(), all.end(), size_t{0});
  (void)factorise(all, exponents_of(all));
}

// Sets points_ (fastest first) and y_ (the standardised logarithms of their times) from the trials.
void Gaussian::take(const std::vector<Observed>& trials) {
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
  // Times are centred at the median. Their unit (a deviation) is the spread of the faster half, so that slow points
  // matter little.
  const double middle = y_[y_.size() / 2];
  double spread = 0;
  for (size_t i = 0; i <= y_.size() / 2; ++i) spread += (middle - y_[i]) * (middle - y_[i]);
  spread = std::max(1e-6, std::sqrt(spread / static_cast<double>(y_.size() / 2 + 1)));
  for (size_t i = 0; i < y_.size(); ++i) {
    y_[i] = (y_[i] - middle) / spread;
    if (y_[i] > kTail) y_[i] = kTail + std::log1p(y_[i] - kTail) * 0.5;
    if (!order[i]->correct) y_[i] += kBlame * (blame(*order[i]) - 1);
  }
  best_ = y_[0];
}

// Fits the weights and the noise to the fastest trials, and to a sample of the others at even intervals.
void Gaussian::fit_weights() {
  std::vector<size_t> some(points_.size());
  std::iota(some.begin(), some.end(), size_t{0});
  if (some.size() > kMostFitted) {
    const size_t rest = some.size() - kMostFitted / 2, wanted = kMostFitted - kMostFitted / 2;
    some.resize(kMostFitted / 2);
    for (size_t i = 0; i < wanted; ++i) some.push_back(kMostFitted / 2 + i * rest / wanted);
  }
  const size_t n = some.size();
  std::vector<double> exponents = exponents_of(some), other(n * n);
  double likelihood = factorise(some, exponents);
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (size_t part = 0; part < weight_.size(); ++part) {
      const double old = weight_[part];
      std::vector<double> apart(n * n);
      for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < i; ++j) apart[i * n + j] = distance(part, points_[some[i]], points_[some[j]]);
      double chosen = old;
      for (double weight : kWeights) {
        if (weight == old) continue;
        for (size_t i = 0; i < n * n; ++i) other[i] = exponents[i] + (weight - old) * apart[i];
        if (const double now = factorise(some, other); now > likelihood) {
          likelihood = now;
          chosen = weight;
        }
      }
      weight_[part] = chosen;
      for (size_t i = 0; i < n * n; ++i) exponents[i] += (chosen - old) * apart[i];
    }
    double chosen = noise_;
    for (double noise : kNoises) {
      noise_ = noise;
      if (const double now = factorise(some, exponents); now > likelihood) {
        likelihood = now;
        chosen = noise;
      }
    }
    noise_ = chosen;
  }
}

double Gaussian::distance(size_t part, const Point& a, const Point& b) const {
  const int from = a[axis_[part]], to = b[axis_[part]];
  return distance_[part][static_cast<size_t>(from) * values_[part] + static_cast<size_t>(to)];
}

double Gaussian::exponent(const Point& a, const Point& b) const {
  double sum = 0;
  for (size_t part = 0; part < axis_.size(); ++part) sum += weight_[part] * distance(part, a, b);
  return sum;
}

std::vector<double> Gaussian::exponents_of(const std::vector<size_t>& which) const {
  const size_t n = which.size();
  std::vector<double> out(n * n);
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < i; ++j) out[i * n + j] = exponent(points_[which[i]], points_[which[j]]);
  return out;
}

double Gaussian::factorise(const std::vector<size_t>& which, const std::vector<double>& exponents) {
  const size_t n = which.size();
  factor_.assign(n * n, 0.0);
  solution_.assign(n, 0.0);
  double likelihood = 0;
  for (size_t i = 0; i < n; ++i) {
    double* row = &factor_[i * n];
    for (size_t j = 0; j <= i; ++j) {
      const double* other = &factor_[j * n];
      double sum = i == j ? 1 + noise_ : std::exp(-exponents[i * n + j]);
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
    for (size_t p = 0; p < points.size(); ++p) of[p] = std::exp(-process.exponent(process.points_[i], points[p]));
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
  // The means of all points stay the same, since the point is assumed to have taken its expected time.
  std::vector<double> row(points_.size());
  const double pivot = std::sqrt(std::max(variance_[i], 0.0) + process_.noise_);
  for (size_t p = 0; p < points_.size(); ++p) {
    double sum = std::exp(-process_.exponent(points_[i], points_[p]));
    for (const std::vector<double>& of : solved_) sum -= of[i] * of[p];
    row[p] = sum / pivot;
  }
  for (size_t p = 0; p < points_.size(); ++p) variance_[p] -= row[p] * row[p];
  solved_.push_back(std::move(row));
}

}  // namespace wl

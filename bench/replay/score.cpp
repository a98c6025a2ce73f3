#include "bench/replay/score.h"

#include <algorithm>
#include <cmath>

namespace wl {
namespace {

constexpr double kCutoff = 0.95;
constexpr int kPoints = 50;
constexpr int kMaxTrials = 4096;

std::vector<double> correct_times(const Recording& recording) {
  std::vector<double> times;
  for (const auto& [point, result] : recording.results)
    if (result.correct) times.push_back(result.ns);
  std::sort(times.begin(), times.end());
  return times;
}

}  // namespace

Curve random_curve(const Recording& recording, int trials) {
  const std::vector<double> times = correct_times(recording);
  const auto n = static_cast<double>(recording.results.size());
  Curve curve;
  for (int t = 1; t <= trials; ++t) {
    // `missed` is the probability that t draws out of n miss all of the i best times: prod (n - t - j) / (n - j).
    double missed = 1, expected = 0;
    for (size_t i = 0; i < times.size(); ++i) {
      const double next = missed * std::max(0.0, n - t - static_cast<double>(i)) / (n - static_cast<double>(i));
      expected += (missed - next) * times[i];
      missed = next;
    }
    curve.push_back(expected + missed * times.back());
  }
  return curve;
}

int methodology_budget(const Recording& recording) {
  const std::vector<double> times = correct_times(recording);
  const double median = times[times.size() / 2];
  const double goal = median - kCutoff * (median - times.front());
  const auto most = static_cast<int>(std::min<size_t>(recording.results.size(), kMaxTrials));
  const Curve curve = random_curve(recording, most);
  const auto at = std::find_if(curve.begin(), curve.end(), [&](double ns) { return ns <= goal; });
  return std::max(1, static_cast<int>(at - curve.begin()) + (at == curve.end() ? 0 : 1));
}

double methodology_score(const Recording& recording, const Curve& curve) {
  const int budget = std::min(methodology_budget(recording), static_cast<int>(curve.size()));
  const Curve random = random_curve(recording, budget);
  double sum = 0;
  int counted = 0;
  for (int i = 1; i <= kPoints; ++i) {
    const auto at = static_cast<size_t>(std::max(0, (i * budget + kPoints - 1) / kPoints - 1));
    if (random[at] <= recording.best_ns) continue;
    sum += (random[at] - curve[at]) / (random[at] - recording.best_ns);
    ++counted;
  }
  return counted == 0 ? 0 : sum / counted;
}

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += std::log(value);
  return values.empty() ? 0 : std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace wl

// The strategy `tpe_local`: the tree-structured Parzen estimator (Bergstra et al., 2011) over categorical axes. The
// values of good trials make one density, the values of all other trials a second one. Candidates are drawn from the
// first density and from the neighbours of local optima, and the candidate with the largest ratio of the two densities
// is proposed. After that it counts as a bad trial, so that the points of a batch are spread out.
#include <algorithm>
#include <cmath>

#include "compiler/search/proposal.h"

namespace wl {
namespace {

constexpr size_t kTpeStart = 8;       // the number of correct trials that are needed for meaningful densities
constexpr double kGood = 0.2;         // share of the correct trials that count as good: the fastest ones
constexpr int kCandidates = 48;       // number of candidates drawn from the good density for each proposed point
constexpr size_t kLocal = 3;          // number of local optima whose neighbours are candidates too
constexpr int kTpeExploreEvery = 10;  // on average, one in this many proposed points is random
constexpr double kTpePrior = 0.5;     // the count that every value of an axis has before any trial is added

// A probability distribution over points: the product of an independent distribution for each axis.
class Density {
 public:
  explicit Density(const Space& space) {
    for (const Axis& axis : space.axes) counts_.emplace_back(axis.values.size(), kTpePrior);
  }
  void add(const Point& point, double weight = 1) {
    for (size_t i = 0; i < point.size(); ++i) counts_[i][point[i]] += weight;
  }
  double log_of(const Point& point) const {
    double sum = 0;
    for (size_t i = 0; i < point.size(); ++i) sum += std::log(counts_[i][point[i]] / total(i));
    return sum;
  }
  Point draw(Sequence& random) const {
    Point point(counts_.size());
    for (size_t i = 0; i < counts_.size(); ++i) {
      double at = random.unit() * total(i);
      int value = 0;
      while (value + 1 < static_cast<int>(counts_[i].size()) && at >= counts_[i][value]) at -= counts_[i][value++];
      point[i] = value;
    }
    return point;
  }

 private:
  double total(size_t axis) const {
    double sum = 0;
    for (double count : counts_[axis]) sum += count;
    return sum;
  }
  std::vector<std::vector<double>> counts_;
};

}  // namespace

void offer_tpe(Proposal& proposal, int count) {
  const std::vector<const Observed*> ranked = proposal.ranked();
  if (ranked.size() < kTpeStart) return proposal.offer_randoms(count);
  Density good(proposal.space()), bad(proposal.space());
  const size_t best = std::max<size_t>(3, static_cast<size_t>(std::ceil(kGood * static_cast<double>(ranked.size()))));
  for (size_t i = 0; i < ranked.size(); ++i)
    (i < best ? good : bad)
        .add(ranked[i]->point, i < best ? 1 + static_cast<double>(best - i) / static_cast<double>(best) : 1);
  for (const Observed& trial : proposal.trials())
    if (!trial.correct) bad.add(trial.point, blame(trial));
  for (const Point& asked : proposal.points()) bad.add(asked);

  std::vector<Point> local;
  for (const Observed* optimum : proposal.optima(kLocal))
    for (bool steps_only : {true, false})
      for (Point& point : proposal.neighbours(optimum->point, steps_only))
        if (proposal.is_new(point)) local.push_back(std::move(point));

  while (count > 0 && !proposal.full()) {
    if (proposal.random().below(kTpeExploreEvery) == 0) {
      if (!proposal.offer_random()) return;
      --count;
      continue;
    }
    std::vector<Point> candidates = local;
    for (int i = 0; i < kCandidates; ++i) candidates.push_back(good.draw(proposal.random()));
    const Point* chosen = nullptr;
    double score = 0;
    for (const Point& point : candidates) {
      if (!proposal.is_new(point) || !proposal.space().is_legal(point)) continue;
      const double ratio = good.log_of(point) - bad.log_of(point);
      if (chosen == nullptr || ratio > score) {
        chosen = &point;
        score = ratio;
      }
    }
    if (chosen == nullptr ? !proposal.offer_random() : !proposal.offer(*chosen)) return;
    bad.add(proposal.points().back());
    --count;
  }
}

std::vector<Point> propose_tpe_local(const Space& space, const std::vector<Observed>& trials, int n, uint64_t seed) {
  Proposal proposal(space, trials, n, seed);
  if (trials.empty()) offer_seeds(proposal, n);
  offer_tpe(proposal, n);
  proposal.offer_randoms(proposal.missing());
  return proposal.take();
}

}  // namespace wl

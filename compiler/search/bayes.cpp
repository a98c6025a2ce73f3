// The strategy `bayes`: Bayesian optimisation. Among some hundred candidates (random points and neighbours of the best
// points) it proposes those with the largest expected improvement under a Gaussian process. Each point of a batch is
// chosen as if the points before it had been tried.
#include <algorithm>
#include <set>

#include "compiler/search/gaussian.h"
#include "compiler/search/proposal.h"

namespace wl {
namespace {

constexpr size_t kBayesStart = 12;  // number of trials that the Gaussian process needs; with fewer, `ranked` proposes
constexpr int kBayesRandom = 600;   // number of random points among the candidates
constexpr size_t kAround = 6;       // number of fastest points, and of local optima, whose neighbours are candidates

}  // namespace

void offer_bayes(Proposal& proposal, int count) {
  const std::vector<const Observed*> ranked = proposal.ranked();
  if (ranked.empty() || proposal.trials().size() < kBayesStart) return offer_ranked(proposal, count);
  std::vector<const Observed*> centres(ranked.begin(), ranked.begin() + std::min(kAround, ranked.size()));
  for (const Observed* optimum : proposal.optima(kAround)) centres.push_back(optimum);
  std::set<Point> candidates;
  for (const Observed* centre : centres)
    for (bool steps_only : {true, false})
      for (Point& point : proposal.neighbours(centre->point, steps_only))
        if (proposal.is_new(point)) candidates.insert(std::move(point));
  for (Point& point : proposal.some_legal(kBayesRandom)) candidates.insert(std::move(point));

  const std::vector<Point> points(candidates.begin(), candidates.end());
  const Gaussian process(proposal.space(), proposal.trials());
  Gaussian::Belief belief(process, points);
  while (count > 0 && !proposal.full()) {
    size_t chosen = points.size();
    double best = -1;
    for (size_t i = 0; i < points.size(); ++i) {
      if (!proposal.is_new(points[i])) continue;
      if (const double gain = belief.improvement(i); gain > best) {
        best = gain;
        chosen = i;
      }
    }
    if (chosen == points.size()) return;
    belief.assume(chosen);
    if (proposal.offer(points[chosen])) --count;
  }
}

std::vector<Point> propose_bayes(const Space& space, const std::vector<Observed>& trials, int n, uint64_t seed) {
  Proposal proposal(space, trials, n, seed);
  if (trials.empty()) offer_seeds(proposal, n);
  offer_bayes(proposal, n);
  proposal.offer_randoms(proposal.missing());
  return proposal.take();
}

}  // namespace wl

// The strategy `genetic`: a genetic search whose population is the fastest trials. For each axis, a child has the value
// of one of its two parents; some axes mutate to another value, mostly a neighbouring one.
#include <algorithm>

#include "compiler/search/proposal.h"

namespace wl {
namespace {

constexpr size_t kPopulation = 16;  // the number of trials in the population, which are the fastest correct ones
constexpr int kTournament = 3;      // number of trials that are drawn to choose a parent, which is the fastest of them
constexpr int kTries = 64;          // maximum number of children that are made for each point that is wanted
// On average, one in this many mutations leads to any value of the axis, the others to a neighbouring value.
constexpr int kFarEvery = 3;

}  // namespace

void offer_genetic(Proposal& proposal, int count) {
  const std::vector<const Observed*> ranked = proposal.ranked();
  if (ranked.size() < 2) return proposal.offer_randoms(count);
  Sequence& random = proposal.random();
  const auto population = static_cast<int>(std::min(kPopulation, ranked.size()));
  const auto parent = [&]() -> const Point& {
    int best = population;
    for (int i = 0; i < kTournament; ++i) best = std::min(best, random.below(population));
    return ranked[static_cast<size_t>(best)]->point;
  };
  const std::vector<Axis>& axes = proposal.space().axes;
  for (int tries = kTries * count; tries > 0 && count > 0 && !proposal.full(); --tries) {
    const Point &mother = parent(), &father = parent();
    Point child = mother;
    for (size_t i = 0; i < child.size(); ++i) {
      const auto values = static_cast<int>(axes[i].values.size());
      if (random.below(2) == 0) child[i] = father[i];
      if (values < 2 || random.below(static_cast<int>(axes.size())) != 0) continue;
      child[i] = random.below(kFarEvery) == 0 ? random.below(values)
                                              : std::clamp(child[i] + (random.below(2) == 0 ? 1 : -1), 0, values - 1);
    }
    if (proposal.offer(child)) --count;
  }
}

std::vector<Point> propose_genetic(const Space& space, const std::vector<Observed>& trials, int n, uint64_t seed) {
  Proposal proposal(space, trials, n, seed);
  if (trials.empty()) offer_seeds(proposal, n);
  offer_genetic(proposal, n);
  proposal.offer_randoms(proposal.missing());
  return proposal.take();
}

}  // namespace wl

// The strategy `hill_climb`: best-first hill climbing with restarts. It proposes untried neighbours of the fastest
// point; neighbours that are one step away along an axis come first. One proposal in kOtherEvery is instead a neighbour
// of another local optimum of the trials, so that a promising random restart is improved even while it is slower than
// the best point. One proposal in kRestartEvery is a random restart.
#include "compiler/search/proposal.h"

namespace wl {
namespace {

constexpr int kRestartEvery = 8;
constexpr size_t kOptima = 4;  // the number of local optima, besides the fastest point, whose neighbours are proposed
// On average, one in this many proposals is a neighbour of a local optimum other than the fastest point.
constexpr int kOtherEvery = 3;

}  // namespace

void offer_climb(Proposal& proposal, int count) {
  Sequence& random = proposal.random();
  // Returns the untried neighbours of a trial, farthest first, since points are taken from the list's end.
  const auto around = [&](const Observed& from) {
    std::vector<Point> points;
    for (bool steps_only : {false, true}) {
      std::vector<Point> some = proposal.neighbours(from.point, steps_only);
      random.shuffle(some);
      for (Point& point : some)
        if (proposal.is_new(point)) points.push_back(std::move(point));
    }
    return points;
  };
  std::vector<std::vector<Point>> others;
  const std::vector<const Observed*> optima = proposal.optima(kOptima + 1);
  for (size_t i = 1; i < optima.size(); ++i) others.push_back(around(*optima[i]));
  size_t turn = 0;
  for (const Observed* from : proposal.ranked()) {
    for (std::vector<Point> near = around(*from); !near.empty() && count > 0 && !proposal.full();) {
      if (random.below(kRestartEvery) == 0) {
        if (proposal.offer_random()) --count;
        continue;
      }
      std::vector<Point>* of = &near;
      if (!others.empty() && random.below(kOtherEvery) == 0) of = &others[turn++ % others.size()];
      if (of->empty()) of = &near;
      if (proposal.offer(of->back())) --count;
      of->pop_back();
    }
    if (count <= 0 || proposal.full()) return;
  }
}

std::vector<Point> propose_hill_climb(const Space& space, const std::vector<Observed>& trials, int n, uint64_t seed) {
  Proposal proposal(space, trials, n, seed);
  if (proposal.ranked().empty()) offer_seeds(proposal, n);
  offer_climb(proposal, n);
  proposal.offer_randoms(proposal.missing());
  return proposal.take();
}

}  // namespace wl

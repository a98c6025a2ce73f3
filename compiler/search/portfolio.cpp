// The strategy `portfolio` combines several strategies: it proposes the analytic seeds first, and then one part from
// hill_climb and three parts from bayes.
#include "compiler/search/proposal.h"

namespace wl {

std::vector<Point> propose_portfolio(const Space& space, const std::vector<Observed>& trials, int n, uint64_t seed) {
  Proposal proposal(space, trials, n, seed);
  offer_seeds(proposal, n);
  const int rest = proposal.missing();
  offer_climb(proposal, (rest + 2) / 4);
  offer_bayes(proposal, proposal.missing());
  proposal.offer_randoms(proposal.missing());
  return proposal.take();
}

}  // namespace wl

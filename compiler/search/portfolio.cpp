// The strategy `portfolio` combines others: it proposes the analytic seeds first, and after them points of `bayes` and
// `hill_climb`, three parts to one.
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

#include "compiler/search/strategy.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "compiler/search/proposal.h"

namespace wl {

void offer_seeds(Proposal& proposal, int count) {
  for (const Point& seed : proposal.space().seeds)
    if (count > 0 && proposal.offer(seed)) --count;
}

namespace {

void fill_randomly(Proposal& proposal) {
  proposal.offer_randoms(proposal.missing());
}

std::vector<Point> propose_random(const Space& space, const std::vector<Observed>& trials, int n, uint64_t seed) {
  Proposal proposal(space, trials, n, seed);
  fill_randomly(proposal);
  return proposal.take();
}

std::vector<Point> propose_exhaustive(const Space& space, const std::vector<Observed>& trials, int n, uint64_t seed) {
  Proposal proposal(space, trials, n, seed);
  space.enumerate([&](const Point& point) {
    proposal.offer(point);
    return !proposal.full();
  });
  return proposal.take();
}

std::vector<Point> propose_hill_climb(const Space& space, const std::vector<Observed>& trials, int n, uint64_t seed) {
  Proposal proposal(space, trials, n, seed);
  if (proposal.ranked().empty()) offer_seeds(proposal, n);
  offer_climb(proposal, n);
  fill_randomly(proposal);
  return proposal.take();
}

std::vector<Point> propose_tpe_local(const Space& space, const std::vector<Observed>& trials, int n, uint64_t seed) {
  Proposal proposal(space, trials, n, seed);
  if (trials.empty()) offer_seeds(proposal, n);
  offer_tpe(proposal, n);
  fill_randomly(proposal);
  return proposal.take();
}

std::vector<Point> propose_genetic(const Space& space, const std::vector<Observed>& trials, int n, uint64_t seed) {
  Proposal proposal(space, trials, n, seed);
  if (trials.empty()) offer_seeds(proposal, n);
  offer_genetic(proposal, n);
  fill_randomly(proposal);
  return proposal.take();
}

std::vector<Point> propose_bayes(const Space& space, const std::vector<Observed>& trials, int n, uint64_t seed) {
  Proposal proposal(space, trials, n, seed);
  if (trials.empty()) offer_seeds(proposal, n);
  offer_bayes(proposal, n);
  fill_randomly(proposal);
  return proposal.take();
}

std::vector<Point> propose_ranked(const Space& space, const std::vector<Observed>& trials, int n, uint64_t seed) {
  Proposal proposal(space, trials, n, seed);
  offer_ranked(proposal, trials.empty() ? n : (n + 1) / 2);
  offer_climb(proposal, proposal.missing());
  fill_randomly(proposal);
  return proposal.take();
}

std::vector<Point> propose_portfolio(const Space& space, const std::vector<Observed>& trials, int n, uint64_t seed) {
  Proposal proposal(space, trials, n, seed);
  offer_seeds(proposal, n);
  const int rest = proposal.missing();
  offer_climb(proposal, (rest + 2) / 4);
  offer_bayes(proposal, proposal.missing());
  fill_randomly(proposal);
  return proposal.take();
}

constexpr Strategy kStrategies[] = {
    {"random", "uniform over the legal points", propose_random},
    {"hill_climb", "neighbours of the best points and of other local optima, with random restarts", propose_hill_climb},
    {"tpe_local", "tree-structured Parzen estimator over the axes, with moves around the best points",
     propose_tpe_local},
    {"genetic", "children of the fastest trials, with mutations", propose_genetic},
    {"bayes", "expected improvement under a Gaussian process over the axes", propose_bayes},
    {"ranked", "what the learned cost model likes best (without one at random), in turn with hill_climb",
     propose_ranked},
    {"portfolio", "the analytic seeds, then three parts bayes and one part hill_climb", propose_portfolio},
    {"exhaustive", "every legal point in order", propose_exhaustive},
};

}  // namespace

std::span<const Strategy> strategies() {
  return kStrategies;
}

absl::StatusOr<const Strategy*> strategy_named(std::string_view name) {
  for (const Strategy& row : kStrategies)
    if (row.name == name) return &row;
  return invalid("unknown strategy \"", name,
                 "\"; known: ", absl::StrJoin(kStrategies, ", ", [](std::string* out, const Strategy& row) {
                   out->append(row.name);
                 }));
}

}  // namespace wl

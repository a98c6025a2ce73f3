#include "compiler/search/strategy.h"

#include "absl/strings/str_join.h"
#include "compiler/base/suggest.h"
#include "compiler/search/proposal.h"

namespace wl {

void offer_seeds(Proposal& proposal, int count) {
  for (const Point& seed : proposal.space().seeds)
    if (count > 0 && proposal.offer(seed)) --count;
}

namespace {

// Maximum number of points that `exhaustive` looks at, which takes a second or two.
constexpr uint64_t kMostWalked = 2'000'000;

constexpr Strategy kStrategies[] = {
#define WL_STRATEGY(name, says) {#name, says, propose_##name},
#include "compiler/search/strategies.def"
#undef WL_STRATEGY
};

}  // namespace

std::vector<Point> propose_random(const Space& space, const std::vector<Observed>& trials, int n, uint64_t seed) {
  Proposal proposal(space, trials, n, seed);
  proposal.offer_randoms(proposal.missing());
  return proposal.take();
}

std::vector<Point> propose_exhaustive(const Space& space, const std::vector<Observed>& trials, int n, uint64_t seed) {
  Proposal proposal(space, trials, n, seed);
  space.enumerate(
      [&](const Point& point) {
        proposal.offer(point);
        return !proposal.full();
      },
      kMostWalked);
  return proposal.take();
}

std::span<const Strategy> strategies() {
  return kStrategies;
}

absl::StatusOr<const Strategy*> strategy_named(std::string_view name) {
  for (const Strategy& row : kStrategies)
    if (row.name == name) return &row;
  return invalid("unknown strategy \"", name, "\"", suggestion_of(name, kStrategies),
                 "; known: ", absl::StrJoin(kStrategies, ", ", [](std::string* out, const Strategy& row) {
                   out->append(row.name);
                 }));
}

}  // namespace wl

// The strategy `ranked` proposes the points that the learned cost model expects to be fastest, out of some hundred
// candidates: random points and neighbours of the fastest trials. If there are too few such trials, seeds and their
// neighbours are candidates too. Points of a batch differ in at least kRankedApart axes as long as possible, because a
// model that is wrong about one point is also wrong about its neighbours.
#include <algorithm>
#include <set>

#include "compiler/search/proposal.h"

namespace wl {
namespace {

constexpr int kRankedRandom = 192;      // the number of random points among the candidates
constexpr size_t kCentres = 3;          // maximum number of points whose neighbours are candidates
constexpr int kRankedApart = 2;         // least number of axes in which points of a batch differ, as long as possible
constexpr int kRankedExploreEvery = 8;  // on average, one in this many proposed points is random

}  // namespace

void offer_ranked(Proposal& proposal, int count) {
  const Space& space = proposal.space();
  if (!space.expected_log_ns) return proposal.offer_randoms(count);
  std::vector<Point> centres;
  for (const Observed* optimum : proposal.optima(kCentres)) centres.push_back(optimum->point);
  for (const Point& seed : space.seeds)
    if (centres.size() < kCentres && space.is_legal(seed)) centres.push_back(seed);
  std::set<Point> candidates(centres.begin(), centres.end());
  for (const Point& centre : centres)
    for (bool steps_only : {true, false})
      for (Point& point : proposal.neighbours(centre, steps_only)) candidates.insert(std::move(point));
  for (Point& point : proposal.some_legal(kRankedRandom)) candidates.insert(std::move(point));

  std::vector<std::pair<double, Point>> order;
  for (const Point& point : candidates)
    if (proposal.is_new(point)) order.emplace_back(space.expected_log_ns(point), point);
  std::sort(order.begin(), order.end());
  const size_t before = proposal.points().size();
  for (int apart_by : {kRankedApart, 0})
    for (const auto& [expected, point] : order) {
      if (count <= 0 || proposal.full()) return;
      const auto& taken = proposal.points();
      if (std::any_of(taken.begin() + static_cast<std::ptrdiff_t>(before), taken.end(),
                      [&, &p = point](const Point& other) { return apart(p, other) < apart_by; }))
        continue;
      const bool explore = proposal.random().below(kRankedExploreEvery) == 0;
      if (explore ? proposal.offer_random() : proposal.offer(point)) --count;
    }
}

std::vector<Point> propose_ranked(const Space& space, const std::vector<Observed>& trials, int n, uint64_t seed) {
  Proposal proposal(space, trials, n, seed);
  offer_ranked(proposal, trials.empty() ? n : (n + 1) / 2);
  offer_climb(proposal, proposal.missing());
  proposal.offer_randoms(proposal.missing());
  return proposal.take();
}

}  // namespace wl

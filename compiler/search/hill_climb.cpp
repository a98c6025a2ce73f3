// Best-first climbing: unseen neighbours of the fastest point, one step along an axis before any other value of it.
// When a point has none left it is a local optimum, and the next fastest is climbed from; one draw in eight is a
// restart.
#include "compiler/search/proposal.h"

namespace wl {
namespace {

constexpr int kRestartEvery = 8;

}  // namespace

void offer_climb(Proposal& proposal, int count) {
  for (const Observed* from : proposal.ranked())
    for (bool steps_only : {true, false}) {
      std::vector<Point> around = proposal.neighbours(from->point, steps_only);
      proposal.random().shuffle(around);
      for (const Point& point : around) {
        if (count <= 0 || proposal.full()) return;
        if (!proposal.is_new(point)) continue;
        if (proposal.random().below(kRestartEvery) == 0) {
          if (proposal.offer_random()) --count;
          continue;
        }
        if (proposal.offer(point)) --count;
      }
    }
}

}  // namespace wl

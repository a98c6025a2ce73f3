#include "compiler/search/proposal.h"

#include <algorithm>
#include <cmath>

#include "compiler/base/code.h"
#include "compiler/base/splitmix.h"

namespace wl {
namespace {

// A trial that differs from a faster local optimum in at most this many axes is no local optimum.
constexpr int kBasin = 2;
constexpr int kDraws = 4096;     // after so many draws of illegal or known points in a row, the space is enumerated
constexpr int kPartDraws = 256;  // A part of a space is drawn at random until it is legal, but at most this many times.
constexpr int kDrawsEach = 16;   // maximum number of random draws for each point that some_legal() is asked for
// Maximum number of points that an enumeration visits, including illegal and known ones.
constexpr uint64_t kWalk = 500'000;
constexpr size_t kMostRare = 100'000;  // maximum number of legal new points that an enumeration keeps

}  // namespace

int apart(const Point& a, const Point& b) {
  int axes = 0;
  for (size_t i = 0; i < a.size(); ++i) axes += a[i] != b[i] ? 1 : 0;
  return axes;
}

Sequence::Sequence(uint64_t seed, uint64_t stream) : state_(mix(seed + kGolden) ^ mix(~stream)) {}

uint64_t Sequence::next() {
  return split_mix(state_);
}

Proposal::Proposal(const Space& space, const std::vector<Observed>& trials, int n, uint64_t seed)
    : space_(space), trials_(trials), n_(n), random_(seed, trials.size()) {
  for (const Observed& trial : trials) seen_.insert(trial.point);
}

bool Proposal::offer(const Point& wanted) {
  const Point point = space_.settled(wanted);
  if (full() || !is_new(point) || !space_.is_legal(point)) return false;
  seen_.insert(point);
  points_.push_back(point);
  return true;
}

double blame(const Observed& trial) {
  constexpr double kLeast = 0.5, kMost = 3;
  if (trial.correct || trial.code.spill_bytes <= kMostSpill) return 1;
  const double times = static_cast<double>(trial.code.spill_bytes) / static_cast<double>(kMostSpill);
  return std::min(kMost, kLeast + std::log2(times) / 2);
}

std::vector<const Observed*> Proposal::ranked() const {
  std::vector<const Observed*> best;
  for (const Observed& trial : trials_)
    if (trial.correct) best.push_back(&trial);
  std::stable_sort(best.begin(), best.end(), [](const Observed* a, const Observed* b) { return a->ns < b->ns; });
  return best;
}

std::vector<const Observed*> Proposal::optima(size_t most) const {
  std::vector<const Observed*> found;
  for (const Observed* trial : ranked()) {
    if (found.size() == most) break;
    if (std::none_of(found.begin(), found.end(),
                     [&](const Observed* faster) { return apart(trial->point, faster->point) <= kBasin; }))
      found.push_back(trial);
  }
  return found;
}

std::vector<Point> Proposal::neighbours(const Point& point, bool steps_only) const {
  std::vector<Point> found;
  for (size_t axis = 0; axis < space_.axes.size(); ++axis)
    for (int value = 0; value < static_cast<int>(space_.axes[axis].values.size()); ++value) {
      const int distance = std::abs(value - point[axis]);
      if (distance == 0 || (distance == 1) != steps_only) continue;
      Point other = point;
      other[axis] = value;
      other = space_.settled(std::move(other));
      if (other == point) continue;
      for (size_t reset = 0; reset < other.size() && !space_.is_legal(other); ++reset) {
        if (reset == axis) continue;
        other = point;
        other[axis] = value;
        other[reset] = 0;
      }
      if (space_.is_legal(other)) found.push_back(std::move(other));
    }
  return found;
}

void Proposal::offer_randoms(int count) {
  for (; count > 0 && offer_random(); --count) {
  }
}

Point Proposal::draw() {
  Point point(space_.axes.size());
  const auto draw_axes = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) point[i] = random_.below(static_cast<int>(space_.axes[i].values.size()));
  };
  draw_axes(0, point.size());
  size_t begin = 0;
  for (const Space::Part& part : space_.parts) {
    for (int draws = 0; draws < kPartDraws && !part.legal(space_.schedule(point)); ++draws) draw_axes(begin, part.end);
    begin = part.end;
  }
  return space_.settled(std::move(point));
}

std::vector<Point> Proposal::some_legal(int count) {
  std::set<Point> found;
  for (int draws = 0; draws < kDrawsEach * count && static_cast<int>(found.size()) < count; ++draws) {
    const Point point = draw();
    if (is_new(point) && space_.is_legal(point)) found.insert(point);
  }
  return {found.begin(), found.end()};
}

bool Proposal::offer_random() {
  if (full()) return false;
  for (int draws = 0; draws < kDraws; ++draws)
    if (offer(draw())) return true;
  // Few points are legal and untried, so they are enumerated, and each is drawn with equal probability. One enumeration
  // serves all draws of a Proposal.
  if (!walked_) {
    walked_ = true;
    space_.enumerate(
        [&](const Point& each) {
          if (is_new(each)) rare_.push_back(each);
          return rare_.size() < kMostRare;
        },
        kWalk);
    random_.shuffle(rare_);
  }
  while (!rare_.empty()) {
    const Point chosen = std::move(rare_.back());
    rare_.pop_back();
    if (offer(chosen)) return true;
  }
  return false;
}

}  // namespace wl

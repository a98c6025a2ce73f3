// Inside search/: the state of one call of propose(): the trials, the points that were tried or offered, a random
// sequence that depends only on the seed and the number of trials, and the answer so far.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "compiler/search/strategy.h"

namespace wl {

// splitmix64: the sequence is a function of its seed.
class Sequence {
 public:
  Sequence(uint64_t seed, uint64_t stream);
  uint64_t next();
  int below(int n) { return static_cast<int>(next() % static_cast<uint64_t>(n)); }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[next() % i]);
  }

 private:
  uint64_t state_;
};

class Proposal {
 public:
  Proposal(const Space& space, const std::vector<Observed>& trials, int n, uint64_t seed);

  const Space& space() const { return space_; }
  const std::vector<Observed>& trials() const { return trials_; }
  Sequence& random() { return random_; }
  bool full() const { return static_cast<int>(points_.size()) >= n_; }
  int missing() const { return n_ - static_cast<int>(points_.size()); }
  bool is_new(const Point& point) const { return !seen_.contains(point); }
  // Adds a point to the answer if it is legal and new; false otherwise, or when the answer is full.
  bool offer(const Point& point);
  const std::vector<Point>& points() const { return points_; }
  std::vector<Point> take() { return std::move(points_); }

  // Correct trials, fastest first.
  std::vector<const Observed*> ranked() const;
  // Local optima of the trials, fastest first: correct trials without a faster one that differs in at most kBasin axes.
  std::vector<const Observed*> optima(size_t most) const;
  // Legal points that differ from `point` in one axis, nearest values first in `steps`; an axis that only matters under
  // other choices is reset to its first value together with them.
  std::vector<Point> neighbours(const Point& point, bool steps_only) const;
  // Offers a random legal new point; false when none was found.
  bool offer_random();
  // Offers up to `count` of them.
  void offer_randoms(int count);
  // Up to `count` distinct random legal new points, without offering them; fewer where legal points are rare.
  std::vector<Point> some_legal(int count);

 private:
  // A random point. Parts of a space are drawn until they are legal.
  Point draw();

  const Space& space_;
  const std::vector<Observed>& trials_;
  int n_;
  Sequence random_;
  std::set<Point> seen_;
  bool walked_ = false;      // the space was walked for new points
  std::vector<Point> rare_;  // what is left of those, in random order
  std::vector<Point> points_;
};

// How much a trial that is not among the good ones speaks against its choices: 1 for a failure or a slow trial. Trials
// that were rejected for spilled registers are graded: a few spills are close to schedules that may be the best, a tile
// that lies in device memory is far from them.
double blame(const Observed& trial);

// Axes in which two points differ.
int apart(const Point& a, const Point& b);

#define WL_STRATEGY(name, says) \
  std::vector<Point> propose_##name(const Space& space, const std::vector<Observed>& trials, int n, uint64_t seed);
#include "compiler/search/strategies.def"
#undef WL_STRATEGY

// The strategies that `portfolio` combines; each offers at most `count` points.
void offer_seeds(Proposal& proposal, int count);
void offer_ranked(Proposal& proposal, int count);
void offer_climb(Proposal& proposal, int count);
void offer_tpe(Proposal& proposal, int count);
void offer_bayes(Proposal& proposal, int count);
void offer_genetic(Proposal& proposal, int count);

}  // namespace wl

// The state of one call of a strategy's propose(): the trials, the points that were tried or are proposed already, a
// random sequence that depends only on the seed and the number of trials, and the points proposed so far. Used in this
// folder only.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "compiler/search/strategy.h"

namespace wl {

// A sequence of random numbers by splitmix64, which depends only on its seed and stream.
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
  // Proposes a point; axes that do not matter for it get their first value. Returns false, and does nothing, if the
  // point is not legal or not new, or if the wanted number of points is proposed already.
  bool offer(const Point& point);
  const std::vector<Point>& points() const { return points_; }
  std::vector<Point> take() { return std::move(points_); }

  // Returns the correct trials, fastest first.
  std::vector<const Observed*> ranked() const;
  // Returns at most `most` local optima, fastest first. A local optimum is a correct trial that differs from every
  // faster optimum in more than kBasin axes.
  std::vector<const Observed*> optima(size_t most) const;
  // Returns legal points that differ from `point` in the value of one axis: with `steps_only`, those with a value
  // next to the point's, else those with any other value. If such a point is illegal, but is legal with the first
  // value of one further axis, that legal point is returned instead: an axis that does not matter under the new value
  // must have its first value.
  std::vector<Point> neighbours(const Point& point, bool steps_only) const;
  // Proposes a random legal new point. Returns false if none was found.
  bool offer_random();
  // Proposes up to `count` random legal new points.
  void offer_randoms(int count);
  // Returns up to `count` distinct random legal new points without proposing them; fewer if legal points are rare.
  std::vector<Point> some_legal(int count);

 private:
  // Returns a random point, which may be illegal. Each part of the space is drawn again until it is legal, but only a
  // limited number of times.
  Point draw();

  const Space& space_;
  const std::vector<Observed>& trials_;
  int n_;
  Sequence random_;
  std::set<Point> seen_;
  bool walked_ = false;      // whether the space was enumerated to find new points
  std::vector<Point> rare_;  // enumerated new points that were not proposed yet, in random order
  std::vector<Point> points_;
};

// Returns how strongly a slow or failed trial counts against its choices: 1 in general. A trial that was rejected
// because of spilled registers gets 0.5 to 3, depending on the bytes spilled: a schedule with a few spills is close to
// schedules that may be the best, and one that spills whole tiles to device memory is far from them.
double blame(const Observed& trial);

// Returns the number of axes in which two points differ.
int apart(const Point& a, const Point& b);

#define WL_STRATEGY(name, says) \
  std::vector<Point> propose_##name(const Space& space, const std::vector<Observed>& trials, int n, uint64_t seed);
#include "compiler/search/strategies.def"
#undef WL_STRATEGY

// Parts of strategies, from which a strategy can be composed. Each function proposes at most `count` points.
void offer_seeds(Proposal& proposal, int count);
void offer_ranked(Proposal& proposal, int count);
void offer_climb(Proposal& proposal, int count);
void offer_tpe(Proposal& proposal, int count);
void offer_bayes(Proposal& proposal, int count);
void offer_genetic(Proposal& proposal, int count);

}  // namespace wl

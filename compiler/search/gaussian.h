// A Gaussian process over the points of a space: the expected time of a point after the trials so far, and its
// uncertainty. Times are logarithms; each axis has a weight, which is fitted to the trials (automatic relevance
// determination, Rasmussen and Williams, 2006, chapter 5). Fitting is a deterministic search over a fixed grid.
#pragma once

#include <vector>

#include "compiler/search/strategy.h"

namespace wl {

class Gaussian {
 public:
  // Fits the process to the trials; at least one must be correct. Failures count as slower than every correct one.
  Gaussian(const Space& space, const std::vector<Observed>& trials);

  // The joint posterior of some points, so that a batch can be chosen one point after the other.
  class Belief {
   public:
    Belief(const Gaussian& process, const std::vector<Point>& points);
    // Expected improvement over the best trial, in standard deviations of all times.
    double improvement(size_t i) const;
    double mean(size_t i) const { return mean_[i]; }
    // Assumes that point `i` was tried and took its expected time: the uncertainty of its neighbours falls, so that a
    // batch spreads out.
    void assume(size_t i);

   private:
    const Gaussian& process_;
    const std::vector<Point>& points_;
    std::vector<double> mean_, variance_;
    std::vector<std::vector<double>> solved_;  // a row for every trial and every assumption, of all points
  };

 private:
  void take(const std::vector<Observed>& trials);
  void fit_weights();
  double distance(size_t part, const Point& a, const Point& b) const;
  // The covariance of two points is exp of minus this.
  double exponent(const Point& a, const Point& b) const;
  std::vector<double> exponents_of(const std::vector<size_t>& which) const;  // square; below the diagonal
  // Factor and solution for some of the points; returns their log marginal likelihood.
  double factorise(const std::vector<size_t>& which, const std::vector<double>& exponents);

  std::vector<std::vector<double>> distance_;  // values x values of an axis, 0 .. 1
  std::vector<size_t> axis_, values_;          // which axis each is of, and how many values that has
  std::vector<double> weight_;
  double noise_ = 0.01;
  std::vector<Point> points_;
  std::vector<double> y_;  // standardised
  double best_ = 0;
  std::vector<double> factor_, solution_;  // Cholesky factor, and its solve of y
};

}  // namespace wl

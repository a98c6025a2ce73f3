// A Gaussian process over the points of a space. From the trials so far it predicts the logarithm of each point's time,
// and how uncertain that prediction is. Each feature (a property of one axis) has a weight, which is fitted to the
// trials (automatic relevance determination, Rasmussen and Williams, 2006, chapter 5) by a deterministic search over a
// fixed grid.
#pragma once

#include <vector>

#include "compiler/search/strategy.h"

namespace wl {

class Gaussian {
 public:
  // Fits the process to the trials, of which at least one must be correct. A failed trial gets the time of the slowest
  // correct one; if its kernel spilled registers, blame() makes that time longer or shorter.
  Gaussian(const Space& space, const std::vector<Observed>& trials);

  // The joint posterior distribution of the times of some points. With it, the points of a batch can be chosen one
  // after the other.
  class Belief {
   public:
    Belief(const Gaussian& process, const std::vector<Point>& points);
    // Returns the expected improvement of point `i` over the best trial, in the unit of the standardised times (y_).
    double improvement(size_t i) const;
    double mean(size_t i) const { return mean_[i]; }
    // Assumes that point `i` was tried and took its expected time. This lowers the uncertainty of its neighbours, so
    // that the points of a batch are spread out.
    void assume(size_t i);

   private:
    const Gaussian& process_;
    const std::vector<Point>& points_;
    std::vector<double> mean_, variance_;
    // The covariances of trials and points, multiplied by the inverse of the Cholesky factor: one row for each trial,
    // including trials that assume() added, and one column for each point.
    std::vector<std::vector<double>> solved_;
  };

 private:
  void take(const std::vector<Observed>& trials);
  void fit_weights();
  double distance(size_t part, const Point& a, const Point& b) const;
  // Returns the weighted distance of two points, which is the exponent of a covariance: the covariance of the points'
  // times is exp(-distance).
  double exponent(const Point& a, const Point& b) const;
  // Returns exponent() of all pairs of the points whose indices are in `which`, as a matrix that is filled below the
  // diagonal.
  std::vector<double> exponents_of(const std::vector<size_t>& which) const;
  // Computes factor_ and solution_ from the points whose indices are in `which`. Returns the log marginal likelihood of
  // their times, up to a constant.
  double factorise(const std::vector<size_t>& which, const std::vector<double>& exponents);

  std::vector<std::vector<double>> distance_;  // of each feature: a matrix [values x values] of distances from 0 to 1
  std::vector<size_t> axis_, values_;          // of each feature: its axis, and the number of values of that axis
  std::vector<double> weight_;
  double noise_ = 0.01;
  std::vector<Point> points_;
  std::vector<double> y_;  // the standardised logarithms of the points' times
  double best_ = 0;
  std::vector<double> factor_, solution_;  // Cholesky factor L of the covariance, and the solution of L x = y
};

}  // namespace wl

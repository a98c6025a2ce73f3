// What comparisons of places say about values. A triangular or banded factor, whatever the op was called, is a value
// that a condition on iotas makes zero, and a result of which only a triangle is kept is one that such a condition
// replaces. From these conditions follows which products of a contraction count: loops over the others are left out.
#pragma once

#include <vector>

#include "compiler/plan/domain.h"

namespace wl {

// Holds where base + sum strides[a] * atom a >= 0.
struct Condition {
  int64_t base = 0;
  std::vector<int64_t> strides;  // one per atom of the domain
  bool operator==(const Condition&) const = default;
};

// The points of a domain where all of them hold; none: all points.
using Region = std::vector<Condition>;

// The least and the greatest value of a condition's left side on a domain without empty loops.
int64_t least(const Condition& condition, const Domain& domain);
int64_t greatest(const Condition& condition, const Domain& domain);

// Outside of this region of a kContract domain, the product of the contraction's factors is zero, or no output depends
// on the sum that it is part of. A factor that a zero is multiplied with is taken for a finite number
// (docs/numerics.md). Conditions that hold at all points are left out.
Region counted_products(const Graph& group, const Domain& domain);

// The share of the domain's points that a region has, from points on a regular grid; exact where there are few. 1 where
// conditions move along so many loops that a grid would be too large.
double share_of(const Region& region, const Domain& domain);

}  // namespace wl

// Masks: what comparisons of coordinates (values of iotas) say about other values. A triangular or banded factor,
// whatever the op was called, is a value that is zero unless a condition on iotas holds. A result of which only a
// triangle is kept is a value that is replaced unless such a condition holds. These conditions tell which products of a
// contraction count; loops over the others are left out.
#pragma once

#include <vector>

#include "compiler/domain/domain.h"

namespace wl {

// A condition that holds at the points at which base + sum over atoms a of strides[a] * a >= 0.
struct Condition {
  int64_t base = 0;
  std::vector<int64_t> strides;  // one per atom of the domain
  bool operator==(const Condition&) const = default;
};

// The set of points of a domain at which all these conditions hold. Without conditions it is the whole domain.
using Region = std::vector<Condition>;

// Return the least and the greatest value that a condition's left side has on a domain without empty loops.
int64_t least(const Condition& condition, const Domain& domain);
int64_t greatest(const Condition& condition, const Domain& domain);

// Returns a region of a kContract domain outside of which the product of the contraction's factors is zero, or no
// output depends on the sum that the product is part of. A factor that is multiplied by zero is assumed to be finite
// (docs/numerics.md). Conditions that hold at all points are left out. For other domains the region has no conditions.
Region counted_products(const Graph& group, const Domain& domain);

// Returns the share of the domain's points that are in a region. It is estimated at points of a regular grid, and exact
// if there are few points. Returns 1 if the conditions depend on so many loops that a grid would be too large.
double share_of(const Region& region, const Domain& domain);

}  // namespace wl

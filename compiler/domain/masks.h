// Masks: what comparisons of coordinates (values of iotas) imply for other values. A triangular or banded factor is a
// value that is zero unless a condition on iotas holds. A result of which only a triangle is kept is a value that is
// replaced by something else unless such a condition holds. These conditions tell which products of a contraction
// count, so that kernels can leave out the other products.
#pragma once

#include <vector>

#include "compiler/domain/domain.h"

namespace wl {

// A condition on the atoms a of a domain: base + sum of strides[a] * a >= 0.
struct Condition {
  int64_t base = 0;
  std::vector<int64_t> strides;  // one stride for each atom of the domain
  bool operator==(const Condition&) const = default;
};

// The set of points of a domain at which all listed conditions hold. An empty list stands for the whole domain.
using Region = std::vector<Condition>;

// These functions return the least and the greatest value of base + sum of strides[a] * a on a domain without empty
// loops.
int64_t least(const Condition& condition, const Domain& domain);
int64_t greatest(const Condition& condition, const Domain& domain);

// Returns a region of a kContract domain. Outside of it, either the product of the contraction's factors is zero, or no
// output depends on the sum that the product is part of. A factor that is multiplied by zero is assumed to be finite
// (docs/numerics.md). Conditions that hold at all points are left out. For other domains the region has no conditions.
Region counted_products(const Graph& group, const Domain& domain);

// Returns the share of the domain's points that lie in a region. If there are many points, the share is estimated on a
// regular grid. Returns 1 if the conditions depend on so many loops that a grid would be too large.
double share_of(const Region& region, const Domain& domain);

}  // namespace wl

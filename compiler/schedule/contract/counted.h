// Limits the loops of a contraction to the products that count: those that may change some output
// (compiler/domain/masks.h).
#pragma once

#include <vector>

#include "compiler/domain/masks.h"
#include "compiler/schedule/tile_expr.h"

namespace wl {

// a / b rounded up; neither number may be negative.
inline int64_t quotient_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// A part of a domain: a range of indices along each of its atoms (loops). For each atom, `place` has the first index of
// the range, and `more` the number of indices after it.
struct TileBox {
  Place place;
  std::vector<int64_t> more;
};

// Which iterations of a loop are executed. `first` is the number of the first one; the minimum of `trips` is their
// number, where a negative minimum means 0.
struct Iterations {
  Affine first;
  std::vector<Affine> trips;
};

// Returns which of `loops` a condition limits: the loop over which the condition's value changes most; if several
// loops change it equally, the first of them.
AtomId loop_of(const Condition& condition, const Domain& domain, const std::vector<AtomId>& loops);

// Returns the iterations of a loop over `atom` in which all conditions of a region may hold; in every other iteration,
// some condition fails at all points of `box`. The loop has `count` iterations of `step` elements each, from the box's
// first index of `atom` on; along the other atoms each iteration spans the whole box. All indices must lie inside the
// domain. Adds the derived variables that it needs to `out`.
Iterations iterations_within(const Region& region, const Domain& domain, const TileBox& box, AtomId atom, int64_t step,
                             int64_t count, KernelBuilder& out);

}  // namespace wl

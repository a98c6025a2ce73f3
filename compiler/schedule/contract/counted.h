// Loops of a contraction over the products that count (compiler/plan/masks.h).
#pragma once

#include <vector>

#include "compiler/plan/masks.h"
#include "compiler/schedule/tile_expr.h"

namespace wl {

// How many parts of `b` cover `a`, neither negative.
inline int64_t quotient_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Points of a domain: for each atom its first index, and how many more follow it.
struct TileBox {
  Place place;
  std::vector<int64_t> more;
};

// The turns of a loop: those from `first` on, as many as the least of `trips`, if that is more than 0.
struct Turns {
  Affine first;
  std::vector<Affine> trips;
};

// Which of some loops ends where a condition does: the one along which it moves furthest, the first of equals.
AtomId loop_of(const Condition& condition, const Domain& domain, const std::vector<AtomId>& loops);

// The turns of a loop of `count`, each of `step` elements of `atom` from the box's first on, beyond which all of the
// conditions fail at every point of the box; that is what the box has of other atoms, of this one each turn. The
// places are inside of the domain.
Turns turns_within(const Region& region, const Domain& domain, const TileBox& box, AtomId atom, int64_t step,
                   int64_t count, KernelBuilder& out);

}  // namespace wl

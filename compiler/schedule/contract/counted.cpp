#include "compiler/schedule/contract/counted.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace wl {
namespace {

// A condition on indices as a function of a loop's iteration number i. The condition holds at some point of iteration i
// if and only if `at` + `stride` * i >= 0. `at` may be negative, but is never less than -`lack`.
struct Along {
  Affine at;
  int64_t stride = 0, lack = 0;
};

Along along(const Condition& condition, const Domain& domain, const TileBox& box, AtomId atom, int64_t step) {
  Along out;
  out.at = fixed(condition.base);
  for (AtomId a = 0; a < static_cast<AtomId>(domain.atoms.size()); ++a) {
    const int64_t stride = condition.strides[a];
    if (stride == 0) continue;
    out.at = sum(std::move(out.at), box.place[a], stride);
    out.at.base += std::max<int64_t>(0, stride * (a == atom ? step - 1 : box.more[a]));
  }
  out.stride = condition.strides[atom] * step;
  out.lack = std::max<int64_t>(0, -least(condition, domain));
  return out;
}

// For a condition with a negative stride, which holds only in the first iterations, returns the number of these
// iterations; 0 or a negative number means that there are none.
Affine end_of(const Along& row, KernelBuilder& out) {
  const int64_t stride = -row.stride;
  if (stride == 1) return sum(fixed(1), row.at);
  // A derived variable cannot divide negative values. Therefore a multiple of the stride, large enough that the sum is
  // not negative, is added to `at` before the division and subtracted from the result.
  const int64_t before = quotient_up(row.lack, stride);
  const Affine shifted = sum(fixed(stride * (before + 1)), row.at);
  return sum(fixed(-before), affine(out.derived("end", {shifted}, stride)));
}

// For a condition with a positive stride, returns the first iteration in which it holds.
Affine first_of(const Along& row, KernelBuilder& out) {
  const Affine inside = affine(out.derived("inside", {sum(fixed(row.lack), row.at), fixed(row.lack)}));
  const Affine lack = sum(fixed(row.lack), inside, -1);
  if (row.stride == 1) return lack;
  return affine(out.derived("first", {sum(fixed(row.stride - 1), lack)}, row.stride));
}

}  // namespace

AtomId loop_of(const Condition& condition, const Domain& domain, const std::vector<AtomId>& loops) {
  const auto reach = [&](AtomId atom) { return std::abs(condition.strides[atom]) * domain.atoms[atom].extent; };
  AtomId best = loops[0];
  for (AtomId atom : loops)
    if (reach(atom) > reach(best)) best = atom;
  return best;
}

Iterations iterations_within(const Region& region, const Domain& domain, const TileBox& box, AtomId atom, int64_t step,
                             int64_t count, KernelBuilder& out) {
  Iterations iterations{fixed(0), {fixed(count)}};
  std::vector<Affine> firsts;
  int64_t latest = 0;
  for (const Condition& condition : region) {
    const Along row = along(condition, domain, box, atom, step);
    if (row.stride == 0) {
      // The condition is the same in all iterations: if `at` is not negative, it allows all of them, otherwise none.
      iterations.trips.push_back(sum(fixed(count), row.at, count));
    } else if (row.stride < 0) {
      iterations.trips.push_back(end_of(row, out));
    } else {
      firsts.push_back(first_of(row, out));
      latest = std::max(latest, quotient_up(row.lack, row.stride));
    }
  }
  if (firsts.size() == 1) iterations.first = firsts[0];
  if (firsts.size() > 1) {
    std::vector<Affine> before;
    for (const Affine& first : firsts) before.push_back(sum(fixed(latest), first, -1));
    iterations.first = sum(fixed(latest), affine(out.derived("before", std::move(before))), -1);
  }
  for (Affine& trips : iterations.trips) trips = sum(std::move(trips), iterations.first, -1);
  return iterations;
}

}  // namespace wl

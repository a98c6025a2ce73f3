#include "compiler/domain/factors.h"

#include "absl/strings/str_join.h"
#include "compiler/base/status.h"

namespace wl {

int Factors::fresh(int64_t extent) {
  factors_.push_back({.extent = extent});
  return static_cast<int>(factors_.size()) - 1;
}

void Factors::expand(int factor, FactorList& leaves) const {
  while (factors_[factor].same >= 0) factor = factors_[factor].same;
  if (factors_[factor].outer < 0) {
    leaves.push_back(factor);
    return;
  }
  expand(factors_[factor].outer, leaves);
  expand(factors_[factor].inner, leaves);
}

FactorList Factors::expand(const FactorList& list) const {
  FactorList leaves;
  for (int factor : list) expand(factor, leaves);
  return leaves;
}

bool Factors::unify(const FactorList& a, const FactorList& b) {
  FactorList left = expand(a), right = expand(b);
  const auto pop = [&](FactorList& from) {
    // Takes the last leaf of the list. The list's last entry may have been split since the list was made; if so, its
    // leaves replace it first.
    FactorList leaves;
    expand(from.back(), leaves);
    from.pop_back();
    from.insert(from.end(), leaves.begin(), leaves.end() - 1);
    return leaves.back();
  };
  while (!left.empty() && !right.empty()) {
    const int x = pop(left), y = pop(right);
    if (x == y) continue;
    const int64_t ex = extent(x), ey = extent(y);
    if (ex == ey) {
      factors_[x].same = y;
      continue;
    }
    const bool x_longer = ex > ey;
    const int longer = x_longer ? x : y, shorter = x_longer ? y : x;
    if (extent(shorter) == 0 || extent(longer) % extent(shorter) != 0) return false;
    const int outer = fresh(extent(longer) / extent(shorter));
    factors_[longer].outer = outer;
    factors_[longer].inner = shorter;
    (x_longer ? left : right).push_back(outer);
  }
  return left.empty() && right.empty();
}

std::string Factors::text(const FactorList& list) const {
  const FactorList leaves = expand(list);
  if (leaves.empty()) return "1";
  return absl::StrJoin(leaves, "*", [this](std::string* out, int leaf) { append(out, extent(leaf)); });
}

}  // namespace wl

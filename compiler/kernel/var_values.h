// The values of a kernel's variables, and of the expressions over them, at one point of the kernel's execution. Used by
// all code that walks a kernel.
#pragma once

#include <algorithm>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace wl {

class VarValues {
 public:
  // All variables start at zero. The kernel must outlive this object.
  explicit VarValues(const Kernel& kernel) : kernel_(kernel), values_(kernel.vars.size(), 0) {}

  // Sets a variable that is not derived. Derived variables have no stored value; they are computed from the others.
  void set(VarId var, int64_t value) { values_[var] = value; }

  int64_t value(VarId var) const {
    const Var& v = kernel_.vars[var];
    if (v.kind != Var::Kind::kDerived) return values_[var];
    const int64_t quotient = smallest(v.of) / v.div;
    return v.mod == 0 ? quotient : quotient % v.mod;
  }
  int64_t value(const Affine& affine) const {
    int64_t sum = affine.base;
    for (const auto& [var, coefficient] : affine.terms) sum += coefficient * value(var);
    return sum;
  }
  // The smallest value of several expressions, such as a loop's trips or a tile's bounds along an axis. `of` must not
  // be empty.
  int64_t smallest(const std::vector<Affine>& of) const {
    int64_t least = value(of[0]);
    for (const Affine& affine : of) least = std::min(least, value(affine));
    return least;
  }

 private:
  const Kernel& kernel_;
  std::vector<int64_t> values_;
};

}  // namespace wl

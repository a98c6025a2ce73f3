// Factors of loop axes. The extent of an axis is a product of factors. An axis is the list of its factors, outermost
// first; an axis of extent 1 is the empty list. unify() states that two axes are the same loop: it joins their factors,
// and splits a longer factor where the other axis has a boundary between factors. Splits and joins are remembered, so a
// list that was made earlier can be expanded at any time to its leaves: the factors that were neither split nor joined
// to another one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wl {

using FactorList = std::vector<int>;

class Factors {
 public:
  // Returns a new factor.
  int fresh(int64_t extent);
  // Returns a new axis: a list of one new factor, or an empty list for extent 1.
  FactorList axis(int64_t extent) { return extent == 1 ? FactorList{} : FactorList{fresh(extent)}; }
  // Makes two axes the same loop. Returns false if the boundaries between their factors cannot be brought together,
  // as for 4*6 and 3*8. Factors that were joined until then stay joined.
  bool unify(const FactorList& a, const FactorList& b);
  // Returns the current leaves of an axis, outermost first.
  FactorList expand(const FactorList& list) const;
  int64_t extent(int leaf) const { return factors_[leaf].extent; }
  // Returns the extents of the factors in a list: "12*64", or "1" for an empty list.
  std::string text(const FactorList& list) const;

 private:
  struct Factor {
    int64_t extent = 1;
    int same = -1;               // the factor that this one was joined to; -1: it was not joined
    int outer = -1, inner = -1;  // the two factors that this one was split into; -1: it was not split
  };
  void expand(int factor, FactorList& leaves) const;
  std::vector<Factor> factors_;
};

}  // namespace wl

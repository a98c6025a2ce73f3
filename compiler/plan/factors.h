// Factors: the pieces that loop axes are products of. An axis is a list of factors, outermost first; extent 1 is the
// empty list. Saying that two axes are the same loop (unify) joins their factors, splitting a longer one where the
// other has a cut. Splits and joins are remembered, so a list taken earlier can be expanded to the current leaves at
// any time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wl {

using FactorList = std::vector<int>;

class Factors {
 public:
  int fresh(int64_t extent);
  // An axis of its own: one factor, none for extent 1.
  FactorList axis(int64_t extent) { return extent == 1 ? FactorList{} : FactorList{fresh(extent)}; }
  // False when the cuts do not nest (4*6 against 3*8); the factors joined so far stay joined.
  bool unify(const FactorList& a, const FactorList& b);
  // The leaves as they are now, outermost first.
  FactorList expand(const FactorList& list) const;
  int64_t extent(int leaf) const { return factors_[leaf].extent; }
  std::string text(const FactorList& list) const;  // "12*64", "1"

 private:
  struct Factor {
    int64_t extent = 1;
    int same = -1;               // joined with that one
    int outer = -1, inner = -1;  // or split into these
  };
  void expand(int factor, FactorList& leaves) const;
  std::vector<Factor> factors_;
};

}  // namespace wl

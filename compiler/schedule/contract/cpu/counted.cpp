// Leaves out the products of a contraction on a CPU that change no output, and the elements of packed operands that
// only such products read.
#include <algorithm>
#include <utility>

#include "compiler/schedule/contract/cpu/lowering.h"

namespace wl {

// Finds the conditions under which a product can change an output. If an image is copied, all conditions are dropped.
// If the loops over an image's rows and pixels are merged, the conditions on the indices of pixels are dropped. In both
// cases the kernel reads the image at other indices than the conditions assume. Tile registers compute all products, so
// they have no conditions.
void CpuContract::prepare_counted() {
  if (product_.image || product_.tiles || product_.k_atoms.empty()) return;
  counted_ = counted_products(product_.group, product_.whole);
  if (product_.merged)
    std::erase_if(counted_, [&](const Condition& c) {
      return c.strides[product_.height] != 0 || c.strides[product_.width] != 0;
    });
}

bool CpuContract::has_masks(const Region& region, size_t k) const {
  return std::ranges::any_of(
      region, [&](const Condition& c) { return loop_of(c, product_.domain, product_.k_atoms) == product_.k_atoms[k]; });
}

Iterations CpuContract::iterations_that_count(const Region& region, size_t k, const Place& place, int64_t rows,
                                              int64_t columns, int64_t k_extent) {
  TileBox box{place, std::vector<int64_t>(product_.domain.atoms.size(), 0)};
  if (product_.row_atom >= 0) box.more[product_.row_atom] = rows - 1;
  if (product_.column_atom >= 0) box.more[product_.column_atom] = columns - 1;
  for (size_t i = 0; i < product_.k_atoms.size(); ++i)
    box.more[product_.k_atoms[i]] = (i == 0 ? k_extent : product_.domain.atoms[product_.k_atoms[i]].extent) - 1;
  Region mine;
  for (const Condition& condition : region)
    if (loop_of(condition, product_.domain, product_.k_atoms) == product_.k_atoms[k]) mine.push_back(condition);
  return iterations_within(mine, product_.domain, box, product_.k_atoms[k], product_.step_of(k),
                           k == 0 ? product_.turns_of(0, k_extent) : product_.turns_of(k), out_);
}

// Returns the range of elements along the innermost k atom that are needed by the tiles of `width` rows or columns that
// begin at `place`. Only these elements are packed. A range without trips stands for all elements.
Iterations CpuContract::packed_iterations(const Place& place, AtomId along, int64_t width, int64_t k_extent) {
  const size_t last = product_.k_atoms.size() - 1;
  if (product_.dot) return {};  // all words are packed, since one word may hold needed elements beside others
  if (counted_.empty() || along < 0 ||
      (last == 0 ? k_extent : product_.domain.atoms[product_.k_atoms[last]].extent) == 1)
    return {};
  const std::vector<AtomId>& others = along == product_.row_atom ? product_.domain.n : product_.domain.m;
  Region region = counted_;
  std::erase_if(region, [&](const Condition& c) {
    return std::ranges::any_of(others, [&](AtomId atom) { return c.strides[atom] != 0; });
  });
  if (!has_masks(region, last)) return {};
  return iterations_that_count(region, last, place, width, width, k_extent);
}

}  // namespace wl

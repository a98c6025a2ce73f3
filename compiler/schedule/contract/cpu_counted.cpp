// Leaves out the products of a contraction on a CPU that change no output, and the elements of packed operands that
// only such products read.
#include <algorithm>
#include <utility>

#include "compiler/schedule/contract/cpu.h"

namespace wl {

// Finds the conditions under which a product can change an output. If an image is copied, all conditions are dropped.
// If the loops over an image's rows and pixels are merged, the conditions on the indices of pixels are dropped. In both
// cases the kernel reads the image at other indices than the conditions assume. Tile registers compute all products, so
// they have no conditions.
void CpuContract::prepare_counted() {
  if (image_ || tiles_ || k_atoms_.empty()) return;
  counted_ = counted_products(group_, whole_);
  if (merged_)
    std::erase_if(counted_, [&](const Condition& c) { return c.strides[height_] != 0 || c.strides[width_] != 0; });
}

bool CpuContract::has_masks(const Region& region, size_t k) const {
  return std::ranges::any_of(region, [&](const Condition& c) { return loop_of(c, domain_, k_atoms_) == k_atoms_[k]; });
}

Iterations CpuContract::iterations_that_count(const Region& region, size_t k, const Place& place, int64_t rows,
                                              int64_t columns, int64_t k_extent) {
  TileBox box{place, std::vector<int64_t>(domain_.atoms.size(), 0)};
  if (row_atom_ >= 0) box.more[row_atom_] = rows - 1;
  if (column_atom_ >= 0) box.more[column_atom_] = columns - 1;
  for (size_t i = 0; i < k_atoms_.size(); ++i)
    box.more[k_atoms_[i]] = (i == 0 ? k_extent : domain_.atoms[k_atoms_[i]].extent) - 1;
  Region mine;
  for (const Condition& condition : region)
    if (loop_of(condition, domain_, k_atoms_) == k_atoms_[k]) mine.push_back(condition);
  return iterations_within(mine, domain_, box, k_atoms_[k], step_of(k), k == 0 ? turns_of(0, k_extent) : turns_of(k),
                           out_);
}

// Returns the range of elements along the innermost k atom that are needed by the tiles of `width` rows or columns that
// begin at `place`. Only these elements are packed. A range without trips stands for all elements.
Iterations CpuContract::packed_iterations(const Place& place, AtomId along, int64_t width, int64_t k_extent) {
  const size_t last = k_atoms_.size() - 1;
  if (dot_) return {};  // all words are packed, since one word may hold needed elements beside others
  if (counted_.empty() || along < 0 || (last == 0 ? k_extent : domain_.atoms[k_atoms_[last]].extent) == 1) return {};
  const std::vector<AtomId>& others = along == row_atom_ ? domain_.n : domain_.m;
  Region region = counted_;
  std::erase_if(region, [&](const Condition& c) {
    return std::ranges::any_of(others, [&](AtomId atom) { return c.strides[atom] != 0; });
  });
  if (!has_masks(region, last)) return {};
  return iterations_that_count(region, last, place, width, width, k_extent);
}

}  // namespace wl

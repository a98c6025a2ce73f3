// What a group reads of its inputs for one operand, through the elementwise work before it.
#pragma once

#include <vector>

#include "compiler/plan/domain.h"

namespace wl {

// Every access behind an operand of a node, pieces of pads and concats included.
std::vector<Access> reads_of(const Domain& domain, NodeId node, int position);

// Whether vectors of so many elements along `atom` are aligned in every access that is contiguous along it. Others
// would be moved element by element, lanes apart.
bool aligned_along(const Domain& domain, const std::vector<Access>& reads, AtomId atom, int64_t vector);

}  // namespace wl

// What a group reads of its inputs, and how: facts that spaces of schedules and their lowering share.
#pragma once

#include <vector>

#include "compiler/plan/domain.h"

namespace wl {

// Inputs of which a walk over the whole domain reads no element twice: all their readers read the same, along every
// atom, and none by an index. Caches need not keep them, unless a kernel walks more than once.
std::vector<NodeId> inputs_read_once(const Graph& group, const Domain& domain);

// An operand of the domain's contraction that is an input as it is, in the dtype that products are summed in: its
// elements can be copied to where they are multiplied.
bool copies_operand(const Graph& group, const Domain& domain, int position);

// A read of whole rows that can be copied to shared memory ahead of their turn: along the vector atom, with vectors of
// so many elements, and another for every row.
bool copies_rows(const Graph& group, const Domain& domain, const Access& access, int64_t vector);
// The bytes of all such reads for one element of a row, whatever the vectors.
int64_t copied_bytes(const Graph& group, const Domain& domain);

// Every access behind an operand of a node, pieces of pads and concats included.
std::vector<Access> reads_of(const Domain& domain, NodeId node, int position);

// Whether vectors of so many elements along `atom` are aligned in every access that is contiguous along it. Others
// would be moved element by element, lanes apart.
bool aligned_along(const Domain& domain, const std::vector<Access>& reads, AtomId atom, int64_t vector);

}  // namespace wl

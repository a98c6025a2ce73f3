// What a group reads of its inputs, and how: facts that spaces of schedules and their lowering share.
#pragma once

#include <vector>

#include "compiler/plan/domain.h"

namespace wl {

// Inputs of which one walk over the domain reads no element twice: all ops read them at the same addresses, which move
// with every atom, and none reads them by an index. Caches need not keep them, unless a kernel walks more than once.
std::vector<NodeId> inputs_read_once(const Graph& group, const Domain& domain);

// How an operand of the domain's contraction can be copied to shared memory unchanged, as long as 4 bytes or more are
// neighbours: it is an input, of a dtype in which it is multiplied, as it is or padded with zeros, which are where the
// guards of the access do not hold. Null: it is something else.
const Access* copied_operand(const Graph& group, const Domain& domain, int position, DType dtype);

// A read that can be copied to shared memory before its row is computed: contiguous along the vector atom, in vectors
// of so many elements, and different for every row.
bool copies_rows(const Graph& group, const Domain& domain, const Access& access, int64_t vector);
// The bytes of all such reads for one element of a row, whatever the vectors.
int64_t copied_bytes(const Graph& group, const Domain& domain);

// Every access behind an operand of a node, pieces of pads and concats included.
std::vector<Access> reads_of(const Domain& domain, NodeId node, int position);

// Whether vectors of so many elements along `atom` are aligned in every access that is contiguous along it. Others
// would be moved element by element, lanes apart.
bool aligned_along(const Domain& domain, const std::vector<Access>& reads, AtomId atom, int64_t vector);

}  // namespace wl

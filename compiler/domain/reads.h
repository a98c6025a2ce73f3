// Facts about how a group reads its inputs, which both the search spaces of schedules and the lowering need.
#pragma once

#include <vector>

#include "compiler/domain/domain.h"

namespace wl {

// Returns the inputs of which one traversal of the domain reads no element twice: all ops read them at the same
// addresses, different points of the domain have different addresses, and no op reads them by a computed index or in
// part. Caches need not keep such inputs, unless a kernel traverses the domain more than once.
std::vector<NodeId> inputs_read_once(const Graph& group, const Domain& domain);

// Returns the access by which an operand of the domain's contraction can be copied to shared memory unchanged, as long
// as 4 bytes or more are neighbours; null if it cannot. The operand must be an input of the dtype `dtype`, in which it
// is multiplied. It may be padded with zeros: then the zeros are the elements for which the guards of the access do
// not hold.
const Access* copied_operand(const Graph& group, const Domain& domain, int position, DType dtype);

// Whether a read can be copied to shared memory before its row is computed: it is contiguous along the vector atom, can
// be copied in vectors of `vector` elements, and differs from row to row.
bool copies_rows(const Graph& group, const Domain& domain, const Access& access, int64_t vector);
// Returns the bytes of all reads that can be copied so with vectors of 1, 2 or 4 elements, for one element of a row.
int64_t copied_bytes(const Graph& group, const Domain& domain);

// Returns every access to memory from which an operand of a node is computed, pieces of pads and concats included.
std::vector<Access> reads_of(const Domain& domain, NodeId node, int position);

// Whether vectors of `vector` elements along `atom` are aligned in every access that is contiguous along it. Vectors
// that are not aligned would be moved element by element, and neighbouring lanes would access elements that are not
// neighbours.
bool aligned_along(const Domain& domain, const std::vector<Access>& reads, AtomId atom, int64_t vector);

}  // namespace wl

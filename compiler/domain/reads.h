// Facts about the reads of a group's inputs, which both the search spaces of schedules and the lowering need.
#pragma once

#include <vector>

#include "compiler/domain/domain.h"

namespace wl {

// Returns the inputs of which no element is read twice in one traversal of the domain: all ops read them at the same
// addresses, different points of the domain have different addresses, and no op reads them by a computed index or in
// part. Caches need not keep such inputs, unless a kernel traverses the domain more than once.
std::vector<NodeId> inputs_read_once(const Graph& group, const Domain& domain);

// Returns the access by which an operand of the domain's contraction can be copied to shared memory unchanged, if at
// least 4 bytes are contiguous; null if it cannot be copied so. The operand must be an input of dtype `dtype`, the
// dtype in which it is multiplied, and none of Domain::uncopied. It may be padded with zeros, which are the elements
// for which the guards of the access do not hold.
const Access* copied_operand(const Graph& group, const Domain& domain, int position, DType dtype);

// Whether the elements of a read can be copied to shared memory before their row is computed: the read must be
// contiguous along the vector atom, allow copies in vectors of `vector` elements, and differ from row to row.
bool copies_rows(const Graph& group, const Domain& domain, const Access& access, int64_t vector);
// Returns how many bytes per element of a row are read by the accesses that copies_rows() accepts for vectors of 1, 2
// or 4 elements.
int64_t copied_bytes(const Graph& group, const Domain& domain);

// Returns every access to memory from which an operand of a node is computed, including the pieces of pads and concats.
std::vector<Access> reads_of(const Domain& domain, NodeId node, int position);

// Whether vectors of `vector` elements along `atom` are aligned in every access that is contiguous along `atom`.
// Vectors that are not aligned would be accessed one element at a time, and neighbouring lanes would access distant
// elements.
bool aligned_along(const Domain& domain, const std::vector<Access>& reads, AtomId atom, int64_t vector);

}  // namespace wl

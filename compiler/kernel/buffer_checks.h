// What verify() demands of a kernel's buffers: where they lie, and what they hold in each pass.
#pragma once

#include "compiler/kernel/kernel.h"

namespace wl {

// Buffers lie at multiples of 64 bytes and share memory only when one is no longer used before the other is first used;
// a cluster buffer has a part for every block of a cluster; a swizzle is of shared memory, and one to one.
absl::Status check_buffers(const Kernel& kernel);

// What is wrong with an access of `each` neighbouring elements for every element of a tile (1, or those of a word); ""
// where nothing is. In a swizzled buffer a vector stays together: it is contiguous, aligned, and no longer than the
// runs that the swizzle leaves as they are; an index would be swizzled before it is known.
std::string access_problem(const KernelBuffer& buffer, const Slice& slice, const Tile& tile, int64_t each,
                           bool indexed);

// Of loads of words by blocks of eight rows of 16 bytes (PTX's ldmatrix), which are `gap` elements apart: whether every
// row begins at a multiple of 16 bytes, and whether the lanes of a wave hold blocks of shared memory.
bool begins_rows(const Affine& offset, int64_t gap, DType element);
bool holds_shared_blocks(const Kernel& kernel, const Instr& words);

// What is wrong with the blocks that a pass counts, or the flag of their threads; "" where nothing is.
std::string last_problem(const Kernel& kernel, const Instr& pass);

// Scratch is stored in the pass that loads it, the workspace in an earlier one, since the blocks of a pass run in any
// order. Cluster barriers separate the stores to cluster buffers from the loads, and the last load from the block's
// end.
absl::Status check_passes(const Kernel& kernel);

}  // namespace wl

// What verify() demands of a kernel's buffers: where they lie, and what they hold in each pass.
#pragma once

#include "compiler/kernel/kernel.h"

namespace wl {

// An internal error unless all buffers but globals lie at multiples of 64 bytes, share memory only when one of them is
// no longer used before the other is first used, have one part for every block of a cluster if they are cluster
// buffers, and have swizzles only in shared memory and only one-to-one ones.
absl::Status check_buffers(const Kernel& kernel);

// What is wrong with an access of `each` neighbouring elements for every element of a tile (1, or the elements of a
// word); "" where nothing is. In a swizzled buffer the elements of a vector must stay together: contiguous, aligned,
// and no more than the runs that the swizzle leaves as they are. An index is refused there, since it would be swizzled
// before its value is known.
std::string access_problem(const KernelBuffer& buffer, const Slice& slice, const Tile& tile, int64_t each,
                           bool indexed);

// Two conditions of loading words by blocks of eight rows of 16 bytes, `gap` elements apart (PTX's ldmatrix): every row
// begins at a multiple of 16 bytes, and the lanes of a wave hold blocks of a buffer in shared memory.
bool begins_rows(const Affine& offset, int64_t gap, DType element);
bool holds_shared_blocks(const Kernel& kernel, const Instr& words);

// What is wrong with the number of blocks of a `pass last`, or with its flag, from which the threads of a block learn
// that theirs is the last; "" where nothing is.
std::string last_problem(const Kernel& kernel, const Instr& pass);

// An internal error unless every pass stores the scratch that it loads, and loads from the workspace only what earlier
// passes stored, since the blocks of a pass run in any order. Cluster barriers must separate the stores to cluster
// buffers from the loads, and the last load from the end of the block.
absl::Status check_passes(const Kernel& kernel);

}  // namespace wl

// The checks of a kernel's buffers in verify(): where they lie in memory, and that no pass loads what was not stored.
#pragma once

#include "compiler/kernel/kernel.h"

namespace wl {

// Returns an internal error unless all of this holds: buffers other than globals begin at multiples of 64 bytes; two
// buffers share memory only if they never hold values at the same time; a cluster buffer has one part for every block
// of a cluster; and only buffers in shared memory are swizzled, each one-to-one.
absl::Status check_buffers(const Kernel& kernel);

// Returns what is wrong with an access to a buffer; "" if it is legal. Every element of the tile accesses `each`
// neighbouring elements of the buffer: one, or the elements of a word. In a swizzled buffer, the elements of a vector
// must be contiguous and aligned, and no more than the swizzle keeps together. A gather (`indexed`) from a swizzled
// buffer is refused, because its addresses would be swizzled before the index is known.
std::string access_problem(const KernelBuffer& buffer, const Slice& slice, const Tile& tile, int64_t each,
                           bool indexed);

// Two conditions for loading words in blocks of eight rows of 16 bytes, `gap` elements apart (PTX's ldmatrix).
// begins_rows: every row begins at a multiple of 16 bytes. holds_shared_blocks: the buffer is in shared memory, and the
// lanes of a wave hold such blocks of it.
bool begins_rows(const Affine& offset, int64_t gap, DType element);
bool holds_shared_blocks(const Kernel& kernel, const Instr& words);

// Returns what is wrong with the operands of a `pass last n`: the number of blocks n, or the flag from which the
// threads of a block learn that their block arrived last; "" if nothing is.
std::string last_problem(const Kernel& kernel, const Instr& pass);

// Returns an internal error unless every pass itself stores the scratch that it loads, and takes from the workspace
// only what earlier passes stored, because the blocks of a pass run in any order. A cluster barrier must separate
// stores to a cluster buffer from loads of it, and the last such load from the end of the block.
absl::Status check_passes(const Kernel& kernel);

}  // namespace wl

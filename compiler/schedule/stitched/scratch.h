// The scratch memory of a stitched block (shared memory on a GPU, a buffer of the thread on a CPU): how long each piece
// is needed, and where it lies. Pieces that are not needed at the same time share memory. Internal to this folder.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/domain/stitch.h"

namespace wl {

// Scratch memory that is needed from stage `first` to stage `last`.
struct Need {
  int64_t bytes = 0;
  size_t first = 0, last = 0;
  int64_t offset = 0;  // the offset in the block's scratch, in bytes
};

// Extends the needs of the stages of a turn (one iteration of a block's loop along a reduced axis). On a CPU every need
// lasts from the first to the last stage of the turn. On a GPU, where shared memory is scarce, only two kinds of values
// last so long: positions along an axis, which are computed where a turn begins, and values that are read after the
// stages of the turn. The stages use the remaining memory one after the other.
void keep_through_turns(const Stitched& choice, bool gpu, std::vector<Need>& needs);

// Gives every need (piece of scratch memory) its offset. On CPUs offsets are multiples of a page, so that row buffers
// stay staggered against each other. On a GPU pages would leave gaps, so offsets are multiples of 128 bytes, or of 1024
// if matrix instructions read shared memory (`in_memory`), which require that. The largest needs come first if that
// takes less memory. If both orders take more than `most` bytes, which is all that a thread block may have, some random
// orders are tried: finding the least memory is a hard problem (dynamic storage allocation), and few groups come so
// close to the limit.
void place(std::vector<Need>& needs, bool gpu, bool in_memory, int64_t most);

}  // namespace wl

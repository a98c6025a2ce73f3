// What a kernel moves, counted from its instructions: the static part of judging it, without a device.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace wl {

// Elements that the kernel loads from or stores to each buffer (index as in kernel.buffers; shared ones included), all
// blocks and teams together. What a team holds in several threads counts once, and what a guard excludes does not.
// Takes time in proportion to the instructions that run, and to their elements where they are guarded.
std::vector<int64_t> elements_moved(const Kernel& kernel);

}  // namespace wl

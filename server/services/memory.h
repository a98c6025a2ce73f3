// How much memory this process uses, for monitoring a coordinator over days.
#pragma once

#include <cstdint>

namespace wl {

struct HeldMemory {
  int64_t heap_bytes = 0;  // bytes in allocations, without free memory between them; 0: not known
  // Resident bytes of the process: the heap with its free parts, stacks, pages of files; 0: not known.
  int64_t resident_bytes = 0;
};

// Returns the memory use that the C library and /proc report. The heap's size is not known under sanitizers, nor with a
// glibc before 2.33.
HeldMemory held_memory();

}  // namespace wl

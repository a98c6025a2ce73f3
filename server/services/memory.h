// What this process holds in memory, for those who watch a coordinator for days.
#pragma once

#include <cstdint>

namespace wl {

struct HeldMemory {
  int64_t heap_bytes = 0;      // that allocations hold, without what is free between them; 0: not known
  int64_t resident_bytes = 0;  // of the process: the heap with its free parts, stacks, pages of files; 0: not known
};

// Asks the C library and the system. The heap is not known under sanitizers.
HeldMemory held_memory();

}  // namespace wl

#include "server/services/memory.h"

#include <malloc.h>
#include <unistd.h>

#include <fstream>

// Sanitizers have allocators of their own, and mallinfo() of older C libraries counts only up to 2 GB.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if __GLIBC_PREREQ(2, 33)
#define WL_COUNTS_HEAP
#endif
#endif

namespace wl {

HeldMemory held_memory() {
  HeldMemory use;
#ifdef WL_COUNTS_HEAP
  // Allocations in all arenas, and large ones that have mappings of their own.
  const struct mallinfo2 heap = mallinfo2();
  use.heap_bytes = static_cast<int64_t>(heap.uordblks + heap.hblkhd);
#endif
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  if (statm >> pages >> resident) use.resident_bytes = resident * sysconf(_SC_PAGESIZE);
  return use;
}

}  // namespace wl

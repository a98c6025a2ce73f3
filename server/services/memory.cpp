#include "server/services/memory.h"

#include <malloc.h>
#include <unistd.h>

#include <fstream>

// The heap is counted only if the C library has mallinfo2() (glibc 2.33), because mallinfo() counts only up to 2 GB. It
// is not counted under sanitizers, because these have allocators of their own.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if __GLIBC_PREREQ(2, 33)
#define WL_COUNTS_HEAP
#endif
#endif

namespace wl {

HeldMemory held_memory() {
  HeldMemory use;
#ifdef WL_COUNTS_HEAP
  // Counts allocations in all arenas, and large allocations that have mappings of their own.
  const struct mallinfo2 heap = mallinfo2();
  use.heap_bytes = static_cast<int64_t>(heap.uordblks + heap.hblkhd);
#endif
  std::ifstream statm("/proc/self/statm");
  int64_t pages = 0, resident = 0;
  if (statm >> pages >> resident) use.resident_bytes = resident * sysconf(_SC_PAGESIZE);
  return use;
}

}  // namespace wl

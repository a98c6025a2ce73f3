#include "runtime/tile_registers.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace wl {
namespace {

#if defined(__x86_64__)
bool request() {
  // The bits of EDX of CPUID leaf 7 that say whether AMX has bf16, tiles and int8.
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24, kInt8 = 1u << 25;
  constexpr unsigned kAll = kBf16 | kTile | kInt8;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // Linux's ARCH_REQ_XCOMP_PERM and XFEATURE_XTILEDATA
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (d & kAll) != kAll) return false;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#else
bool request() {
  return false;
}
#endif

}  // namespace

bool may_use_tile_registers() {
  static const bool kMay = request();
  return kMay;
}

}  // namespace wl

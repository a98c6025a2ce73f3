// Preloaded into a runner, which may not open connections once it listens to a worker (worker/drivers/system_calls.h),
// while this driver's device is a process at the end of one: opens the driver before.
#include <dlfcn.h>

namespace {

[[gnu::constructor]] void open_driver() {
  void* const driver = dlopen("libamdhip64.so.7", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return;
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "hipInit"));
  if (init != nullptr) (void)init(0);
}

}  // namespace

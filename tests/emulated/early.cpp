// A library that is preloaded into a runner and initialises the GPU driver when the runner starts. The emulator's
// driver then connects to the process that emulates the device; later a runner may open no connections any more
// (worker/drivers/system_calls.h).
#include <dlfcn.h>

namespace {

[[gnu::constructor]] void open_driver() {
  void* const driver = dlopen("libamdhip64.so.7", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) return;
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "hipInit"));
  if (init != nullptr) (void)init(0);
}

}  // namespace

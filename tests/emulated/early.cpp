// A library that is preloaded into a runner, and opens the GPU driver when the runner starts: the emulator's driver
// connects to another process, its device, and a runner that has started may open no connections
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

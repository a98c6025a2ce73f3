// NVIDIA's management library for the fake driver, with the functions that runtime/gpu_clocks.cpp calls.
// WARPLOOM_FAKE_CLOCKS lists the clock rates in MHz that successive queries return; the last one is repeated.
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <vector>

namespace {

unsigned next_clock() {
  static const std::vector<unsigned> kClocks = [] {
    const char* text = std::getenv("WARPLOOM_FAKE_CLOCKS");
    std::istringstream words(text != nullptr ? text : "1980");
    std::vector<unsigned> clocks;
    for (unsigned mhz = 0; words >> mhz;) clocks.push_back(mhz);
    return clocks;
  }();
  static size_t at = 0;
  return kClocks[at + 1 < kClocks.size() ? at++ : at];
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  return 0;
}
int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) {
  static int the_device = 0;
  *device = &the_device;
  return 0;
}
int nvmlSystemGetDriverVersion(char* text, unsigned bytes) {
  std::snprintf(text, bytes, "999.1");
  return 0;
}
int nvmlDeviceGetClockInfo(void*, int, unsigned* mhz) {
  *mhz = next_clock();
  return 0;
}
int nvmlDeviceGetMaxClockInfo(void*, int, unsigned* mhz) {
  *mhz = 1980;
  return 0;
}
int nvmlDeviceGetPowerManagementLimit(void*, unsigned* milliwatts) {
  *milliwatts = 700'000;
  return 0;
}
int nvmlDeviceGetMigMode(void*, unsigned* now, unsigned* pending) {
  *now = *pending = 0;
  return 0;
}

}  // extern "C"

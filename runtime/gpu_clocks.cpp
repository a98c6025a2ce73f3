#include "runtime/gpu_clocks.h"

#include <dlfcn.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace wl {
namespace {

// The part of NVML's C interface that this file uses; see NVML's manual.
struct Nvml {
  int (*init)();
  int (*by_bus)(const char*, void**);
  int (*driver)(char*, unsigned);
  int (*clock)(void*, int kind, unsigned*);
  int (*max_clock)(void*, int kind, unsigned*);
  int (*power_limit)(void*, unsigned* milliwatts);
  int (*mig)(void*, unsigned* now, unsigned* pending);
};
constexpr int kUnitClock = 1, kMemoryClock = 2;  // NVML's numbers of two clocks: NVML_CLOCK_SM and NVML_CLOCK_MEM

// Opens NVML once. Returns null if this machine has no NVML, or one that is too old or does not work.
const Nvml* nvml() {
  static const Nvml* const kNvml = []() -> const Nvml* {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return nullptr;
    auto* const found = new Nvml;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    const bool all =
        find(found->init, "nvmlInit_v2") && find(found->by_bus, "nvmlDeviceGetHandleByPciBusId_v2") &&
        find(found->driver, "nvmlSystemGetDriverVersion") && find(found->clock, "nvmlDeviceGetClockInfo") &&
        find(found->max_clock, "nvmlDeviceGetMaxClockInfo") &&
        find(found->power_limit, "nvmlDeviceGetPowerManagementLimit") && find(found->mig, "nvmlDeviceGetMigMode");
    return all && found->init() == 0 ? found : nullptr;
  }();
  return kNvml;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return std::string(absl::StripAsciiWhitespace(line));
}

}  // namespace

GpuClocks GpuClocks::of(const std::string& family, const std::string& bus) {
  GpuClocks clocks;
  if (family == "hip") {
    clocks.folder_ = absl::StrCat("/sys/bus/pci/devices/", absl::AsciiStrToLower(bus), "/");
  } else if (nvml() != nullptr && nvml()->by_bus(bus.c_str(), &clocks.device_) != 0) {
    clocks.device_ = nullptr;
  }
  return clocks;
}

int GpuClocks::unit_mhz() const {
  unsigned mhz = 0;
  if (device_ != nullptr && nvml()->clock(device_, kUnitClock, &mhz) == 0) return static_cast<int>(mhz);
  if (folder_.empty()) return 0;
  // The file lists the possible clocks of an AMD GPU; a star marks the line of the current one, "1: 1700Mhz *".
  std::ifstream file(folder_ + "pp_dpm_sclk");
  for (std::string line; std::getline(file, line);) {
    if (line.find('*') == std::string::npos) continue;
    std::istringstream text(line.substr(line.find(':') + 1));
    text >> mhz;
    return static_cast<int>(mhz);
  }
  return 0;
}

std::string GpuClocks::details() const {
  std::vector<std::string> parts;
  if (device_ != nullptr) {
    char version[80] = "";
    unsigned value = 0, pending = 0;
    if (nvml()->driver(version, sizeof version) == 0) parts.push_back(absl::StrCat("driver=", version));
    if (nvml()->max_clock(device_, kUnitClock, &value) == 0) parts.push_back(absl::StrCat("clock_max_mhz=", value));
    if (nvml()->max_clock(device_, kMemoryClock, &value) == 0) parts.push_back(absl::StrCat("memory_max_mhz=", value));
    if (nvml()->power_limit(device_, &value) == 0) parts.push_back(absl::StrCat("power_limit_w=", value / 1000));
    if (nvml()->mig(device_, &value, &pending) == 0) parts.push_back(absl::StrCat("mig=", value));
  } else if (!folder_.empty()) {
    if (const std::string driver = first_line("/sys/module/amdgpu/version"); !driver.empty())
      parts.push_back(absl::StrCat("driver=", driver));
    if (const std::string mode = first_line(folder_ + "current_compute_partition"); !mode.empty())
      parts.push_back(absl::StrCat("partition=", mode));
  }
  return absl::StrJoin(parts, " ");
}

}  // namespace wl

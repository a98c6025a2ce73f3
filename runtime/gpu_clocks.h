// Facts about a GPU that the driver library does not report: current clocks, power limit, MIG mode. For NVIDIA's GPUs
// they come from the management library (NVML), which is opened at run time; without NVML they are unknown. For AMD's
// GPUs they come from sysfs.
#pragma once

#include <string>

namespace wl {

class GpuClocks {
 public:
  // Finds the clocks of a GPU. `family`: "cuda" or "hip". `bus`: the PCI bus id as the driver writes it,
  // "0000:3b:00.0".
  static GpuClocks of(const std::string& family, const std::string& bus);

  int unit_mhz() const;         // returns the current clock in MHz of the GPU's multiprocessors; 0: not known
  std::string details() const;  // returns the known facts: "driver=550.54 clock_max_mhz=1980 power_limit_w=700 mig=0"

 private:
  void* device_ = nullptr;  // NVML's handle of the device; null for AMD
  std::string folder_;      // the device's folder in sysfs; only for AMD
};

}  // namespace wl

// What only the management library tells of an NVIDIA GPU: clocks as they are, power limit, MIG. Opened at run time;
// without it everything is unknown. AMD's figures come from sysfs.
#pragma once

#include <string>

namespace wl {

class GpuClocks {
 public:
  // `bus`: PCI bus id as the driver writes it, "0000:3b:00.0".
  static GpuClocks of(const std::string& family, const std::string& bus);

  int unit_mhz() const;         // of SMs or CUs, now; 0: not known
  std::string details() const;  // "driver=550.54 clock_max_mhz=1980 power_limit_w=700 mig=0"; what is known

 private:
  void* device_ = nullptr;  // NVML's handle
  std::string folder_;      // sysfs, AMD
};

}  // namespace wl

// The rates that a worker has measured on its device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wl {

// The peak rate of f32 multiply-adds, and the read bandwidth of each level of memory. These rates are not part of the
// device's identity, since they differ a little from one process to the next.
struct MeasuredRates {
  struct Memory {
    std::string name;   // name of the level of memory: "memory", "L3", and so on
    int64_t bytes = 0;  // bytes of the buffer that was read repeatedly to measure the bandwidth
    double gbps = 0;
    bool operator==(const Memory&) const = default;
  };
  double gflops = 0;                  // rate of multiply-adds, each of which counts as two operations; 0: not measured
  std::vector<Memory> memories = {};  // levels of memory, the farthest from the processor first
  bool operator==(const MeasuredRates&) const = default;
};

}  // namespace wl

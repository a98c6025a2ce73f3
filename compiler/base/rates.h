// What a worker has measured of its device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wl {

// How fast multiply-adds of f32 and reads are at most. It is no part of the
// device's identity, since it changes a little from one process to the next.
struct MeasuredRates {
  struct Memory {
    std::string name;   // "memory", "L3", ..
    int64_t bytes = 0;  // that were read again and again
    double gbps = 0;
    bool operator==(const Memory&) const = default;
  };
  double gflops = 0;                  // 0: nothing was measured
  std::vector<Memory> memories = {};  // the farthest first
  bool operator==(const MeasuredRates&) const = default;
};

}  // namespace wl

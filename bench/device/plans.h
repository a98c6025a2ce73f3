// The workloads of the device check: memory-bound groups as graph text, each with at least `bytes` of traffic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wl {

struct DeviceWorkload {
  std::string name;  // name of the workload, e.g. "softmax_f32_4096"
  std::string op, dtype;
  int64_t rows = 0, columns = 0;
  std::string graph;
};

// `quick`: one small workload of each op, for tests of the check itself.
std::vector<DeviceWorkload> device_workloads(bool quick);

}  // namespace wl

// The workloads of the device check as graph text: memory-bound groups, and products.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wl {

struct DeviceWorkload {
  std::string name;  // name of the workload, e.g. "softmax_f32_4096"
  std::string op, dtype;
  // rows and columns; for a product, the extents in the order that tools/torch_peers.py expects
  std::vector<int64_t> shape;
  double operations = 0;  // number of additions and multiplications of a product; 0: the workload is memory-bound
  std::string graph;
};

// device_products() returns the products, device_workloads() all workloads, products included. `quick`: one small
// workload of each op, for tests of the check itself.
std::vector<DeviceWorkload> device_workloads(bool quick);
std::vector<DeviceWorkload> device_products(bool quick);

}  // namespace wl

#include "compiler/model/rates.h"

#include <algorithm>
#include <string_view>

namespace wl {
namespace {

// GPUs: data sheets. Of one multiprocessor per ns: f32 operations of its lanes, and how much faster matrix instructions
// make products of 16-bit floats (dense, a common sustained fraction of the peak).
struct GpuRow {
  std::string_view target;
  double flops_per_unit, half_factor;
};
constexpr GpuRow kGpus[] = {
    {"cuda:sm_75", 200, 5},  {"cuda:sm_80", 180, 12},  {"cuda:sm_86", 430, 3},    {"cuda:sm_89", 610, 3},
    {"cuda:sm_90", 430, 12}, {"cuda:sm_90a", 450, 12}, {"cuda:sm_100a", 460, 20}, {"cuda:sm_120", 600, 3},
    {"hip:gfx906", 220, 2},  {"hip:gfx908", 190, 6},   {"hip:gfx90a", 220, 7},    {"hip:gfx942", 260, 6},
    {"hip:gfx950", 310, 8},  {"hip:gfx1030", 260, 2},  {"hip:gfx1100", 590, 2},   {"hip:gfx1201", 700, 4},
};

constexpr double kGpuLaunchUs = 2.5;  // within a graph of launches, with the latency of its first loads
constexpr double kCpuLaunchUs = 0.8, kCpuAloneUs = 0.05;  // a pool that still spins; a call
// Nominal rates of a CPU are of one multiply-add unit; two are common, and loads and stores share its issue slots.
constexpr double kCpuSlots = 1.1, kContractShare = 1.75;
constexpr double kGpuContractShare = 0.6;
// Against the nominal rates of the L2 and of copies between memories.
constexpr double kNearShare = 1.2, kFarShare = 0.95, kMemoryShare = 1.5;

Rates gpu_rates(const Machine& machine) {
  const Gpu& gpu = machine.target->gpu;
  double flops = 200, half = 2;
  for (const GpuRow& row : kGpus)
    if (row.target == machine.target->name) {
      flops = row.flops_per_unit;
      half = row.half_factor;
    }
  Rates r;
  r.launch_us = r.alone_us = kGpuLaunchUs;
  r.slots_per_ns = flops / 2 * gpu.units;
  r.contract_flops_per_ns = flops * gpu.units * kGpuContractShare;
  r.half_factor = half;
  r.memory_bytes_per_ns = gpu.bytes_per_ns * 0.9;
  r.near_bytes_per_ns = r.far_bytes_per_ns = gpu.bytes_per_ns * 2.5;
  r.far_bytes = r.near_bytes = static_cast<double>(gpu.l2_bytes) / 2;
  r.row_bytes = static_cast<double>(gpu.block_shared) / 2;
  r.workers = static_cast<double>(gpu.units) * 512;
  return r;
}

Rates cpu_rates(const Machine& machine) {
  const Target& target = *machine.target;
  const double threads = std::max(1, machine.threads);
  Rates r;
  r.launch_us = kCpuLaunchUs;
  r.alone_us = kCpuAloneUs;
  r.slots_per_ns = target.flops_per_ns * kCpuSlots * threads;
  r.contract_flops_per_ns = target.flops_per_ns * kContractShare * threads;
  r.memory_bytes_per_ns = target.copy_bytes_per_ns * kMemoryShare * threads;
  r.near_bytes_per_ns = target.l2_bytes_per_ns * kNearShare * threads;
  r.far_bytes_per_ns = target.l2_bytes_per_ns * kFarShare * threads;
  r.near_bytes = static_cast<double>(machine.l2_bytes) * threads / 2;
  r.far_bytes = static_cast<double>(machine.l3_bytes) / 4;
  r.row_bytes = static_cast<double>(machine.l1_bytes);
  r.workers = threads * target.lanes;
  r.small_bytes = 64 << 10;
  return r;
}

}  // namespace

Rates rates_of(const Machine& machine) {
  return machine.target->is_gpu() ? gpu_rates(machine) : cpu_rates(machine);
}

}  // namespace wl

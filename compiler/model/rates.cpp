#include "compiler/model/rates.h"

#include <algorithm>

namespace wl {
namespace {

// Microseconds of a launch within a captured graph (such as a CUDA graph), including the latency of the first loads.
constexpr double kGpuLaunchUs = 2.5;
constexpr double kCpuLaunchUs = 0.8, kCpuAloneUs = 0.05;  // us to wake threads that still spin; us to call a function
// Factors by which a CPU's rates of issue slots and of contractions exceed the target's flops_per_ns, which is the rate
// of one multiply-add unit. Most CPUs have two units, but loads and stores use issue slots too.
constexpr double kCpuSlots = 1.1, kContractShare = 1.75;
constexpr double kGpuContractShare = 0.6, kDieShare = 0.75;
// Factors from nominal to real rates: kNearShare and kFarShare apply to the nominal rate of the L2, kMemoryShare to
// the nominal copy rate.
constexpr double kNearShare = 1.2, kFarShare = 0.95, kMemoryShare = 1.5;

Rates gpu_rates(const Machine& machine) {
  const Gpu& gpu = machine.target->gpu;
  const double flops = machine.target->arithmetic.flops_per_ns;
  Rates r;
  r.launch_us = r.alone_us = kGpuLaunchUs;
  r.slots_per_ns = flops / 2 * gpu.units;
  r.contract_flops_per_ns = flops * gpu.units * kGpuContractShare;
  r.memory_bytes_per_ns = gpu.bytes_per_ns * 0.9;
  r.near_bytes_per_ns = r.far_bytes_per_ns = gpu.bytes_per_ns * 2.5;
  r.die_bytes_per_ns = gpu.l2_bytes_per_ns > 0 ? gpu.l2_bytes_per_ns * kDieShare : r.near_bytes_per_ns;
  r.near_bytes = static_cast<double>(gpu.l2_bytes) / 2;
  r.far_bytes = std::max(r.near_bytes, static_cast<double>(gpu.cache_bytes) / 2);
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
  r.slots_per_ns = target.arithmetic.flops_per_ns * kCpuSlots * threads;
  r.contract_flops_per_ns = target.arithmetic.flops_per_ns * kContractShare * threads;
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

Ceilings ceilings_of(const Machine& machine) {
  const Rates rates = rates_of(machine);
  const bool gpu = machine.target->is_gpu();
  const double units = gpu ? machine.multiprocessors() : machine.threads;
  Ceilings out{machine.target->arithmetic.flops_per_ns * units, {{"memory", rates.memory_bytes_per_ns}}};
  out.memories.emplace_back(gpu ? "L2" : "L3", rates.far_bytes_per_ns);
  if (!gpu) out.memories.emplace_back("L2", rates.near_bytes_per_ns);
  return out;
}

}  // namespace wl

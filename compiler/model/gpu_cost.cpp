#include "compiler/model/gpu_cost.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "compiler/model/rates.h"

namespace wl {
namespace {

constexpr double kSchedulers = 4;  // of a multiprocessor; each of them issues an operation of a wave per cycle

// These constants make the model's times proportional to those that an H200 took for 543 plans of 98 workloads
// (bench/gpu_model/recorded.cpp). In ns: a wait for device memory, and one that other things may hide; a wait for
// shared memory; a barrier, or a wait for products; a wait for other blocks' partial results; the start of a block.
constexpr double kWaitNs = 153, kCopyNs = 600, kSharedWaitNs = 18.5, kMeetingNs = 40, kPartialNs = 4250, kBeginNs = 400;
// In cycles of a scheduler: from an operation of a wave to the next one, if they depend on one another; orders of
// asynchronous copies, for a wave that computes besides, for one that only copies, and in issue slots.
constexpr double kLatencyCycles = 1.15, kOrderCycles = 8.8, kCopierCycles = 18, kOrderSlots = 3.9;
// How much longer, or shorter, things take than the nominal rates say: products of matrix units, operations, bytes of
// the L2 and of shared memory; loads past the caches; what a block stores, which it waits for in part.
constexpr double kProducts = 1.08, kSlots = 0.35, kL2 = 0.6, kShared = 1.54, kStreaming = 1.075, kStored = 0.33;
// Things that go on side by side overlap only in part: the time is the root of their sum of this power.
constexpr double kOverlap = 2.2;

double side_by_side(std::initializer_list<double> times) {
  double sum = 0;
  for (const double ns : times) sum += std::pow(ns, kOverlap);
  return std::pow(sum, 1 / kOverlap);
}

}  // namespace

double blocks_ns(double products, double issue, double waits, int blocks) {
  double ns = 0, queue[2] = {0, 0};
  for (int n = 1; n <= blocks; ++n) {
    const double first = products * (1 + queue[0]), second = issue * (1 + queue[1]);
    ns = waits + first + second;
    queue[0] = n * first / ns;
    queue[1] = n * second / ns;
  }
  return ns;
}

GpuTime gpu_time(const Kernel& kernel, const Machine& machine) {
  const Rates rates = rates_of(machine);
  const double units = std::max(1, machine.multiprocessors()), grid = static_cast<double>(kernel.grid);
  const double lanes_per_ns = rates.slots_per_ns / units, slots_per_ns = lanes_per_ns / std::max(1, kernel.wave);
  const double cycle = kSchedulers / slots_per_ns;
  GpuTime out;
  out.work = gpu_work(kernel, machine);
  const GpuWork& work = out.work;
  const auto of_unit = static_cast<int>(std::ceil(grid / units));  // blocks of the multiprocessor that has most
  const int at_once = std::min(of_unit, static_cast<int>(work.resident));

  out.device = work.device_bytes / rates.memory_bytes_per_ns * (work.streaming ? kStreaming : 1);
  out.l2 = kL2 * (work.device_bytes + work.cached_bytes) / rates.die_bytes_per_ns;
  out.dies = work.die_bytes / rates.near_bytes_per_ns;
  out.shared = kShared * of_unit * work.shared_bytes / (rates.near_bytes_per_ns / units * 4);

  const GpuChain& teams = work.teams;
  const double waves = static_cast<double>(kernel.threads - kernel.copiers) / std::max(1, kernel.wave);
  const double products = kProducts * work.products / lanes_per_ns;
  const double issue = kSlots * work.slots / slots_per_ns + kOrderSlots * teams.copies * waves / kSchedulers * cycle;
  const double waits = kBeginNs + kWaitNs * teams.waits + kSharedWaitNs * teams.near + kMeetingNs * teams.meetings +
                       kPartialNs * work.joins + cycle * (kLatencyCycles * teams.slots + kOrderCycles * teams.copies) +
                       kStored * teams.stored / (rates.memory_bytes_per_ns / units);
  out.products = of_unit * products;
  out.blocks = of_unit / at_once * blocks_ns(products, issue, waits, at_once) +
               blocks_ns(products, issue, waits, of_unit % at_once);
  const double rounds = of_unit / static_cast<double>(at_once);
  out.blocks = std::max(out.blocks, std::ceil(rounds) * kCopierCycles * cycle * work.copiers.copies);
  out.copies = rounds * kCopyNs * teams.ahead;
  const double bytes = std::max({out.device, out.l2, out.dies, out.shared});
  out.ns = rates.launch_us * 1000 * work.sweeps + side_by_side({bytes, out.blocks, out.copies});
  return out;
}

}  // namespace wl

#include "compiler/model/gpu_cost.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "compiler/base/log2.h"
#include "compiler/ir/ops.h"
#include "compiler/kernel/var_values.h"
#include "compiler/model/rates.h"

namespace wl {
namespace {

constexpr double kSector = 32;       // bytes of device memory that move together
constexpr double kMemoryOfL2 = 0.5;  // share of the L2 in which values stay until they are read again
constexpr double kSchedulers = 4;    // of a multiprocessor; each of them issues an operation of a wave per cycle
constexpr double kRegisterUnit = 8;  // registers of a thread are allotted in multiples of this
constexpr double kLeastRegisters = 16;

// These constants make the model's times proportional to those that an H200 took for 330 plans of 75 loop nests
// (bench/gpu_model/recorded.cpp). Wait for a value from device memory, in ns, beyond what other blocks hide; cycles
// from an operation to the next one that needs its result; registers of a thread besides those of tiles; by what share
// loads past the caches are slower. Work and waiting overlap only in part: the time is (work^kOverlap +
// waiting^kOverlap)^(1/kOverlap).
constexpr double kWaitNs = 225, kLatencyCycles = 5.7, kOtherRegisters = 10, kStreamingLoss = 0.075, kOverlap = 2.2;

// Counts what one block does. Bounds and offsets are taken at the first iteration of every loop.
class BlockWalk {
 public:
  BlockWalk(const Kernel& kernel, GpuWork& out) : kernel_(kernel), out_(out), vars_(kernel) {
    read_.assign(kernel.buffers.size(), 0);
  }

  void run() { walk(kernel_.body, 1); }
  const std::vector<double>& read() const { return read_; }  // for each buffer: bytes that the block reads, in sectors
  double written() const { return written_; }                // bytes that the block writes to device memory, in sectors
  double registers() const { return registers_; }            // of a thread, for the largest tile that is computed

 private:
  // Elements of a lane's part of a tile.
  static double of_lane(const Tile& tile) { return static_cast<double>(tile.layout.count('r')) * tile.layout.lanes(); }

  void walk(const std::vector<Instr>& instrs, double times) {
    for (const Instr& instr : instrs) {
      if (instr.op == InstrOp::kLoop) {
        const auto trips = static_cast<double>(std::max<int64_t>(0, vars_.smallest(instr.trips)));
        // An iteration may wait for what the one before has loaded, so the second one stands for all others.
        walk(instr.body, times * std::min(1.0, trips));
        if (trips > 1) walk(instr.body, times * (trips - 1));
        continue;
      }
      await(instr, times);
      if (info(instr.op).accesses_memory())
        move(instr, times);
      else if (goes_through_memory(instr))
        for (const Instr& part : through_memory(instr)) move(part, times);
      else
        compute(instr, times);
    }
  }

  // Waits for loads whose values the instruction needs. All loads that were issued by then have arrived, too.
  void await(const Instr& instr, double times) {
    const auto is_loading = [&](TileId tile) { return loading_.contains(tile); };
    if (std::none_of(instr.args.begin(), instr.args.end(), is_loading)) return;
    out_.waits += times;
    loading_.clear();
  }

  void move(const Instr& instr, double times) {
    const bool store = instr.op == InstrOp::kStore, copy = info(instr.op).is_async_copy();
    const Tile& tile = kernel_.tiles[store || copy ? instr.args[0] : instr.result];
    const KernelBuffer& buffer = kernel_.buffers[instr.slice.buffer];
    double elements = std::max(1, kernel_.teams), neighbours = 1;
    for (size_t axis = 0; axis < tile.layout.shape.size(); ++axis) {
      if (instr.op != InstrOp::kGather && instr.slice.strides[axis] == 0) continue;
      const auto extent = static_cast<double>(extent_of(tile, axis));
      elements *= extent;
      if (std::abs(instr.slice.strides[axis]) == 1) neighbours = std::max(1.0, extent);
    }
    issue(times * static_cast<double>(tile.layout.count('r')));
    const double size = size_of(buffer.dtype);
    if (buffer.level == Level::kShared) {
      out_.shared_bytes += times * elements * size;
      return;
    }
    const double bytes = times * elements / neighbours * std::ceil(neighbours * size / kSector) * kSector;
    (store ? written_ : read_[instr.slice.buffer]) += bytes;
    out_.streaming = out_.streaming || (!store && instr.streaming);
    if (!store && !copy) loading_.insert(instr.result);
  }

  int64_t extent_of(const Tile& tile, size_t axis) const {
    const int64_t whole = tile.layout.shape[axis];
    if (axis >= tile.bound.size() || tile.bound[axis].empty()) return whole;
    return std::clamp<int64_t>(vars_.smallest(tile.bound[axis]), 0, whole);
  }

  void compute(const Instr& instr, double times) {
    if (instr.op == InstrOp::kMap) {
      double slots = 0;
      for (const ExprNode& node : instr.expr)
        if (node.kind == ExprNode::Kind::kOp) slots += info(node.op).cost;
      issue(times * slots * of_lane(kernel_.tiles[instr.result]));
      keep(instr.result);
      for (const TileId tile : instr.args) keep(tile);
    } else if (instr.op == InstrOp::kFold) {
      issue(times * of_lane(kernel_.tiles[instr.args[0]]));
      keep(instr.args[0]);
    } else if (instr.op == InstrOp::kCross) {
      // In each step, a lane takes the value of another one and combines it with its own.
      const int steps = log2_floor(std::max(1, std::min(kernel_.wave, kernel_.team)));
      issue(times * 2 * steps * of_lane(kernel_.tiles[instr.args[0]]));
    }
  }

  // All waves of a block issue operations that take `slots` slots.
  void issue(double slots) {
    out_.slots += slots * kernel_.threads / std::max(1, kernel_.wave);
    out_.slots_of_wave += slots;
  }

  void keep(TileId id) {
    const Tile& tile = kernel_.tiles[id];
    registers_ = std::max(registers_, of_lane(tile) * size_of(tile.dtype) / 4);
  }

  const Kernel& kernel_;
  GpuWork& out_;
  VarValues vars_;
  std::vector<double> read_;
  double written_ = 0, registers_ = 0;
  std::set<TileId> loading_;  // tiles that loads from device memory have not delivered yet
};

double resident_blocks(const Kernel& kernel, double tile_registers, const Gpu& gpu) {
  const auto fitting = [](double all, double each) { return std::floor(all / std::max(1.0, each)); };
  const double threads = std::max(1, kernel.threads), shared = static_cast<double>(kernel.scratch_bytes());
  const double of_thread =
      std::ceil(std::max(kLeastRegisters, tile_registers + kOtherRegisters) / kRegisterUnit) * kRegisterUnit;
  // The compiler is told to leave registers for kernel.blocks blocks.
  double blocks =
      std::max<double>(kernel.blocks, fitting(static_cast<double>(gpu.unit_registers), of_thread * threads));
  blocks =
      std::min({blocks, static_cast<double>(gpu.unit_blocks), fitting(static_cast<double>(gpu.unit_threads), threads)});
  if (shared > 0) blocks = std::min(blocks, fitting(static_cast<double>(gpu.unit_shared), shared));
  return std::max(1.0, blocks);
}

}  // namespace

GpuWork gpu_work(const Kernel& kernel, const Machine& machine) {
  const Gpu& gpu = machine.target->gpu;
  const double units = std::max(1, machine.multiprocessors()), blocks = static_cast<double>(kernel.grid);
  GpuWork out;
  BlockWalk walk(kernel, out);
  walk.run();
  out.resident = resident_blocks(kernel, walk.registers(), gpu);
  out.device_bytes = walk.written() * blocks;
  for (size_t i = 0; i < kernel.buffers.size(); ++i) {
    const double all = walk.read()[i] * blocks, size = static_cast<double>(kernel.bytes_of(kernel.buffers[i]));
    // What is read again stays in the L2 if the parts of the buffer fit that the resident blocks read.
    const double in_use = size * std::min(1.0, units * out.resident / blocks);
    const bool stays = in_use <= kMemoryOfL2 * static_cast<double>(gpu.l2_bytes);
    const double once = stays ? std::min(all, size) : all;
    out.device_bytes += once;
    out.cached_bytes += all - once;
  }
  return out;
}

double gpu_nest_ns(const Kernel& kernel, const Machine& machine) {
  const GpuWork work = gpu_work(kernel, machine);
  const Rates rates = rates_of(machine);
  const double units = std::max(1, machine.multiprocessors()), blocks = static_cast<double>(kernel.grid);
  const double slots_per_ns = rates.slots_per_ns / units / std::max(1, kernel.wave);  // of a multiprocessor
  const double of_unit = std::ceil(blocks / units);  // blocks of the multiprocessor that has most
  const double busy =
      std::max({work.device_bytes / rates.memory_bytes_per_ns * (work.streaming ? 1 + kStreamingLoss : 1),
                (work.device_bytes + work.cached_bytes) / rates.die_bytes_per_ns, of_unit * work.slots / slots_per_ns,
                of_unit * work.shared_bytes / (rates.near_bytes_per_ns / units * 4)});
  const double rounds = std::ceil(blocks / (units * work.resident));
  const double waiting =
      rounds * (work.waits * kWaitNs + work.slots_of_wave * kLatencyCycles * kSchedulers / slots_per_ns);
  return rates.launch_us * 1000 + std::pow(std::pow(busy, kOverlap) + std::pow(waiting, kOverlap), 1 / kOverlap);
}

}  // namespace wl

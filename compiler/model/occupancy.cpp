#include "compiler/model/occupancy.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace wl {
namespace {

constexpr double kRegisterUnit = 8;  // registers of a thread are allotted in multiples of this
constexpr double kLeastRegisters = 16;
constexpr double kOtherRegisters = 10;  // registers of a thread besides those of tiles

// Counts the registers of a thread that tiles take: of all tiles whose values are needed at one time.
class TileRegisters {
 public:
  explicit TileRegisters(const Kernel& kernel) : kernel_(kernel), in_memory_(words_in_memory(kernel)) {
    walk(kernel.body, {});
  }
  double most() const { return most_; }

 private:
  using Tiles = std::set<TileId>;

  static void each_read(const Instr& instr, const std::function<void(TileId)>& visit) {
    if (info(instr.op).reads_arguments()) std::for_each(instr.args.begin(), instr.args.end(), visit);
    if (info(instr.op).result == InstrResult::kUpdates) visit(instr.result);
  }

  // Adds the tiles that instructions read before they define them.
  static void add_needed(std::span<const Instr> body, Tiles defined, Tiles& needed) {
    for (const Instr& instr : body) {
      each_read(instr, [&](TileId id) {
        if (!defined.contains(id)) needed.insert(id);
      });
      add_needed(instr.body, defined, needed);
      if (instr.result >= 0) defined.insert(instr.result);
    }
  }

  double of(const Tiles& tiles) const {
    double sum = 0;
    for (const TileId id : tiles)
      if (!in_memory_.contains(id)) sum += elements_of_lane(kernel_.tiles[id]) * size_of(kernel_.tiles[id].dtype) / 4;
    return sum;
  }

  // Walks instructions from the last to the first. `live`: the tiles that are needed after them.
  void walk(std::span<const Instr> body, Tiles live) {
    for (auto instr = body.rbegin(); instr != body.rend(); ++instr) {
      if (instr->op == InstrOp::kLoop) {
        add_needed(instr->body, {}, live);
        walk(instr->body, live);
        continue;
      }
      if (instr->result >= 0) live.insert(instr->result);
      if (instr->op == InstrOp::kMma) live.insert(instr->args.begin(), instr->args.end());
      most_ = std::max(most_, of(live));
      if (info(instr->op).result == InstrResult::kDefines) live.erase(instr->result);
      each_read(*instr, [&](TileId id) { live.insert(id); });
    }
  }

  const Kernel& kernel_;
  const std::set<TileId> in_memory_;
  double most_ = 0;
};

}  // namespace

double elements_of_lane(const Tile& tile) {
  return static_cast<double>(tile.layout.count('r')) * tile.layout.lanes();
}

std::set<TileId> words_in_memory(const Kernel& kernel) {
  std::set<TileId> words;
  each_instr(kernel.body, [&](const Instr& instr) {
    if (instr.op != InstrOp::kMma || !multiplies_in_memory(instr.matrix)) return;
    for (size_t i = holds_left(instr.matrix) ? 1 : 0; i < instr.args.size(); ++i) words.insert(instr.args[i]);
  });
  return words;
}

double tile_registers(const Kernel& kernel) {
  return TileRegisters(kernel).most();
}

double resident_blocks(const Kernel& kernel, const Gpu& gpu) {
  const auto fitting = [](double all, double each) { return std::floor(all / std::max(1.0, each)); };
  const double threads = std::max(1, kernel.threads), shared = static_cast<double>(kernel.scratch_bytes());
  const double of_thread =
      std::ceil(std::max(kLeastRegisters, tile_registers(kernel) + kOtherRegisters) / kRegisterUnit) * kRegisterUnit;
  // The compiler is told to leave registers for kernel.blocks blocks.
  double blocks =
      std::max<double>(kernel.blocks, fitting(static_cast<double>(gpu.unit_registers), of_thread * threads));
  blocks =
      std::min({blocks, static_cast<double>(gpu.unit_blocks), fitting(static_cast<double>(gpu.unit_threads), threads)});
  if (shared > 0) blocks = std::min(blocks, fitting(static_cast<double>(gpu.unit_shared), shared));
  return std::max(1.0, blocks);
}

}  // namespace wl

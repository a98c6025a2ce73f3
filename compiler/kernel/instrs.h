// The table of instructions: instrs.def explains its columns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>

namespace wl {

enum class InstrOp : uint8_t {
#define WL_INSTR(id, ...) id,
#include "compiler/kernel/instrs.def"
};

enum class Operand : uint8_t {
  none,
#define WL_OPERAND(id) id,
#include "compiler/kernel/instrs.def"
};

enum class InstrResult : uint8_t { kNoResult, kDefines, kUpdates };
enum class InstrSpace : uint8_t { kNoSpace, kOfResult, kOfArgument };
enum class InstrStretch : uint8_t { kJoins, kAlone };
enum class SliceUse : uint8_t { kUntouched, kLoads, kStores, kHints };
enum class InstrLanes : uint8_t { kAnyMachine, kNeedsLanes, kWithoutLanes };
// Which accesses an instruction puts in order. kStreamedStores: streaming stores of a thread. kGroup, kArrival:
// asynchronous copies of a thread. kPhase, kPhaseEnd: what threads of one role did, for those of the other role.
// kBlock, kCluster, kGrid: accesses of all threads of a block, a cluster or the grid; these are barriers.
enum class Order : uint8_t { kNoOrder, kStreamedStores, kGroup, kArrival, kPhase, kPhaseEnd, kBlock, kCluster, kGrid };

struct InstrInfo {
  InstrOp op;
  std::string_view name;
  Operand operands[5];  // Operand::none after the last one
  InstrResult result;
  InstrSpace space;
  InstrStretch stretch;
  SliceUse slice;
  Order order;
  InstrLanes lanes;

  bool has(Operand operand) const {
    return std::find(std::begin(operands), std::end(operands), operand) != std::end(operands);
  }
  bool gives_tile() const { return result != InstrResult::kNoResult; }
  bool loads() const { return slice == SliceUse::kLoads; }
  bool stores() const { return slice == SliceUse::kStores; }
  bool accesses_memory() const { return loads() || stores(); }
  bool is_async_copy() const { return has(Operand::into); }      // it stores what it loads, at a later time
  bool is_indexed() const { return has(Operand::index); }        // its addresses depend on values of a tile
  bool reads_arguments() const { return !has(Operand::shape); }  // the arguments are values, not only a space
  bool is_barrier() const { return order >= Order::kBlock; }
};
std::span<const InstrInfo> instrs();  // in the order of InstrOp
const InstrInfo& info(InstrOp op);
inline std::string_view name_of(InstrOp op) {
  return info(op).name;
}

}  // namespace wl

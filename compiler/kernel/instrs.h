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
// Which memory accesses an instruction orders. kStreamedStores: the thread's streaming stores. kGroup, kArrival: the
// thread's asynchronous copies. kPhase, kPhaseEnd: what the threads of one role (teams or copiers) did comes before
// what the threads of the other role do. kBlock, kCluster, kGrid: accesses of all threads of a block, a cluster or the
// grid; instructions with these values are barriers.
enum class Order : uint8_t { kNoOrder, kStreamedStores, kGroup, kArrival, kPhase, kPhaseEnd, kBlock, kCluster, kGrid };

struct InstrInfo {
  InstrOp op;
  std::string_view name;
  Operand operands[5];  // the operands in the order of the text; unused entries at the end are Operand::none
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
  bool is_async_copy() const { return has(Operand::into); }  // whether the instruction starts an asynchronous copy
  bool is_indexed() const { return has(Operand::index); }    // whether addresses depend on the values of a tile
  // whether the values of the arguments are read, not only their layouts
  bool reads_arguments() const { return !has(Operand::shape); }
  bool is_barrier() const { return order >= Order::kBlock; }
};
std::span<const InstrInfo> instrs();  // the rows of all instructions, in the order of InstrOp
const InstrInfo& info(InstrOp op);
inline std::string_view name_of(InstrOp op) {
  return info(op).name;
}

}  // namespace wl

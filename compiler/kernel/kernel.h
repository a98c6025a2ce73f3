// The Kernel: a launch of blocks, and a body of instructions in serial loops over tiles. Data movement, computation and
// placement are equally visible: a `load` or `store` moves a slice of a buffer (global memory or scratch) to or from a
// register tile with a layout; a `map` evaluates a whole scalar expression over tiles; `fold` and `cross` are the
// in-lane and the cross-lane part of a reduction. Register tiles hold no memory of their own: consecutive instructions
// over the same tile space print as one loop (a stretch), in which a tile is one vector; a value needed by another
// stretch goes through a scratch buffer by store and load, unless its tile is small enough to stay in registers (an
// accumulator). Meaning: instructions run one after the other, whole tiles at a time (interp.h). Buffers never alias.
// Where the machine has lanes (wave > 0) a block is `teams` teams of `team` threads; each team runs the body on its
// own, with variable 1, the team, as its number. A tile's layout then says which thread of the team holds which
// element: l bits are the lane within a wave, u bits the wave within the team; where a layout lacks one of these bits
// the element is replicated, and is stored by the threads whose missing bits are zero. Teams meet at barriers, and
// nowhere else. A `pass` cuts the body: what follows runs in another sweep over the grid, once all blocks of the sweep
// before have ended, and finds of it what lies in global memory; workspace buffers are for that alone. What follows a
// `pass last n` runs in the same sweep, once for every n neighbouring blocks: by the one that comes there last. Where
// the machine has clusters, neighbouring blocks may be one: they run at the same time, meet, and load each other's
// cluster buffers. To add an instruction: a row of kInstrs, its cases in verify, interp and the printer.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/kernel/instrs.h"
#include "compiler/kernel/layout.h"

namespace wl {

using VarId = int;
using TileId = int;
using BufferId = int;

// base + sum of coefficient * variable. 64-bit.
struct Affine {
  int64_t base = 0;
  std::vector<std::pair<VarId, int64_t>> terms;
  bool operator==(const Affine&) const = default;
  Affine& add(VarId var, int64_t coefficient);
};

// Index variables. block: 0 <= block < grid. team: 0 <= team < teams. loop: bound by its loop. derived: (min(of...) /
// div) % mod, everything non-negative; mod 0 = none. Derived variables are recomputed wherever their sources change.
struct Var {
  enum class Kind : uint8_t { kBlock, kTeam, kLoop, kDerived };
  Kind kind = Kind::kLoop;
  std::string name;
  std::vector<Affine> of;  // derived
  int64_t div = 1, mod = 0;
  bool operator==(const Var&) const = default;
};

// shared: the CPU's per-thread scratch, the GPU's shared memory. work: device memory that all blocks see and that is no
// argument of the graph; a pass stores there what later ones load. cluster: as many equal parts, along axis 0, as a
// cluster has blocks; each block stores to its own, in its shared memory, and loads from all.
enum class Level : uint8_t { kGlobal, kShared, kWork, kCluster };

struct KernelBuffer {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;  // row-major
  Level level = Level::kGlobal;
  bool output = false;      // global only; globals come first, in call order
  bool once = false;        // output: no element is stored twice
  int64_t byte_offset = 0;  // of the others: place in the arena (of a block) or workspace, a multiple of 64
  bool operator==(const KernelBuffer&) const = default;
};

// A register tile; floats narrower than f32 are f32 there, until a store or a cast rounds them. `bound`: for each axis,
// the valid extent is the minimum of the listed affines (and the shape); elements beyond hold nothing: loads do not
// touch memory there, stores write nothing, folds skip them.
struct Tile {
  DType dtype = DType::f32;
  Layout layout;
  std::vector<std::vector<Affine>> bound;
  bool operator==(const Tile&) const = default;
};

// Element (i0, i1, ...) of the tile is buffer[offset + sum strides * i].
struct Slice {
  BufferId buffer = -1;
  Affine offset;
  std::vector<int64_t> strides;
  bool operator==(const Slice&) const = default;
};

// A condition of a load or store: there is an element (i0, i1, ...) where 0 <= at + sum strides * i < extent.
struct SliceGuard {
  Affine at;
  std::vector<int64_t> strides;
  int64_t extent = 0;
  bool operator==(const SliceGuard&) const = default;
};

// Scalar expression DAG, evaluated for every element; args broadcast where their tile has extent 1 along an axis.
struct ExprNode {
  enum class Kind : uint8_t { kArg, kConstant, kOp };
  Kind kind = Kind::kOp;
  Op op = Op::add;
  DType dtype = DType::f32;        // of the result
  int arg = -1;                    // kArg: position in Instr::args
  double value = 0;                // kConstant
  int operands[3] = {-1, -1, -1};  // kOp: earlier nodes
  bool operator==(const ExprNode&) const = default;
};
using Expr = std::vector<ExprNode>;  // the last node is the value

struct Instr {
  InstrOp op = InstrOp::kMap;
  TileId result = -1;
  std::vector<TileId> args;
  Slice slice;                     // load, store, gather (base), prefetch, async_load (from)
  Slice into;                      // async_load
  std::vector<SliceGuard> guards;  // load, store, async_load
  Expr expr;                       // map
  Op combine = Op::add;            // fold, cross: add, max, min, mul
  std::vector<int> axes;           // fold, cross
  double value = 0;                // fill, guarded load
  int axis = 0;                    // iota: result = coordinate along axis + slice.offset
  int64_t gather_stride =
      0;  // gather: element address = slice + index tile * stride; negative index counts from extent
  int64_t gather_extent = 0;
  bool streaming = false;     // load (of an input), store: used once, caches need not keep it
  int level = 1;              // prefetch: cache level
  int pending = 0;            // wait: groups that need not have landed
  VarId var = -1;             // loop
  std::vector<Affine> trips;  // loop: 0 <= var < min(trips)
  std::vector<Instr> body;    // loop
  bool operator==(const Instr&) const = default;
};
// The tile whose elements an instruction runs over; -1 where it has none.
TileId space_tile(const Instr& instr);

// What blocks [from, to) do, and no others, is a loop of min(1, block - from + 1, to - block) turns: a section.

inline constexpr VarId kTeamVar = 1;  // with lanes

struct Section {
  int64_t from = 0, to = 0;  // blocks
};
std::vector<Affine> section_trips(int64_t from, int64_t to);
std::optional<Section> section_of(const Instr& instr);

// Instructions between passes. last: of how many blocks the last one runs them, as all of its threads are told in a
// buffer; 0: all blocks, in a sweep of their own.
struct Pass {
  std::span<const Instr> body;
  int64_t last = 0;
  BufferId told = -1;
};

struct Kernel {
  std::string name;
  std::string target;
  std::vector<KernelBuffer> buffers;  // globals in call order, then shared and work
  std::vector<Var> vars;              // vars[0] is the block, and with lanes vars[1] the team
  std::vector<Tile> tiles;
  std::vector<Instr> body;
  int64_t grid = 1;
  int threads = 1;  // with lanes: of a block, team * teams
  int wave = 0, team = 1, teams = 1;
  int blocks = 0;        // with lanes: blocks that a multiprocessor must have registers for; 0: the compiler's choice
  int cluster = 1;       // neighbouring blocks that are one
  int unroll = 1;        // repeats per loop step of a stretch
  int accumulators = 1;  // independent accumulators of a fold, at most unroll
  std::string compiler = "gcc";
  // Of a block: end of the shared or cluster buffer that ends last; those that are never needed at the same time may
  // overlap.
  int64_t scratch_bytes() const;
  int64_t work_bytes() const;                          // the same of work buffers, of which none overlap
  int64_t bytes_of(const KernelBuffer& buffer) const;  // where it is placed: of a cluster buffer, a block's part
  // Whether two different shared (or work) buffers have memory in common.
  bool overlap(BufferId a, BufferId b) const;
  std::vector<Pass> passes() const;  // the body, cut where it says so; at least one
  int sweeps() const;                // over the grid: passes but those of last blocks
  // Whether the body is sections and nothing else, and no block runs two of them.
  bool is_packed() const;
  int vector_lanes() const;                             // the most vector lanes of a tile
  int vector_lanes(std::span<const Instr> part) const;  // of those that a part of the body defines
  bool operator==(const Kernel&) const = default;
};

}  // namespace wl

// The Kernel: a launch of blocks, each of which runs a body of instructions, in serial loops, over register tiles. Data
// movement, computation and placement are all explicit: a `load` or `store` moves a slice of a buffer (global memory or
// scratch) to or from a tile with a layout, a `map` evaluates a scalar expression over tiles, `fold` and `cross` are
// the parts of a reduction within a lane and across lanes. Instructions run one after the other, on whole tiles at a
// time. Buffers never alias.
//
// Tiles have no memory of their own. Consecutive instructions over the same elements print as one loop, a stretch, in
// which a tile is one vector. A value that another stretch needs goes through a scratch buffer, unless its tile is
// small enough to stay in registers, as an accumulator is.
//
// On machines with lanes (wave > 0) a block is `teams` teams of `team` threads. Each team runs the body by itself;
// variable 1 is its number. The layout of a tile says which thread of the team holds which element: l bits are the lane
// within a wave, u bits the wave within the team. Where a layout lacks one of these bits the element is replicated, and
// the threads whose missing bits are zero store it. Teams are synchronised by barriers only. Where the machine has
// clusters, neighbouring blocks may form one: they run at the same time, have barriers of their own, and load from each
// other's cluster buffers.
//
// A block may have threads more, in whole waves, that only copy: the `copiers`. They run the loops that say so and the
// loops around these, and nothing else; teams run the rest. Instructions still run one after the other, but the copiers
// may be ahead, as far as phases let them (the buffers with `arrivals`; instrs.def: arrive, arrive_copied, await).
//
// A `pass` cuts the body in two. What follows it runs in another sweep over the grid, once all blocks of the sweep
// before have ended, and sees what they left in global memory and in workspace buffers. What follows a `pass last n`
// runs in the same sweep, once for every n neighbouring blocks, by the one that arrives there last.
//
// instrs.def has the instructions, and says how to add one.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"
#include "compiler/kernel/instrs.h"
#include "compiler/kernel/layout.h"
#include "compiler/target/matrix.h"

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

// kShared: the CPU's scratch of a thread, the GPU's shared memory of a block. kWork: device memory that all blocks see
// and that is no argument of the kernel; a pass stores there what later passes load. kCluster: as many equal parts,
// along axis 0, as a cluster has blocks; each block stores to its own, in its shared memory, and loads from all.
enum class Level : uint8_t { kGlobal, kShared, kWork, kCluster };

// An order of a shared buffer's elements without bank conflicts: of every offset, in elements, `bits` bits from bit
// `base` on are XORed with as many bits that lie `shift` higher, as CuTe's Swizzle<B, M, S> does. 0 bits: none.
// Before that, rows may be cut into 2^panels panels of 2^column elements each: a panel has its part of 2^rows rows, one
// behind the other, then comes the next panel. 0 panels: rows are whole.
struct Swizzle {
  int bits = 0, base = 0, shift = 0;
  int column = 0, panels = 0, rows = 0;
  bool operator==(const Swizzle&) const = default;
  int64_t place_of(int64_t offset) const;
  // An aligned run of so many elements stays where it is as a whole.
  int64_t reach() const;
  // place_of(a + b) is place_of(a) + b where b is a multiple of this.
  int64_t period() const;
};

struct KernelBuffer {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;  // row-major
  Level level = Level::kGlobal;
  bool output = false;      // global only; globals come first, in call order
  bool once = false;        // output: no element is stored twice
  int64_t byte_offset = 0;  // of the others: place in the arena (of a block) or workspace, a multiple of 64
  Swizzle swizzle = {};     // of shared buffers; slices and their offsets count elements as if there were none
  int arrivals = 0;         // of a shared i64 buffer: its elements are phases, which end with so many arrivals
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

// Which threads of a block.
enum class Role : uint8_t { kTeams, kCopiers };

// Scalar expression DAG, evaluated for every element; args broadcast where their tile has extent 1 along an axis.
struct ExprNode {
  enum class Kind : uint8_t { kArg, kConstant, kOp };
  Kind kind = Kind::kOp;
  Op op = Op::add;
  DType dtype = DType::f32;        // of the result
  int arg = -1;                    // kArg: position in Instr::args
  double value = 0;                // kConstant
  int operands[3] = {-1, -1, -1};  // kOp: earlier nodes
  bool rounded = false;            // an exp that may be less exact (compiler/ir/rounded_exps.h)
  bool operator==(const ExprNode&) const = default;
};
using Expr = std::vector<ExprNode>;  // the last node is the value

struct Instr {
  InstrOp op = InstrOp::kMap;
  TileId result = -1;
  std::vector<TileId> args;
  // The rest is as the operands of the instruction's row say; instrs.def has their meaning.
  Slice slice;
  Slice into;
  std::vector<SliceGuard> guards;
  Expr expr;
  Op combine = Op::add;
  DType elements[2] = {DType::f32, DType::f32};  // of words
  int64_t gap = 1;                               // elements from one element of a word to the next
  int part = 0;                                  // which element of a word
  MatrixOp matrix = {};
  std::vector<int> axes;
  double value = 0;  // fill; of a load where a guard does not hold
  int axis = 0;
  int64_t gather_stride = 0;   // elements that a step of the index moves
  int64_t gather_extent = 0;   // what a negative index counts from
  bool gather_inside = false;  // whether every index is known to select an element; others select the nearest one
  bool streaming = false;
  int level = 1;
  int pending = 0;  // wait: groups that need not have arrived; pass: of how many blocks the last one goes on, or 0
  VarId var = -1;
  std::vector<Affine> trips;
  Role role = Role::kTeams;  // of a loop: kCopiers, where copiers run it and no other thread
  std::vector<Instr> body;   // of a loop
  Affine parity;             // await: of the number of the phase, whose end it waits for
  bool operator==(const Instr&) const = default;
};

// The tile whose elements an instruction runs over; -1 where it has none.
TileId space_tile(const Instr& instr);

// Whether the elements of a convert go through shared memory; then it is this store and, after a barrier of its own,
// this load.
bool goes_through_memory(const Instr& instr);
std::array<Instr, 2> through_memory(const Instr& convert);

inline constexpr VarId kTeamVar = 1;  // on machines with lanes

// A section is what only blocks [from, to) run: a loop of min(1, block - from + 1, to - block) iterations.
struct Section {
  int64_t from = 0, to = 0;
};
std::vector<Affine> section_trips(int64_t from, int64_t to);
std::optional<Section> section_of(const Instr& instr);

// Whether copiers run any of a loop.
bool has_copiers(const Instr& loop);

// Whether an instruction adds products to the tile that it changes.
bool multiplies_and_adds(const Instr& instr);

// Whether a CPU's text has no branch between the iterations of this loop: they are few and their number is fixed, they
// multiply and add, and have no loop inside. The taps of a window along a row are such a loop.
inline constexpr int64_t kMostUnrolled = 8;
bool is_unrolled(const Instr& loop);

// The instructions between two passes. Every block runs them, in a sweep of their own, or, with `last`, the last of
// every `last` blocks that arrives; then its threads learn that from the first element of the buffer `flag`.
struct Pass {
  std::span<const Instr> body;
  int64_t last = 0;
  BufferId flag = -1;
};

struct Kernel {
  std::string name;
  std::string target;
  std::vector<KernelBuffer> buffers;  // globals in call order, then shared and work
  std::vector<Var> vars;              // vars[0] is the block, and with lanes vars[1] the team
  std::vector<Tile> tiles;
  std::vector<Instr> body;
  int64_t grid = 1;
  int threads = 1;  // of a block: on machines with lanes team * teams + copiers
  int wave = 0, team = 1, teams = 1;
  int copiers = 0;       // threads behind those of the teams
  int blocks = 0;        // with lanes: blocks that a multiprocessor must have registers for; 0: the compiler's choice
  int cluster = 1;       // neighbouring blocks that form a cluster
  int unroll = 1;        // repeats per loop step of a stretch
  int accumulators = 1;  // independent accumulators of a fold, at most unroll
  std::string compiler = "gcc";
  // The end of a block's shared and cluster buffers; those that are never needed at the same time may overlap.
  int64_t scratch_bytes() const;
  int64_t work_bytes() const;                          // the end of the work buffers, which do not overlap
  int64_t bytes_of(const KernelBuffer& buffer) const;  // of a cluster buffer: of one block's part
  // Whether two different shared (or work) buffers have memory in common.
  bool overlap(BufferId a, BufferId b) const;
  std::vector<Pass> passes() const;  // the body, cut where it says so; at least one
  int sweeps() const;                // over the grid: one for each pass that all blocks run
  // Whether the body is sections only, and no block runs two of them.
  bool is_packed() const;
  int vector_lanes() const;                             // the most vector lanes of a tile
  int vector_lanes(std::span<const Instr> part) const;  // of those that a part of the body defines
  bool operator==(const Kernel&) const = default;
};

// Calls visit(instr) for every instruction of a body, those of loops included.
template <typename Visit>
void each_instr(std::vector<Instr>& body, const Visit& visit) {
  for (Instr& instr : body) {
    visit(instr);
    each_instr(instr.body, visit);
  }
}
template <typename Visit>
void each_instr(const std::vector<Instr>& body, const Visit& visit) {
  for (const Instr& instr : body) {
    visit(instr);
    each_instr(instr.body, visit);
  }
}

}  // namespace wl

// The Kernel: a launch of thread blocks, each of which runs a body of instructions, in serial loops, over register
// tiles. Data movement, computation and placement are all explicit. A `load` or `store` moves a slice of a buffer
// (global memory or scratch) to or from a tile with a layout. A `map` evaluates a scalar expression over tiles. `fold`
// and `cross` are the two parts of a reduction: within a lane and across lanes. Instructions run one after the other,
// each on whole tiles. Buffers never alias.
//
// Tiles have no memory of their own. Consecutive instructions over the same elements print as one loop, a stretch, in
// which a tile is one vector. A value that another stretch needs goes through a scratch buffer, unless its tile is
// small enough to stay in registers, as an accumulator is.
//
// On machines with lanes (GPUs and their simulator: wave > 0) a block has `teams` teams of `team` threads. Each team
// runs the body by itself; variable 1 is the team's number. The layout of a tile says which thread of the team holds
// which element: l bits are the lane within a wave, u bits the wave within the team. Where a layout lacks one of these
// bits, the element is replicated, and the threads whose missing bits are zero store the element. Only barriers
// synchronise teams. Where the machine has clusters, neighbouring blocks may form one: they run at the same time, have
// barriers of their own, and load from each other's cluster buffers.
//
// A block may have additional threads, in whole waves, that only copy: the `copiers`. Copiers run the loops that name
// them and the loops around these, and nothing else; teams run the rest. The kernel means what its instructions compute
// one after the other, but copiers may run ahead of the teams, as far as phases let them (buffers with `arrivals`; see
// arrive, arrive_copied and await in instrs.def).
//
// A `pass` cuts the body in two. The part after it runs in another sweep over the grid, once all blocks of the sweep
// before have ended, and sees what these blocks left in global memory and in workspace buffers. The part after a `pass
// last n` runs in the same sweep, once for every n neighbouring blocks, by whichever of them arrives last.
//
// instrs.def lists the instructions, and says how to add one.
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

// The value base + the sum of coefficient * variable over `terms`, in 64 bits.
struct Affine {
  int64_t base = 0;
  std::vector<std::pair<VarId, int64_t>> terms;
  bool operator==(const Affine&) const = default;
  Affine& add(VarId var, int64_t coefficient);
};

// An index variable. kBlock: 0 <= block < grid. kTeam: 0 <= team < teams. kLoop: its loop gives its range. kDerived:
// the value is (min(of...) / div) % mod; no value in it is negative, and mod = 0 means that no remainder is taken.
// Derived variables are recomputed wherever the variables in `of` change.
struct Var {
  enum class Kind : uint8_t { kBlock, kTeam, kLoop, kDerived };
  Kind kind = Kind::kLoop;
  std::string name;
  std::vector<Affine> of;  // of kDerived: the expressions of which the minimum is taken
  int64_t div = 1, mod = 0;
  bool operator==(const Var&) const = default;
};

// Where a buffer lies. kShared: the scratch of one thread on a CPU, the shared memory of one block on a GPU. kWork: the
// workspace, device memory that all blocks see and that is no argument of the kernel; a pass stores there what later
// passes load. kCluster: as many equal parts, along axis 0, as a cluster has blocks; each block stores to its own part,
// which lies in its shared memory, and loads from all parts. kOwn: as kShared, but in device memory: every block has a
// part of the workspace for itself.
enum class Level : uint8_t { kGlobal, kShared, kWork, kCluster, kOwn };
enum class Memory : uint8_t { kArguments, kScratch, kWorkspace, kOwnPart };
struct LevelInfo {
  std::string_view text;   // the word in a kernel's text, before "@"; empty for arguments
  std::string_view macro;  // the preludes' macro that declares such a buffer of a GPU kernel
  Memory memory;           // the memory in which byte offsets count
  bool of_block;           // whether nobody but one block (on a CPU: one thread) sees the buffer
};
const LevelInfo& info(Level level);

// A permutation of a shared buffer's elements that avoids bank conflicts. In every offset, counted in elements, the
// `bits` bits from bit `base` on are XORed with the `bits` bits that lie `shift` positions higher, as in CuTe's
// Swizzle<B, M, S>; bits = 0 means no XOR. Before the XOR, every 2^rows rows may be cut into 2^panels panels, each
// 2^column elements wide. Panels are stored one after another, each row by row. panels = 0 leaves rows whole.
struct Swizzle {
  int bits = 0, base = 0, shift = 0;
  int column = 0, panels = 0, rows = 0;
  bool operator==(const Swizzle&) const = default;
  int64_t place_of(int64_t offset) const;
  // Returns a block size: the swizzle permutes elements only within aligned blocks of that many elements.
  int64_t reach() const;
  // Returns the period p: place_of(a + b) is place_of(a) + b for every b that is a multiple of p.
  int64_t period() const;
};

struct KernelBuffer {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;  // extents of the buffer's axes; elements are in row-major order
  Level level = Level::kGlobal;
  bool output = false;      // whether a global buffer is an output; global buffers come first, in call order
  bool once = false;        // of an output: whether the kernel stores no element twice
  int64_t byte_offset = 0;  // except for globals: offset in the level's memory, a multiple of 64
  Swizzle swizzle = {};     // permutation of a shared buffer's elements; offsets in slices count elements before it
  int arrivals = 0;         // for shared i64 buffers whose elements count phases: how many arrivals end a phase
  bool operator==(const KernelBuffer&) const = default;
};

// The graphs that a kernel was made from, for the comments of printed code: for each graph, a line of text for each
// node. The first graph is the group. A stitched group also has a graph for each of its stages, a packed group one for
// each of its members.
using NodeListing = std::vector<std::vector<std::string>>;

// The operation that a value belongs to: a node, and the number of its graph in the NodeListing. Origins only serve
// comments. So any two origins compare equal, and the text form of a kernel has none.
struct NodeOrigin {
  NodeId node = -1;  // the number of the node in its graph; -1: unknown
  int graph = 0;
  bool operator==(const NodeOrigin&) const { return true; }
};

// A tile in registers. Elements of floats narrower than f32 are kept as f32 until a store or a cast rounds them.
// `bound`: along each axis, the valid extent is the minimum of the listed affine expressions and of the shape. Elements
// beyond the valid extent hold nothing: loads do not touch memory there, stores write nothing, folds skip them.
struct Tile {
  DType dtype = DType::f32;
  Layout layout;
  std::vector<std::vector<Affine>> bound;
  NodeOrigin origin = {};
  bool operator==(const Tile&) const = default;
};

// The memory that a tile is loaded from or stored to: element (i0, i1, ...) is buffer[offset + sum of strides * i].
struct Slice {
  BufferId buffer = -1;
  Affine offset;
  std::vector<int64_t> strides;
  bool operator==(const Slice&) const = default;
};

// A condition of a load or store: element (i0, i1, ...) is accessed only where 0 <= at + sum of strides * i < extent.
struct SliceGuard {
  Affine at;
  std::vector<int64_t> strides;
  int64_t extent = 0;
  bool operator==(const SliceGuard&) const = default;
};

// The threads of a block that run a loop: the threads of the teams, or the copier threads, which only copy.
enum class Role : uint8_t { kTeams, kCopiers };

// A node of a scalar expression, which is a DAG and is evaluated for every element of the result. Arguments broadcast
// along the axes where their tile has extent 1.
struct ExprNode {
  enum class Kind : uint8_t { kArg, kConstant, kOp };
  Kind kind = Kind::kOp;
  Op op = Op::add;
  DType dtype = DType::f32;        // dtype of the node's result
  int arg = -1;                    // kArg: index of the argument in Instr::args
  double value = 0;                // kConstant: the constant
  int operands[3] = {-1, -1, -1};  // kOp: indices of the operands, which are earlier nodes; -1: no operand
  bool rounded = false;            // whether an exp may be less exact (compiler/ir/rounded_exps.h)
  NodeOrigin origin = {};
  bool operator==(const ExprNode&) const = default;
};
using Expr = std::vector<ExprNode>;  // the nodes of an expression; the last one is its value

struct Instr {
  InstrOp op = InstrOp::kMap;
  TileId result = -1;
  std::vector<TileId> args;
  // What the following fields mean depends on the instruction: its row in instrs.def names its operands.
  Slice slice;
  Slice into;
  std::vector<SliceGuard> guards;
  Expr expr;
  Op combine = Op::add;
  DType elements[2] = {DType::f32, DType::f32};  // dtype of the elements packed into a word; dot: of both factors
  int64_t gap = 1;                               // distance in memory between the elements of a word, in elements
  int part = 0;                                  // part: index of the element within a word
  MatrixOp matrix = {};
  std::vector<int> axes;
  double value = 0;  // fill: the value; load: the result where a guard does not hold
  int axis = 0;
  int64_t gather_stride = 0;   // gather: buffer elements that one step of the index moves
  int64_t gather_extent = 0;   // gather: the extent that is added to a negative index
  bool gather_inside = false;  // gather: whether all indices are known to be in range; if not, they are clamped
  bool streaming = false;
  int level = 1;
  int pending = 0;  // wait: how many groups of copies may still be under way; pass: the n of `last n`, or 0
  VarId var = -1;
  std::vector<Affine> trips;
  Role role = Role::kTeams;  // loop: kCopiers if only the copier threads run the loop
  std::vector<Instr> body;   // loop: the instructions of an iteration
  Affine parity;             // await: the number of the phase to wait for, of which only the parity counts
  bool operator==(const Instr&) const = default;
};

// The tile whose elements an instruction runs over; -1 where the instruction has none.
TileId space_tile(const Instr& instr);

// Whether a convert moves its elements through shared memory. If so, through_memory() returns the store and the load
// that the convert consists of; the convert itself has the barrier between them.
bool goes_through_memory(const Instr& instr);
std::array<Instr, 2> through_memory(const Instr& convert);

inline constexpr VarId kTeamVar = 1;  // the variable that is the team's number, on machines with lanes

// A section of a packed kernel: instructions that only the blocks [from, to) run. A section is a loop of min(1, block -
// from + 1, to - block) iterations: one iteration in these blocks, none in others.
struct Section {
  int64_t from = 0, to = 0;
};
std::vector<Affine> section_trips(int64_t from, int64_t to);
std::optional<Section> section_of(const Instr& instr);

// Whether copier threads run the loop, or a loop inside it.
bool has_copiers(const Instr& loop);

// Whether an instruction multiplies, and adds the products to its result tile.
bool multiplies_and_adds(const Instr& instr);

// Whether the code printed for a CPU has no branch between the iterations of this loop. This holds if the number of
// iterations is constant and from 2 to kMostUnrolled, some instruction of the body multiplies and adds, and the body
// contains no loop. An example is the loop over the taps of a convolution's window along a row.
inline constexpr int64_t kMostUnrolled = 8;
bool is_unrolled(const Instr& loop);

// A pass: the instructions between two `pass` instructions. If `last` is 0, every block runs them, in a sweep of their
// own over the grid. Otherwise, of every `last` neighbouring blocks the one that arrives last runs them; its threads
// learn from the first element of the buffer `flag` that their block was the last.
struct Pass {
  std::span<const Instr> body;
  int64_t last = 0;
  BufferId flag = -1;
};

struct Kernel {
  std::string name;
  std::string target;
  std::vector<KernelBuffer> buffers;  // global buffers in call order, then the others
  std::vector<Var> vars;              // vars[0] is the block's number; with lanes, vars[1] is the team's
  std::vector<Tile> tiles;
  std::vector<Instr> body;
  int64_t grid = 1;
  int threads = 1;  // threads of a block; on machines with lanes team * teams + copiers
  int wave = 0, team = 1, teams = 1;
  int copiers = 0;  // threads of a block that only copy, numbered after those of the teams
  int blocks = 0;   // with lanes: how many blocks a multiprocessor must have registers for; 0: the compiler decides
  int cluster = 1;  // how many neighbouring blocks form a cluster; 1: there are no clusters
  int unroll = 1;   // by how much the printed loop of a stretch is unrolled
  int accumulators = 1;  // number of independent accumulators of a fold, at most unroll
  std::string compiler = "gcc";
  // The size in bytes of a block's shared and cluster buffers together. Buffers that are never needed at the same time
  // may overlap.
  int64_t scratch_bytes() const;
  int64_t work_bytes() const;  // size in bytes of the workspace; the parts of blocks (Level::kOwn) follow the others
  int64_t own_at() const;      // where the parts of blocks begin in the workspace, in bytes
  int64_t own_bytes() const;   // size in bytes of one block's part
  int64_t bytes_of(const KernelBuffer& buffer) const;  // size in bytes; of a cluster buffer: the part of one block
  // Whether two different buffers overlap, in the workspace or in a block's shared memory.
  bool overlap(BufferId a, BufferId b) const;
  std::vector<Pass> passes() const;  // the parts of the body between `pass` instructions; at least one
  int sweeps() const;                // number of sweeps over the grid: one for each pass that all blocks run
  // Whether the body consists of sections only, in ascending order of their blocks, and no block runs two of them.
  bool is_packed() const;
  int vector_lanes() const;                             // the largest number of vector lanes of any tile
  int vector_lanes(std::span<const Instr> part) const;  // the most lanes of the tiles that `part` defines or copies
  bool operator==(const Kernel&) const = default;
};

// Calls visit(instr) for every instruction of a body, including those inside loops.
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

// One contraction with elementwise work on its operands and its result, on GPUs. An atom is one loop of the domain; m,
// n and K are the atoms of rows, columns and the reduction. A block owns a tile of rows (along the last m atom) and
// columns (along the last n atom) of one batch element; its threads form a grid, each with a register tile of
// accumulators. K is walked in steps: both operands' parts of a step are stored to shared memory with k outermost,
// after the elementwise work on them, and are then multiplied. The pass of compiler/kernel/pipeline lets the loads run
// ahead of the products. The work after the contraction is computed on the accumulators.
//
// With row_runs and row_planes the rows of a tile are several runs along the last m atom, from several iterations of
// the loops around it. Pixels of images need this: they are three loops, and a row may have few of them. With
// column_runs and column_planes the columns of a tile are runs in the same way. Tiles that are loaded and stored then
// have an axis for each of these loops; in shared memory, and where they are multiplied, they have two axes.
//
// With a matrix instruction the accumulators are its fragments of sums, repeated over the registers of a wave and over
// waves. Shared memory holds narrow elements, and its innermost axis is the one that the operand is read along. Where K
// or an operand ends inside a step, the rest of the step is zeros. An instruction that multiplies in memory takes whole
// steps from shared memory.
//
// With reduction_blocks, and no persistent blocks, several neighbouring blocks share one tile, and each of them has a
// part of the steps along K. They leave their sums in the workspace; the last block to arrive adds up the sums of all,
// and goes on alone.
//
// As a part of a block that keeps its values in registers (GpuHeld), the contraction has one tile of all rows and
// columns, whose waves divide only the rows, and one step of all of K. The operand along the rows is then held: it
// needs no shared memory, since each wave has its rows in registers, in the layout of sums, and takes the words that it
// multiplies from there.
//
// With persistent blocks there are as many blocks as run at once, and each takes tile after tile. The tiles that are
// left for a last round, in which some blocks would have none, may be shared by several blocks each (reduction_blocks).
//
// With copying_waves the block has these waves beside those that compute; they copy both operands to shared memory
// (kernel.h, copiers).
//
// Where conditions on indices say which products count (compiler/plan/masks.h), a block takes the steps from the first
// one that counts for its tile to the last.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "compiler/schedule/contract/contract.h"
#include "compiler/schedule/contract/counted.h"
#include "compiler/schedule/space.h"
#include "compiler/schedule/tile_expr.h"

namespace wl {

// Owns the kernel under construction, the layouts of threads, and the buffers of both operands in shared memory.
class GpuContract {
 public:
  GpuContract(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine)
      : group_(group), domain_(domain), schedule_(schedule), machine_(machine), out_(group, machine) {}
  GpuContract(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine,
              const GpuHeld& held)
      : GpuContract(group, domain, schedule, machine) {
    held_ = held;
  }
  absl::StatusOr<Kernel> run();

 private:
  struct Side {  // one operand
    int position = 0;
    const char* name = "";         // of its buffer
    DType dtype = DType::f32;      // in shared memory
    AtomId atom = -1;              // last loop of the rows or columns; -1: there is one row or column
    int64_t extent = 1, tile = 1;  // extent: along the atom; tile: of a tile, in all
    std::vector<TileLoop> loops;   // loops that a tile runs along: those around the atom's, then the atom's
    std::vector<Affine> first;     // first index of the tile along each loop
    int64_t width() const { return loops.back().extent; }
    bool is_split() const { return loops.size() > 1; }
    bool along_k = false;  // read along k, else along the atom
    bool aligned = false;  // vectors along the axis that it is read along are aligned
    bool async = false;    // read as it is, so that it can be copied without registers
    bool boxes = false;    // copied as boxes of a matrix, where waves do nothing but copy
    BufferId buffer = -1;
    bool k_inner = false;  // in shared memory k is innermost, else rows or columns are
    int64_t pitch = 1;     // elements from one k to the next or, with k_inner, from one row or column
  };

  absl::Status prepare();
  bool offers_matrix(MatrixOp matrix) const;
  absl::Status choose_loops(Side& side, const std::vector<AtomId>& atoms, const std::array<Choice, 3>& choices);
  absl::Status choose_threads();
  absl::Status choose_waves();
  absl::Status choose_held();
  void choose_k();
  bool reads_along_k(const Side& side) const;
  void prepare_side(Side& side, const char* name);
  void give_buffer(Side& side);
  bool copies_vectors(const Side& side) const;
  // Adds guards to an access, so that it leaves out elements of a tile beyond the ends of the side's loops. These loops
  // are axes of the tile from `axis` on.
  void guard_end(const Side& side, size_t axis, Instr& access) const;
  void guard_loop(const Side& side, size_t loop, size_t axis, Instr& access) const;
  // Adds the guards of guard_end() for all loops but the last.
  void guard_around(const Side& side, size_t axis, Instr& access) const;
  int64_t extent_along(AtomId atom) const { return atom < 0 ? 1 : domain_.atoms[atom].extent; }
  // Emits all work of a block: its tiles, one round after the other.
  void emit_rounds();
  // Emits all work of the tile with a number, or of one of its `parts` parts along K.
  void emit_tile(const Affine& number, int64_t parts);
  void place_tile(const Affine& number);
  // The number of the block among `blocks` blocks; with tiles_by_die the blocks on one die of the GPU have successive
  // numbers.
  Affine place_of_block(int64_t blocks);
  // Opens a section that only those blocks run that share tiles, where other blocks have no tile to share.
  void open_part();
  absl::Status pipeline_rounds(Kernel& kernel) const;
  int threads() const { return kernel_threads_; }  // that compute
  // Whether waves that do nothing else may copy both operands: both are read as they are, K is whole steps, and all
  // steps count.
  bool copies_alongside() const;
  void set_threads(int64_t count);
  // Computes the tile of the operand that waves hold in registers, along the rows and all of K.
  void fetch_held();
  void multiply_held();
  // The node that adds a value to the contraction's result and is the only one that uses it, so that the sums can begin
  // with that value; -1: there is none.
  NodeId find_total() const;
  void begin_with_addend();
  bool is_held(const Side& side) const { return held_ && &side == (held_->rows_axis == 0 ? &rows_ : &columns_); }

  // The layout of the accumulators, or of one of their axes. Each thread has `vector_` neighbouring columns and as many
  // rows, repeated, or, with a matrix instruction, what its fragment gives the thread.
  Layout grid_layout(bool rows, bool columns, char row_kind = 'r') const;
  // The layout in which a step's part of an operand is loaded: vectors and then threads lie along the axis that it is
  // read along.
  Layout fetch_layout(const Side& side, const std::vector<bool>& moves, bool vectors = true) const;
  // Expressions over tiles whose axes are the loops of the rows and then those of the columns, and the layout of such
  // tiles.
  TileExpr result_expr();
  Layout result_layout(const std::vector<bool>& moves) const;

  // The place of step number `step` along K. `inside`: the steps along k_atom_; `first`: the index along k_atom_ of the
  // first of them.
  Place k_place(const Affine& step, int64_t inside, int64_t first);
  Affine digit_of(const std::string& name, const Affine& of, int64_t div, int64_t mod);
  // Brings both operands' parts of a step to shared memory. `masked`: K may end before the step does.
  void fill(const Place& at, bool masked);
  // The loops that a step's part of an operand runs along; the one that the operand is read along is the last.
  std::vector<TileLoop> fetched_loops(const Side& side) const;
  TileId fetch_copied(const Side& side, const Place& at);
  TileId fetch_side(const Side& side, const Place& at, bool masked);
  // The tile with zeros where k is beyond the end of K; the tile begins at k `first`.
  TileId cut_off(const Side& side, TileId tile, const Affine& first);
  TileId stored(const Side& side, TileId tile);
  Slice place_of(const Side& side) const;
  // Adds the products of the operands in shared memory to the accumulators, for `depth` elements of K.
  void compute(int64_t depth);
  // The words of a factor for one instruction `mma`, from k on: those of the held tile, or those of the factor's buffer
  // in shared memory.
  TileId load_factor(const Side& side, int64_t k);
  void multiply_matrices(int64_t depth);

  Turns steps_that_count(int64_t total);
  void emit_whole_steps();
  void join_parts();
  void emit_tail();
  void emit_epilogue();

  void fail(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  const Graph& group_;
  const Domain& domain_;
  const Schedule& schedule_;
  const Machine& machine_;
  KernelBuilder out_;
  absl::Status status_;
  DType dtype_ = DType::f32;  // of the accumulators
  std::optional<MatrixOp> matrix_;
  std::optional<GpuHeld> held_;
  TileId held_tile_ = -1;
  std::vector<BufferId> parts_of_k_;      // buffers of the operand that is not held
  NodeId total_ = -1;                     // the node that the sums are in the end; -1: the contraction
  int kernel_threads_ = 1, copiers_ = 0;  // threads that compute, and that copy, the tile being emitted
  Fragments fragments_;  // with a matrix instruction: the tiles of the block, for one step along k of the instruction
  Side rows_, columns_;
  int64_t rows_each_ = 1, columns_each_ = 1, vector_ = 1, stages_ = 1, register_stages_ = 1, unroll_ = 1;
  std::vector<int> row_bits_, column_bits_;  // bits of a thread's number that say where its register tile lies
  AtomId k_atom_ = -1;
  std::vector<AtomId> k_outer_;
  int64_t k_extent_ = 1, step_ = 1, whole_ = 0, outer_ = 1;  // whole_: full steps along k_atom_
  int64_t parts_ = 1;                                        // parts of K: blocks that share a tile
  Affine part_;                                              // number of the part that the block has
  int64_t part_blocks_ = 0;                                  // blocks that share tiles, where not all do
  BufferId last_ = -1;                                       // buffer in which a block learns that it joins the parts
  VarId steps_ = -1;  // variable of the loop over steps, which is pipelined; -1: there is none
  VarId turn_ = -1;   // variable of the open loop over a block's tiles; -1: none is open
  // A loop over steps, which is pipelined, and the buffers in shared memory that it reads. steps -1: there is a single
  // step.
  struct Round {
    VarId steps = -1;
    BufferId rows = -1, columns = -1;
    bool alongside = false;  // the copying waves copy
    Affine before;
  };
  std::vector<Round> rounds_;
  Place block_;
  TileId accumulator_ = -1;
};

}  // namespace wl

// One contraction with elementwise work on its operands and its result, on GPUs. A block owns a tile of rows (along the
// last m atom) and columns (along the last n atom) of one batch element; its threads are a grid, each with a register
// tile of accumulators. K is walked in steps: both operands' parts of a step are stored to shared memory with k
// outermost, after the elementwise work on them, and then multiplied. The pass of compiler/kernel/pipeline lets the
// loads run ahead of the products. What follows the contraction is computed on the accumulators.
//
// With row_runs and row_planes the rows of a tile are several runs along the last m atom, from steps of the loops
// around it: the pixels of images are three loops, and few of them may be in a row. With column_runs and column_planes
// it is so with the columns. Tiles that are loaded and stored then have an axis for each of these loops; in shared
// memory, and where they are multiplied, they have two.
//
// With a matrix instruction the accumulators are its fragments of sums, repeated over the registers of a wave and over
// waves. Shared memory holds narrow elements, innermost what the operand is read along. What K and the operands leave
// of a step is filled up with zeros. An instruction that multiplies in memory takes whole steps from there.
//
// With reduction_blocks, and no persistent blocks, several neighbouring blocks have one tile, and each of them a part
// of the steps along K. They leave their sums in the workspace; the last of them to arrive adds those of all up, and
// goes on alone.
//
// As a part of a block that keeps its values in registers (GpuHeld) it has one tile of all rows and columns, whose
// waves divide the rows alone, and one step of all of K. The operand along the rows then needs no shared memory: each
// wave holds its rows of it, in the layout of sums, and takes from there the words that it multiplies.
//
// With persistent blocks there are as many as run at once, which take tile after tile. The tiles that are left for a
// last round, in which some blocks would have none, may be of several blocks each (reduction_blocks).
//
// With copying_waves the block has these beside the waves that compute; they copy both operands (kernel.h, copiers).
//
// Where conditions on places say which products count (compiler/plan/masks.h), a block takes the steps from the first
// that counts for its tile to the last.
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

// Owns the kernel under construction, the layouts of threads, and the slots of both operands in shared memory.
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
    AtomId atom = -1;              // rows or columns; -1: there is one
    int64_t extent = 1, tile = 1;  // along it; in all
    std::vector<TileLoop> loops;   // that a tile runs along: the atom's, last, after those around it
    std::vector<Affine> first;     // of the block, along each
    int64_t width() const { return loops.back().extent; }
    bool is_split() const { return loops.size() > 1; }
    bool along_k = false;  // read along k, else along the atom
    bool aligned = false;  // whole vectors of what it is read along are
    bool async = false;    // as it is, so that it can be copied without registers
    bool boxes = false;    // as boxes of a matrix, where waves copy
    BufferId buffer = -1;
    bool k_inner = false;  // in shared memory k is innermost, else rows or columns are
    int64_t pitch = 1;     // from one k to the next or, where that is innermost, from one row or column
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
  // Lets an access leave out what of a tile is beyond the side's loops, which are axes of the tile from `axis` on.
  void guard_end(const Side& side, size_t axis, Instr& access) const;
  void guard_loop(const Side& side, size_t loop, size_t axis, Instr& access) const;
  // The same of all loops but the last.
  void guard_around(const Side& side, size_t axis, Instr& access) const;
  int64_t extent_along(AtomId atom) const { return atom < 0 ? 1 : domain_.atoms[atom].extent; }
  // Everything of all tiles of a block, one round after the other.
  void emit_rounds();
  // Everything of the tile with a number, or of one of its parts.
  void emit_tile(const Affine& number, int64_t parts);
  void place_tile(const Affine& number);
  // The number of the block among so many, those on one die following one another where the schedule says so.
  Affine place_of_block(int64_t blocks);
  // Opens what only blocks run that share tiles, where others have none.
  void open_part();
  absl::Status pipeline_rounds(Kernel& kernel) const;
  int threads() const { return kernel_threads_; }  // that compute
  // Whether waves that do nothing else may copy both operands: as they are, in whole steps of which all count.
  bool copies_alongside() const;
  void set_threads(int64_t count);
  // The tile of the operand that waves hold, along the rows and all of K.
  void fetch_held();
  void multiply_held();
  // The node that adds something to the products and nothing else uses, which the sums may so begin with; -1: none.
  NodeId find_total() const;
  void begin_with_addend();
  bool is_held(const Side& side) const { return held_ && &side == (held_->rows_axis == 0 ? &rows_ : &columns_); }

  // The layout of the accumulators, or of one of their axes: each thread has `vector_` neighbouring columns and as many
  // rows, repeated, or what a matrix instruction's fragment gives it.
  Layout grid_layout(bool rows, bool columns, char row_kind = 'r') const;
  // How a step's part of an operand is loaded: vectors, then threads, along what it is read along.
  Layout fetch_layout(const Side& side, const std::vector<bool>& moves, bool vectors = true) const;
  // Expressions over tiles that run along the loops of the rows and then those of the columns, and their layout.
  TileExpr result_expr();
  Layout result_layout(const std::vector<bool>& moves) const;

  // The part of K that a step is about.
  Place k_place(const Affine& step, int64_t inside, int64_t first);
  Affine digit_of(const std::string& name, const Affine& of, int64_t div, int64_t mod);
  // Brings the parts of both operands at a step to shared memory. masked: K may end before the step does.
  void fill(const Place& at, bool masked);
  // The loops that a step's part of an operand runs along, what it is read along last.
  std::vector<TileLoop> fetched_loops(const Side& side) const;
  TileId fetch_copied(const Side& side, const Place& at);
  TileId fetch_side(const Side& side, const Place& at, bool masked);
  // The tile with zeros where k is beyond its end, at k `first`.
  TileId cut_off(const Side& side, TileId tile, const Affine& first);
  TileId stored(const Side& side, TileId tile);
  Slice place_of(const Side& side) const;
  // Adds the products of what is in shared memory, for `depth` of K.
  void compute(int64_t depth);
  // The words of a factor for one call of `mma` from k on; where it is in shared memory, of its buffer.
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
  std::vector<BufferId> parts_of_k_;      // of the other operand
  NodeId total_ = -1;                     // what the accumulators are in the end, where that is not the contraction
  int kernel_threads_ = 1, copiers_ = 0;  // those of the tile that is being emitted
  Fragments fragments_;  // with a matrix instruction: the tiles of the block, for one step along k of the instruction
  Side rows_, columns_;
  int64_t rows_each_ = 1, columns_each_ = 1, vector_ = 1, stages_ = 1, register_stages_ = 1, unroll_ = 1;
  std::vector<int> row_bits_, column_bits_;  // bits of a thread's number that say where its register tile lies
  AtomId k_atom_ = -1;
  std::vector<AtomId> k_outer_;
  int64_t k_extent_ = 1, step_ = 1, whole_ = 0, outer_ = 1;  // whole_: steps along k_atom_ that K fills
  int64_t parts_ = 1;                                        // of K: blocks that share a tile
  Affine part_;                                              // which of them the block has
  int64_t part_blocks_ = 0;                                  // blocks that share tiles, where not all do
  BufferId last_ = -1;                                       // in which a block learns that it joins the parts
  VarId steps_ = -1;  // of the loop over steps, which is pipelined; -1: there is none
  VarId turn_ = -1;   // of the loop over the tiles of a block that is open; -1: none
  // The loops over steps, which are pipelined (-1: there is a single step), and where what they read is in shared
  // memory.
  struct Round {
    VarId steps = -1;
    BufferId rows = -1, columns = -1;
    bool alongside = false;  // copiers copy
    Affine before;
  };
  std::vector<Round> rounds_;
  Place block_;
  TileId accumulator_ = -1;
};

}  // namespace wl

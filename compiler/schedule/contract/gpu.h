// Lowers one contraction to a GPU kernel, with elementwise work on its operands and, as the epilogue, on its result. An
// atom is one loop of the domain; m, n and K are the atoms of rows, columns and the reduction. A block owns a tile of
// rows (along the last m atom) and columns (along the last n atom) of one batch element; its threads form a grid, each
// with a register tile of accumulators. K is walked in steps: both operands' parts of a step are loaded, go through
// their elementwise work, are stored to shared memory with k outermost, and are multiplied. The pass of
// compiler/kernel/pipeline lets the loads run ahead of the products. The epilogue is computed on the accumulators.
//
// With row_runs and row_planes the rows of a tile are several runs (ranges of neighbours) along the last m atom, from
// several iterations of the loops around it. Pixels of images need this: they are three loops (images, rows, pixels of
// a row), and a row may have few pixels. With column_runs and column_planes the columns of a tile are runs in the same
// way. Tiles that are loaded and stored then have an axis for each of these loops; in shared memory, and where they are
// multiplied, they have two axes.
//
// With a matrix instruction the accumulators are its fragments of sums, repeated over the registers of a wave and over
// waves. Shared memory holds narrow elements; its innermost axis is the one that the operand is read along or, where
// words cannot be loaded across k, it is k. Where K or an operand ends inside a step, the rest of the step is zeros. An
// instruction that reads its factors from shared memory (multiplies_in_memory) takes a whole step at once.
//
// With reduction_blocks, and no persistent blocks, several neighbouring blocks share one tile, and each of them
// computes a part of the steps along K. They store their sums in the workspace; the last block to arrive adds up the
// sums of all, and alone computes the epilogue.
//
// As a stage of a stitched block that keeps its values in registers (GpuResident), the contraction has one tile of all
// rows and columns, whose waves divide only the rows, and no loop over steps of K. The operand along the rows is then
// resident: it needs no shared memory, since each wave has its rows in registers, in the layout of sums, and takes the
// words that it multiplies from there.
//
// With persistent blocks there are as many blocks as run at once, and each computes tile after tile. The tiles that are
// left for a last round, in which some blocks would have none, may be shared by several blocks each (reduction_blocks).
//
// With copying_waves the block has this many waves besides those that compute; they copy both operands to shared memory
// (kernel.h, copiers).
//
// Where conditions on indices say which products can change an output (compiler/domain/masks.h), a block computes only
// the steps from the first to the last that can change its tile.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "compiler/schedule/contract/contract.h"
#include "compiler/schedule/contract/counted.h"
#include "compiler/schedule/contract/gpu_product.h"
#include "compiler/schedule/space.h"
#include "compiler/schedule/tile_expr.h"

namespace wl {

// Owns the kernel under construction, the layouts of threads, and the numbers of both operands' shared buffers.
class GpuContract {
 public:
  GpuContract(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine)
      : group_(group), domain_(domain), schedule_(schedule), machine_(machine), out_(group, machine) {}
  GpuContract(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine,
              const GpuResident& resident)
      : GpuContract(group, domain, schedule, machine) {
    resident_ = resident;
  }
  absl::StatusOr<Kernel> run();

 private:
  struct Side : GpuSide {         // one operand of the contraction
    const char* name = "";        // name of the operand's buffer in shared memory
    int64_t tile = 1;             // number of a tile's rows or columns over all of `loops`
    std::vector<TileLoop> loops;  // loops along which a tile extends: those around `atom`, then `atom`
    std::vector<Affine> first;    // first index of the tile along each of `loops`
    int64_t width() const { return loops.back().extent; }
    bool is_split() const { return loops.size() > 1; }
    bool async = false;  // whether asynchronous copies fill the buffer, without registers
    bool boxes = false;  // whether copying waves fill the buffer with boxes of a matrix (tma)
    BufferId buffer = -1;
    int64_t pitch = 1;  // elements in shared memory from one k to the next; if k_inner, from one row or column
  };

  absl::Status prepare();
  bool offers_matrix(MatrixOp matrix) const;
  absl::Status choose_loops(Side& side, const std::vector<AtomId>& atoms, const std::array<Choice, 3>& choices);
  absl::Status choose_threads();
  absl::Status choose_waves();
  absl::Status choose_resident();
  void choose_k();
  void prepare_side(Side& side, const char* name);
  void give_buffer(Side& side);
  // Adds guards to a load or store, so that it leaves out elements of a tile beyond the ends of the operand's loops.
  // `axis` is the number of the access's axis for the first of these loops; the axes for the other loops follow it.
  void guard_end(const Side& side, size_t axis, Instr& access) const;
  void guard_loop(const Side& side, size_t loop, size_t axis, Instr& access) const;
  // Adds the guards that guard_end() would add, but not the one for the last of the operand's loops.
  void guard_around(const Side& side, size_t axis, Instr& access) const;
  int64_t extent_along(AtomId atom) const { return atom < 0 ? 1 : domain_.atoms[atom].extent; }
  // Emits all work of a block: one tile after the other, in rounds.
  void emit_rounds();
  // Emits all work of one tile, or of a part of it along K. `number`: the tile's number or, if several `parts` share
  // the tile, its product with `parts` plus the part's number.
  void emit_tile(const Affine& number, int64_t parts);
  void place_tile(const Affine& number);
  // Returns the number of this block among `blocks` blocks. With tiles_by_die, blocks on the same die of the GPU get
  // successive numbers.
  Affine place_of_block(int64_t blocks);
  // If only some blocks share tiles (part_blocks_), opens a section that only these blocks run.
  void open_part();
  absl::Status pipeline_rounds(Kernel& kernel) const;
  // The block's computing threads, without the threads of copying waves.
  int threads() const { return kernel_threads_; }
  void set_threads(int64_t count);
  // Computes the tile of the operand that waves hold in registers: all its rows and all of K.
  void fetch_resident();
  void multiply_resident();
  // Returns the node that adds a value to the contraction's result, if no other node uses the result; -1: there is
  // none. The accumulators can begin with that value (begin_with_addend()).
  NodeId find_total() const;
  void begin_with_addend();
  bool is_resident(const Side& side) const {
    return resident_ && &side == (resident_->rows_axis == 0 ? &rows_ : &columns_);
  }

  // Returns the layout of the accumulators, or of one of their axes. With a matrix instruction, each thread has the
  // elements that the instruction's fragment gives it; otherwise `vector_` neighbouring columns and rows, repeated.
  Layout grid_layout(bool rows, bool columns, char row_kind = 'r') const;
  // Returns the layout in which an operand's part for one step is loaded: vectors, and then threads, lie along the
  // axis that the operand is read along.
  Layout fetch_layout(const Side& side, const std::vector<bool>& moves, bool vectors = true) const;
  // result_expr: the expressions of the epilogue, over tiles whose axes are the loops of the rows and then those of the
  // columns. result_layout: the layout of such tiles.
  TileExpr result_expr();
  Layout result_layout(const std::vector<bool>& moves) const;

  // Returns the loop indices (place) of step number `step` along K. `inside`: how many steps lie along k_atom_, the
  // loop of K that is divided into steps; `first`: the index along k_atom_ at which the first of them begins.
  Place k_place(const Affine& step, int64_t inside, int64_t first);
  // Returns (`of` / div) % mod, or `of` / div if mod is 0.
  Affine digit_of(const std::string& name, const Affine& of, int64_t div, int64_t mod);
  // Moves the parts of both operands for one step to shared memory. `masked`: K may end inside the step.
  void fill(const Place& at, bool masked);
  // Returns the loops that an operand's part for one step extends along. k is the last of them if the operand is read
  // along k, otherwise the first.
  std::vector<TileLoop> fetched_loops(const Side& side) const;
  TileId fetch_copied(const Side& side, const Place& at);
  TileId fetch_side(const Side& side, const Place& at, bool masked);
  // Replaces the elements of a tile beyond the end of K by zeros. The tile begins at k = `first`.
  TileId cut_off(const Side& side, TileId tile, const Affine& first);
  TileId stored(const Side& side, TileId tile);
  Slice place_of(const Side& side) const;
  // Adds the products of the operands in shared memory to the accumulators, for `depth` elements of K.
  void compute(int64_t depth);
  // Returns the words of a factor for one instruction `mma`, from k on: from the resident tile, or from the factor's
  // buffer in shared memory.
  TileId load_factor(const Side& side, int64_t k);
  void multiply_matrices(int64_t depth);

  Iterations steps_that_count(int64_t total);
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
  DType dtype_ = DType::f32;  // dtype of the accumulators
  std::optional<MatrixOp> matrix_;
  std::optional<GpuResident> resident_;
  TileId resident_tile_ = -1;
  std::vector<BufferId> parts_of_k_;  // shared buffers of the operand that is not resident, one for each step of K
  NodeId total_ = -1;  // the node whose value the accumulators end with (find_total()); -1: the contraction
  int kernel_threads_ = 1, copiers_ = 0;  // numbers of computing and of copying threads, for the current tile
  Fragments fragments_;                   // layouts of the block's sums, and of the two factors of one `mma`
  Side rows_, columns_;
  int64_t rows_each_ = 1, columns_each_ = 1, vector_ = 1, stages_ = 1, register_stages_ = 1, unroll_ = 1;
  std::vector<int> row_bits_, column_bits_;  // bits of a thread's number that say where its register tile is
  AtomId k_atom_ = -1;
  std::vector<AtomId> k_outer_;
  int64_t k_extent_ = 1, step_ = 1, whole_ = 0, outer_ = 1;  // whole_: number of full steps along k_atom_
  int64_t parts_ = 1;        // number of blocks that share a tile, each with a part of K
  Affine part_;              // number of this block's part of K
  int64_t part_blocks_ = 0;  // number of blocks that share tiles; 0: either all blocks share tiles or none does
  BufferId last_ = -1;       // flag in shared memory: this block has arrived last, so it adds up the parts
  VarId steps_ = -1;         // variable of the loop over steps, which is pipelined; -1: at most one whole step
  VarId turn_ = -1;          // variable of the open loop over a block's tiles; -1: none is open
  // A pipelined loop over steps, and the shared buffers that it reads. `steps` is -1 if there is no loop.
  struct Round {
    VarId steps = -1;
    BufferId rows = -1, columns = -1;
    bool alongside = false;  // whether copying waves run the copies
    Affine before;           // number of steps of this block's earlier tiles
  };
  std::vector<Round> rounds_;
  Place block_;
  TileId accumulator_ = -1;
};

}  // namespace wl

// The lowering of loop nests without a contraction: maps, row reductions and column reductions, all from one scheme.
// The work on a row is divided into *phases*: a phase ends where a reduction's result is first needed. A phase is a
// nest of loops over the outer reduced atoms (an atom is one loop of the group) around one walk along the vectorised
// axis. A row is thus read from memory in phase 0, and found in a cache, a row buffer or registers in later phases.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/schedule/nest/geometry.h"
#include "compiler/schedule/nest/phases.h"
#include "compiler/schedule/pieces.h"

namespace wl {

// The instructions of one phase, in one list for each position in the kernel. Where several blocks share a row, each of
// them computes one *part* of the row.
struct PhaseCode {
  int phase = 0;
  RowPlace place;
  std::vector<Instr> fills, pre;  // instructions that precede the phase's loops
  // Instructions whose result has one element along the vectorised axis. They stand inside the phase's loops or, if the
  // only loop is the walk along the vectorised axis, before it.
  std::vector<Instr> narrow;
  std::vector<Instr> inner;  // instructions inside the phase's loops, except those in `narrow`
  // Instructions after the loops that store values for other threads of the block to reduce further.
  std::vector<Instr> exchange;
  std::vector<Instr> post;       // instructions after the loops and after `exchange`
  std::vector<Instr> partials;   // with several parts: stores of this block's partial results
  std::vector<Instr> next_pass;  // with several parts: instructions that need the results of all parts
  // The tiles that exist already, each with the node, the load, or the pieces of a pad or concat whose value it has.
  std::map<NodeId, TileId> tiles;
  std::vector<std::pair<Access, TileId>> loads;
  std::vector<std::pair<std::vector<Piece>, TileId>> joined;
};

void append(std::vector<Instr>& to, std::vector<Instr> from);

// Makes the code of phases. Functions that differ between CPUs and GPUs are virtual. Owns the kernel under
// construction, the geometry, and the tiles that hold results of reductions.
class RowLowering {
 public:
  RowLowering(const RowLowering&) = delete;
  RowLowering& operator=(const RowLowering&) = delete;

 protected:
  // Numbers of elements along the vectorised axis. `lanes`: how many one instruction handles (on a GPU, in all threads
  // of a team together). `tile`: how many one row has if the vectorised axis is parallel.
  struct Widths {
    int lanes;
    int64_t tile;
  };
  // Where the partial results of a reduction lie in memory: the buffer, and the distances in it, in elements, from one
  // row to the next and from one part to the next.
  struct PartialSpace {
    BufferId buffer;
    Affine row;  // the row's number in the buffer
    int64_t row_stride, part_stride;
  };
  // A slot of a row buffer, which keeps values that a later phase loads again. `slots`: how many rows the buffer
  // holds; `slot`: the slot of the row that the current code computes.
  struct KeptSlot {
    int64_t slots;
    Affine slot;
  };

  RowLowering(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine,
              Widths widths);
  virtual ~RowLowering() = default;

  // The following functions differ between CPUs and GPUs. new_tile makes a tile. With `is_wide` the tile has all
  // elements of a row's tile along the vectorised axis, otherwise one element. With `across_rows` it has all register
  // rows (CPUs only), otherwise one row.
  virtual TileId new_tile(DType dtype, bool is_wide, bool across_rows) = 0;
  // Makes the accumulator of a reduction along the vectorised axis: a tile with one element for each lane.
  virtual TileId accumulator(DType dtype) = 0;
  // Combines the lanes of the accumulator `partial` into `result`.
  virtual void combine_lanes(NodeId reduce, Op combine, TileId partial, TileId result, PhaseCode& code) = 0;
  // Sets `result` from `partial`, which has accumulated a reduction for every element separately, so that no lanes are
  // combined.
  virtual void combine_elements(NodeId reduce, Op combine, TileId partial, TileId result, PhaseCode& code) = 0;
  // Computes a maximum, and the sums of exponentials that depend on that maximum, in one walk.
  virtual void fold_online(NodeId largest, PhaseCode& code) = 0;
  // Returns the tile in which a phase finds the result of a reduction.
  virtual TileId result_in(int phase, NodeId reduce) = 0;
  virtual KeptSlot kept_slot(const PhaseCode& code) = 0;
  // begin_phase is called before the code of a phase is made, end_phase after it. A phase may begin with tiles that
  // earlier phases have made.
  virtual PhaseCode begin_phase() { return {}; }
  virtual void end_phase(PhaseCode& code) = 0;
  // Returns a tile of elements that were copied to shared memory ahead; nullopt if the access is loaded from its input.
  virtual std::optional<TileId> load_copied(const Access& access, DType dtype, PhaseCode& code) = 0;
  // Whether a store runs only in the first iteration of those loops around it that do not change its address.
  virtual bool stores_once() const = 0;
  // For rows that several blocks share. part_lanes: how many lanes combine the partial results. part_tile: makes a
  // tile for `width` partial results. partial_space: where the partial results of a reduction lie.
  virtual int part_lanes() = 0;
  virtual TileId part_tile(DType dtype, int64_t width) = 0;
  virtual PartialSpace partial_space(NodeId reduce, int64_t width, const RowPlace& place);
  // The instruction that separates the stores of partial results from their loads.
  virtual Instr end_of_phase();
  // If rows are in parts: whether tiles in registers keep their values from one phase to the next.
  virtual bool keeps_registers() const = 0;

  TileId make_tile(DType dtype, bool is_wide) { return new_tile(dtype, is_wide, false); }
  TileId tile_of(DType dtype, const std::vector<AtomId>& varies) {
    return new_tile(dtype, at_.wide(varies), at_.across_rows(varies));
  }
  bool is_wide_tile(TileId tile) { return !out_.kernel().tiles[tile].layout.bases.empty(); }
  bool is_tile_across_rows(TileId tile) { return out_.kernel().tiles[tile].layout.shape[0] > 1; }

  // phase_code makes the code of one phase. emit_phases appends phases that share their loops to the kernel.
  PhaseCode phase_code(int phase, RowPlace place);
  void emit_phases(std::vector<PhaseCode>& codes);
  TileId folded_value(NodeId reduce, DType dtype, PhaseCode& code);
  bool has_online_sums(NodeId largest) const;

  // Divides each row among several blocks. A block's share along the vectorised axis is a multiple of `step`; with
  // `one_tile` it is computed as one tile.
  void share_row(int64_t step, bool one_tile);

  const Graph& group_;
  const Domain& domain_;
  const Schedule& schedule_;
  const Machine& machine_;
  KernelBuilder out_;
  NestPhases phases_;
  RowGeometry at_;
  int64_t block_rows_ = 1;                  // number of rows of a block
  std::vector<std::vector<Affine>> bound_;  // upper bounds of the extent of tiles along the vectorised axis
  std::map<NodeId, TileId> results_;        // results of reductions; complete when the phase that computes them ends
  std::map<NodeId, BufferId> partials_;     // with several parts: buffers of partial results
  // With several parts: whether the block that arrives last combines all results in the same pass.
  bool last_block_combines_ = false;

 private:
  // Functions that make the code of values (values.cpp).
  TileId spread(TileId narrow, std::vector<Instr>& into, bool across_rows);
  std::vector<Instr>& code_for(const std::vector<AtomId>& varies, PhaseCode& code) const;
  TileId get(NodeId node, PhaseCode& code);
  TileId load(const Access& access, DType dtype, PhaseCode& code);
  TileId load(const std::vector<Piece>& pieces, DType dtype, PhaseCode& code);
  TileId compute(NodeId node, PhaseCode& code);
  Instr gather(NodeId node, PhaseCode& code);
  int inline_expr(NodeId node, Instr& map, PhaseCode& code);
  bool is_inlined(NodeId source, NodeId reader, const PhaseCode& code) const;
  int operand_expr(NodeId node, int position, Instr& map, PhaseCode& code);
  int arg_expr(Instr& map, TileId tile) { return push_arg(map, tile, out_.kernel().tiles[tile].dtype); }
  int iota_expr(const Access& value, DType dtype, Instr& map, PhaseCode& code);
  Slice kept_slice(NodeId node, const PhaseCode& code);

  // Functions that make the code of reductions and stores (phase_code.cpp).
  int product_expr(NodeId contract, int first, DType dtype, Instr& map, PhaseCode& code);
  void fold(NodeId reduce, PhaseCode& code);
  TileId stored_value(const Domain::Store& store, PhaseCode& code);
  void store_output(const Domain::Store& store, PhaseCode& code);
  void guard_first_turn(const Access& access, const RowPlace& place, Instr& store) const;

  // Functions that make the code of partial results, where a row has several parts (partials.cpp).
  Slice partial_slice(NodeId reduce, TileId tile, const RowPlace& place, const Affine& part);
  void store_partial(NodeId reduce, PhaseCode& code);
  TileId combined(NodeId reduce, PhaseCode& code);
  TileId combined_lanes(NodeId reduce, PhaseCode& code);
  TileId combined_tiles(NodeId reduce, PhaseCode& code);

  std::map<std::pair<int, NodeId>, TileId> combined_;  // combined results of all parts, for each phase and reduction
  std::map<NodeId, BufferId> kept_buffers_;            // row buffers, for each node whose values they keep
};

// Returns a map that computes factor * exp(from - to), or exp(from - to) without a factor. With `equal`, the result is
// the factor (or 1) itself wherever from == to, because the difference of two equal infinities would be NaN.
Instr times_power(TileId result, std::optional<TileId> factor, TileId from, TileId to, bool equal, DType dtype);
// The dtype that partial results are stored in. Floats narrower than f32 become f32, so that partial results keep the
// precision that they have in registers.
DType partial_dtype(DType dtype);

}  // namespace wl

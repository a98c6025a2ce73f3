// Loop nests without a contraction: maps, row reductions and column reductions, all from one scheme. The work on a row
// falls into *phases*: a phase ends where a reduction's result is first needed. Each phase is a nest over the outer
// reduced atoms around one walk along the vector atom, so a row is read from memory in phase 0 and found in a cache, a
// row buffer or registers later.
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

// Code of one phase, by where it goes.
struct PhaseCode {
  int phase = 0;
  RowPlace place;
  std::vector<Instr> fills, pre;  // before the phase's loops
  std::vector<Instr> narrow;      // inside the loops, but constant along the vector atom
  std::vector<Instr> inner;
  std::vector<Instr> exchange;  // after the loops: stores what other threads of the block reduce further
  std::vector<Instr> post;
  std::vector<Instr> partials;   // with several parts: stores of what this block has reduced
  std::vector<Instr> next_pass;  // with several parts: what needs the results of all of them
  std::map<NodeId, TileId> tiles;
  std::vector<std::pair<Access, TileId>> loads;
  std::vector<std::pair<std::vector<Piece>, TileId>> joined;
};

void append(std::vector<Instr>& to, std::vector<Instr> from);

// The code of a phase, which is the same on CPUs and GPUs but for the functions that are virtual here. Owns the kernel
// under construction, the geometry, and the tiles that hold results of reductions.
class RowLowering {
 public:
  RowLowering(const RowLowering&) = delete;
  RowLowering& operator=(const RowLowering&) = delete;

 protected:
  // Elements along the vector atom: that one instruction handles, and of a row where the vector atom is parallel.
  struct Widths {
    int lanes;
    int64_t tile;
  };
  // Where the partial results of a reduction lie.
  struct PartialSpace {
    BufferId buffer;
    Affine row;  // of the block's
    int64_t row_stride, part_stride;
  };
  // How many rows a row buffer has, and which of them a place is about.
  struct KeptSlot {
    int64_t slots;
    Affine slot;
  };

  RowLowering(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine,
              Widths widths);
  virtual ~RowLowering() = default;

  // What differs between CPUs and GPUs. A tile of one element along the vector atom, or of a vector:
  virtual TileId new_tile(DType dtype, bool is_wide, bool across_rows) = 0;
  // A tile that a reduction along the vector atom accumulates in, one element for each lane.
  virtual TileId accumulator(DType dtype) = 0;
  // Combines the lanes of an accumulator.
  virtual void combine_lanes(NodeId reduce, Op combine, TileId partial, TileId result, PhaseCode& code) = 0;
  // Stores a reduction that was accumulated element by element as its result.
  virtual void combine_elements(NodeId reduce, Op combine, TileId partial, TileId result, PhaseCode& code) = 0;
  // Finds a maximum and the sums of exponentials that depend on it in one walk.
  virtual void fold_online(NodeId largest, PhaseCode& code) = 0;
  virtual TileId result_in(int phase, NodeId reduce) = 0;
  virtual KeptSlot kept_slot(const PhaseCode& code) = 0;
  virtual PhaseCode begin_phase() { return {}; }
  virtual void end_phase(PhaseCode& code) = 0;
  // A load of what was copied to shared memory ahead; nothing where the access is loaded from its input.
  virtual std::optional<TileId> load_copied(const Access& access, DType dtype, PhaseCode& code) = 0;
  // Whether a store inside loops that it does not move along is limited to their first iteration.
  virtual bool stores_once() const = 0;
  // Parts of a row: the lanes that combine partial results, a tile of `width` of them, and where they lie.
  virtual int part_lanes() = 0;
  virtual TileId part_tile(DType dtype, int64_t width) = 0;
  virtual PartialSpace partial_space(NodeId reduce, int64_t width, const RowPlace& place);
  // What separates the stores of partial results from their loads.
  virtual Instr end_of_phase();
  // Whether registers keep their values from one phase of a shared row to the next.
  virtual bool keeps_registers() const = 0;

  TileId make_tile(DType dtype, bool is_wide) { return new_tile(dtype, is_wide, false); }
  TileId tile_of(DType dtype, const std::vector<AtomId>& varies) {
    return new_tile(dtype, at_.wide(varies), at_.across_rows(varies));
  }
  bool is_wide_tile(TileId tile) { return !out_.kernel().tiles[tile].layout.bases.empty(); }
  bool is_tile_across_rows(TileId tile) { return out_.kernel().tiles[tile].layout.shape[0] > 1; }

  // The code of a phase, and of phases that run together.
  PhaseCode phase_code(int phase, RowPlace place);
  void emit_phases(std::vector<PhaseCode>& codes);
  TileId folded_value(NodeId reduce, DType dtype, PhaseCode& code);
  bool has_online_sums(NodeId largest) const;

  // Lets several blocks share each row; `one_tile`: a block has its share of the vector atom as one tile.
  void share_row(int64_t step, bool one_tile);

  const Graph& group_;
  const Domain& domain_;
  const Schedule& schedule_;
  const Machine& machine_;
  KernelBuilder out_;
  NestPhases phases_;
  RowGeometry at_;
  int64_t block_rows_ = 1;                  // rows of a block
  std::vector<std::vector<Affine>> bound_;  // of wide tiles
  std::map<NodeId, TileId> results_;        // of reductions, at the end of the phase that computes them
  std::map<NodeId, BufferId> partials_;     // with several parts: where blocks store partial results
  bool last_block_combines_ = false;        // with several parts: the last block combines them in the same pass

 private:
  // Values.
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

  // Reductions and stores.
  int product_expr(NodeId contract, int first, DType dtype, Instr& map, PhaseCode& code);
  void fold(NodeId reduce, PhaseCode& code);
  TileId stored_value(const Domain::Store& store, PhaseCode& code);
  void store_output(const Domain::Store& store, PhaseCode& code);
  void guard_first_turn(const Access& access, const RowPlace& place, Instr& store) const;

  // Parts of a row (partials.cpp).
  Slice partial_slice(NodeId reduce, TileId tile, const RowPlace& place, const Affine& part);
  void store_partial(NodeId reduce, PhaseCode& code);
  TileId combined(NodeId reduce, PhaseCode& code);
  TileId combined_lanes(NodeId reduce, PhaseCode& code);
  TileId combined_tiles(NodeId reduce, PhaseCode& code);

  std::map<std::pair<int, NodeId>, TileId> combined_;  // results of all parts, by phase
  std::map<NodeId, BufferId> kept_buffers_;
};

// factor * exp(from - to), or exp(from - to) without a factor. Where from and to are equal, and `equal` asks for it,
// the result is the factor, or 1, itself: the difference of two infinities would be NaN.
Instr times_power(TileId result, std::optional<TileId> factor, TileId from, TileId to, bool equal, DType dtype);
// The dtype of partial results, which keep the precision that they have in registers.
DType partial_dtype(DType dtype);

}  // namespace wl

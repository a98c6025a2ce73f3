// Loop nests without a contraction: maps, row reductions and column reductions, all from one scheme. A *row* is one
// point of the parallel atoms (and one tile of the vector atom, where that is parallel); a block owns a range of rows.
// The work on a row falls into *phases*: a phase ends where a reduction's result is first needed. Each phase is a nest
// over the outer reduced atoms around one stretch along the vector atom, so a row is read from memory in phase 0 and
// found in cache or in a row buffer later. With `parts`, blocks share a row (loops_parts.cpp). With `pipeline`, one
// loop runs phase p on row i + (last - p): the memory is never idle while a phase computes (ALCOP's pipelining, applied
// to rows).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/plan/phases.h"
#include "compiler/schedule/pieces.h"
#include "compiler/schedule/space.h"

namespace wl {

// Which phase computes what; from the group and its domain alone.
struct Phases : RowPhases {
  std::vector<int> uses;                 // per node: readers, outputs included
  std::vector<std::vector<int>> stores;  // per phase: indices into domain.stores
  // Values of an earlier phase that a later one loads from a row buffer instead of computing again.
  std::map<NodeId, int> kept;  // -> phase that stores it
};

// keep_all: every computed value that a later phase reads is stored, not only those that are costly to compute again.
Phases phases_of(const Graph& group, const Domain& domain, bool keep_all, bool online);

// factor * exp(from - to), or factor itself where the two are equal and `equal` says so: who has seen nothing but -inf
// goes on.
Instr times_power(TileId result, std::optional<TileId> factor, TileId from, TileId to, bool equal, DType dtype);

class LoopLowering {
 public:
  LoopLowering(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine);
  absl::StatusOr<Kernel> run();

 private:
  // Where one phase works: an index expression for every atom but the vector one.
  struct RowPlace {
    std::vector<Affine> atom;
    Affine vector_base;  // first element along the vector atom
    Affine row;          // row number, not clamped
    Affine ring;         // number of the row within the block, for ring slots
  };
  // Code of one phase, by where it goes.
  struct Code {
    int phase = 0;
    // narrow: inside the phase's loops, but constant along the vector atom
    // exchange: a team's waves leave what they reduced in shared memory
    // leave, after: with parts, what a block reduced goes to the workspace; what then is known only in the next pass
    std::vector<Instr> fills, pre, narrow, inner, exchange, post, leave, after;
    std::map<NodeId, TileId> tiles;
    std::vector<std::pair<Access, TileId>> loads;
    std::vector<std::pair<std::vector<Piece>, TileId>> joined;
    RowPlace place;
  };

  bool inner(const std::vector<AtomId>& varies) const;
  bool wide(const std::vector<AtomId>& varies) const;
  bool tall(const std::vector<AtomId>& varies) const;
  int64_t steps_of(AtomId atom) const;
  std::vector<AtomId> atoms_of(const Access& access) const;
  TileId make_tile(DType dtype, bool is_wide, bool is_tall = false);
  TileId tile_of(DType dtype, const std::vector<AtomId>& varies) {
    return make_tile(dtype, wide(varies), tall(varies));
  }
  TileId spread(TileId narrow, std::vector<Instr>& into, bool is_tall = false);
  std::vector<Instr>& code_for(const std::vector<AtomId>& varies, Code& code) const;
  Affine index_of(int64_t offset, const std::vector<int64_t>& strides, const RowPlace& place) const;
  Slice slice_of(BufferId buffer, const Access& access, const RowPlace& place, bool is_wide) const;
  RowPlace place_of(Affine row, std::vector<Affine> clamp);
  RowPlace banded_place(const Affine& row, RowPlace place);
  TileId get(NodeId node, Code& code);
  TileId load(const Access& access, DType dtype, Code& code);
  TileId load(const std::vector<Piece>& pieces, DType dtype, Code& code);
  TileId compute(NodeId node, Code& code);
  int inline_expr(NodeId node, Instr& map, Code& code);
  int operand_expr(NodeId node, int position, Instr& map, Code& code);
  int arg_expr(Instr& map, TileId tile) { return push_arg(map, tile, out_.kernel().tiles[tile].dtype); }
  int iota_expr(const Access& value, DType dtype, Instr& map, Code& code);
  int product_expr(NodeId contract, int first, DType dtype, Instr& map, Code& code);
  TileId reduced(NodeId reduce, int phase);
  Slice kept_slice(NodeId node, const Code& code);
  void prefetch(Code& code);
  Code phase_code(int phase, RowPlace place);
  TileId stored_value(const Domain::Store& store, Code& code);
  void store_once(const Access& access, const RowPlace& place, Instr& store) const;
  TileId folded_value(NodeId reduce, DType dtype, Code& code);
  void fold(NodeId reduce, Code& code);
  void fold_online(NodeId largest, Code& code);
  void fold_chunks(NodeId largest, Code& code);
  void cross(NodeId reduce, Op combine, TileId partial, TileId result, Code& code);
  void combine_teams(NodeId reduce, Op combine, TileId partial, TileId result, Code& code);
  void share_out(int64_t step);
  Affine row_of_block(int64_t rows);
  void leave(NodeId reduce, Code& code);
  Instr meeting();
  Slice left_slice(NodeId reduce, TileId tile, const RowPlace& place, const Affine& part);
  int64_t left_stride(TileId tile);
  TileId combined(NodeId reduce, Code& code);
  TileId combined_lanes(NodeId reduce, Code& code);
  TileId combined_tiles(NodeId reduce, Code& code);
  std::vector<Affine> outer_trips(size_t loop);
  std::vector<Affine> chunk_trips();
  bool is_wide_tile(TileId tile);
  bool is_tall_tile(TileId tile) { return out_.kernel().tiles[tile].layout.shape[0] > 1; }
  void emit_row(std::vector<Code> codes, bool prologue = false);
  void emit_pipelined(const std::vector<Affine>& trips);
  int64_t persistent_blocks(int64_t chunks) const;
  TileId load_sent(const Access& access, DType dtype, Code& code);
  void send_rows(const Affine& row, const Affine& slot);
  absl::StatusOr<Kernel> run_teams();

  const Graph& group_;
  const Domain& domain_;
  const Schedule& schedule_;
  const Machine& machine_;
  KernelBuilder out_;
  Phases phases_;
  std::vector<AtomId> row_atoms_;      // parallel atoms but the vector one
  std::vector<AtomId> outer_reduced_;  // reduced atoms but the vector one
  std::vector<VarId> outer_vars_;
  AtomId tall_ = -1;  // tiles are `height_` rows of neighbours along this atom
  int64_t height_ = 1;
  AtomId banded_ = -1;  // rows within this loop are walked in bands of so many
  int64_t band_ = 0;
  bool vector_reduced_ = false;
  int64_t vector_extent_ = 1, vector_tile_ = 1, vector_tiles_ = 1;
  int64_t rows_ = 1, chunk_ = 1;
  int lanes_ = 1;          // along the vector atom; with lanes of a team times its threads
  int vector_ = 1;         // of one thread
  bool team_ = false;      // the machine has lanes
  bool split_ = false;     // the teams of a block share the outermost reduced loop of one row
  bool resident_ = false;  // a team keeps its row in registers over all phases
  bool pipelined_ = false;
  // Blocks that share a row: how many, which one this is, the loop of which each has `share_` turns.
  int64_t parts_ = 1, share_ = 0;
  bool cluster_ = false;  // they are a cluster: they meet instead of ending a pass, and keep what they have
  bool last_ = false;     // the last of them goes on, in the same pass
  Affine part_;
  AtomId part_atom_ = -1;
  std::map<NodeId, BufferId> left_;                     // partial results of parts
  std::map<std::pair<NodeId, DType>, BufferId> teams_;  // of teams, in shared memory; parts may be wider
  std::map<std::pair<int, NodeId>, TileId> combined_;   // by phase, that is, by pass
  VarId row_var_ = -1;
  int64_t ahead_ = 0;  // persistent blocks: rows that are on their way to shared memory while one is computed
  Affine slot_;        // where the row that is computed lies there
  std::vector<std::pair<Access, Slice>> sent_;  // what is copied, and its place in slot 0
  VarId chunk_var_ = -1;                        // which part of a row that is walked in parts
  int64_t row_extent_ = 1;                      // elements of a row; vector_tile_ of them at a time
  std::vector<std::vector<Affine>> bound_;      // of wide tiles
  Code carried_;                                // resident: what earlier phases of the row left in registers
  // Reduction results by age: results_[r][d] is the value of d iterations ago.
  std::map<NodeId, std::vector<TileId>> results_;
  std::map<NodeId, BufferId> buffers_;                 // of kept values
  std::vector<std::pair<Access, TileId>> read_first_;  // in phase 0
};

}  // namespace wl

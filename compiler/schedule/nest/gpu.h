// The lowering of loop nests for GPUs: a team of threads owns a row, or a tile along the vectorised axis. The team
// keeps its row in registers over all phases, or walks the row in tiles once for each phase. In the second case, values
// of an earlier phase that a later one needs are computed again or kept in shared memory.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/kernel/pipeline/pipeline.h"
#include "compiler/schedule/nest/lowering.h"

namespace wl {

// Adds to RowLowering what only GPU kernels have: how teams divide rows, where a row's values are kept, persistent
// blocks with rows that are copied ahead, and clusters.
class GpuRows : public RowLowering {
 public:
  GpuRows(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine);
  absl::StatusOr<Kernel> run();

 private:
  static Widths widths_of(const Domain& domain, const Schedule& schedule, const Machine& machine);

  TileId new_tile(DType dtype, bool is_wide, bool across_rows) override;
  TileId accumulator(DType dtype) override { return out_.team_tile(dtype, {1, at_.lanes()}, 1, vector_); }
  void combine_lanes(NodeId reduce, Op combine, TileId partial, TileId result, PhaseCode& code) override;
  void combine_elements(NodeId reduce, Op combine, TileId partial, TileId result, PhaseCode& code) override;
  void fold_online(NodeId largest, PhaseCode& code) override;
  TileId result_in(int, NodeId reduce) override { return results_.at(reduce); }
  KeptSlot kept_slot(const PhaseCode& code) override;
  PhaseCode begin_phase() override;
  void end_phase(PhaseCode& code) override;
  std::optional<TileId> load_copied(const Access& access, DType dtype, PhaseCode& code) override;
  bool stores_once() const override { return true; }
  int part_lanes() override;
  TileId part_tile(DType dtype, int64_t width) override;
  PartialSpace partial_space(NodeId reduce, int64_t width, const RowPlace& place) override;
  Instr end_of_phase() override;
  bool keeps_registers() const override { return cluster_; }

  // The following functions are the steps of run().
  absl::Status divide_rows();
  absl::Status store_row();
  void share_rows();
  void find_row();
  Affine turns_of_block();
  void emit_turns(const Affine& turns, std::vector<PhaseCode> phases);
  absl::StatusOr<Kernel> finish();
  int64_t persistent_blocks() const;

  void combine_row_teams(NodeId reduce, Op combine, TileId partial, TileId result, PhaseCode& code);

  int vector_ = 1;  // number of elements of a thread that one instruction handles
  bool cluster_ = false;
  bool in_registers_ = false;  // whether a team keeps its row in registers over all phases
  PhaseCode carried_;          // if in_registers_: the tiles of earlier phases
  // Buffers in shared memory through which the teams that share a row exchange results.
  std::map<std::pair<NodeId, DType>, BufferId> exchanged_;

  // row_: the number of the team's row. limits_: upper bounds of this number, if some teams lie beyond the last row.
  Affine row_;
  std::vector<Affine> limits_;
  // rows_at_once_: the number of rows that a block computes at the same time. blocks_of_rows_: the number of blocks
  // before rows are divided into parts.
  int64_t rows_at_once_ = 1, blocks_of_rows_ = 1;
  // Whether rows are tiles along the vectorised axis; tiles beyond the last row are then empty.
  bool rows_end_early_ = false;

  // The state of persistent blocks. row_var_: the variable of the loop over the rows of a team; -1: a team has one row.
  bool persistent_ = false;
  VarId row_var_ = -1;
  int64_t rows_ahead_ = 0;  // how many rows are copied to shared memory ahead of the current row
  // If a row is walked in tiles: how many tiles are copied to shared memory ahead of the current tile.
  int64_t tiles_ahead_ = 0;
  // For each phase: the buffers in shared memory that are filled ahead. If rows are copied ahead (rows_ahead_), phase
  // 0 has all these buffers.
  std::map<int, std::vector<Pipeline::Ring>> copied_;
};

}  // namespace wl

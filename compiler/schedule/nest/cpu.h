// The lowering of loop nests for CPUs: a block, which one thread runs, owns a range of rows, or a part of one row, and
// walks each row once for every phase.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/schedule/nest/lowering.h"

namespace wl {

// Adds to RowLowering what only CPU kernels have: the pipeline of rows, prefetches, and the walk over a row in chunks.
class CpuRows : public RowLowering {
 public:
  CpuRows(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine);
  absl::StatusOr<Kernel> run();

 private:
  static Widths widths_of(const Domain& domain, const Schedule& schedule, const Machine& machine);

  TileId new_tile(DType dtype, bool is_wide, bool across_rows) override;
  TileId accumulator(DType dtype) override { return out_.tile(dtype, {1, at_.lanes()}, 1, at_.lanes()); }
  void combine_lanes(NodeId reduce, Op combine, TileId partial, TileId result, PhaseCode& code) override;
  void combine_elements(NodeId reduce, Op combine, TileId partial, TileId result, PhaseCode& code) override;
  void fold_online(NodeId largest, PhaseCode& code) override;
  TileId result_in(int phase, NodeId reduce) override;
  KeptSlot kept_slot(const PhaseCode& code) override;
  void end_phase(PhaseCode& code) override { prefetch(code); }
  std::optional<TileId> load_copied(const Access&, DType, PhaseCode&) override { return std::nullopt; }
  bool stores_once() const override { return at_.parts() > 1; }
  int part_lanes() override { return 1; }
  TileId part_tile(DType dtype, int64_t width) override { return out_.tile(dtype, {1, width}, -1, 1); }
  bool keeps_registers() const override { return false; }

  void make_results();
  void emit_rows(const Affine& row, const std::vector<Affine>& trips);
  void emit_pipelined(const std::vector<Affine>& trips);
  void age_results(int phases, bool prologue);
  void prefetch(PhaseCode& code);
  bool moves_with_row(const Access& access) const;

  VarId row_var_ = -1;  // variable of the loop over a block's rows; -1: a block has only a part of one row
  bool pipelined_ = false;
  // With pipelined rows, for each reduction: the tiles with its results of one iteration ago, two ago, and so on.
  std::map<NodeId, std::vector<TileId>> older_;
  std::vector<std::pair<Access, TileId>> read_first_;  // the loads of phase 0, some of which are prefetched
};

}  // namespace wl

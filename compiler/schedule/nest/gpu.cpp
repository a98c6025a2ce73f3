#include "compiler/schedule/nest/gpu.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "compiler/domain/reads.h"
#include "compiler/kernel/barriers.h"
#include "compiler/kernel/pipeline/pipeline.h"
#include "compiler/schedule/data_movement.h"
#include "compiler/schedule/launch.h"

namespace wl {
namespace {

// Adds a guard to all stores to global memory. A team whose row number lies beyond the last row computes another row
// again, and must not store it. With `but_bounded`, stores of bounded tiles get no guard, since these tiles are empty
// beyond the last row.
void guard_stores(const Kernel& kernel, std::vector<Instr>& body, const SliceGuard& guard, bool but_bounded) {
  for (Instr& instr : body) {
    guard_stores(kernel, instr.body, guard, but_bounded);
    if (instr.op != InstrOp::kStore || (but_bounded && !kernel.tiles[instr.args[0]].bound.empty())) continue;
    if (kernel.buffers[instr.slice.buffer].level == Level::kGlobal) instr.guards.push_back(guard);
  }
}

}  // namespace

GpuRows::GpuRows(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine)
    : RowLowering(group, domain, schedule, machine, widths_of(domain, schedule, machine)) {
  if (at_.vector_extent() != 1) vector_ = static_cast<int>(schedule[kVector]);
  cluster_ = at_.parts() > 1 && schedule[kCluster] != 0;
}

RowLowering::Widths GpuRows::widths_of(const Domain& domain, const Schedule& schedule, const Machine&) {
  const int64_t extent = domain.vector >= 0 ? domain.atoms[domain.vector].extent : 1;
  const int lanes = extent != 1 ? static_cast<int>(schedule[kVector] * schedule[kTeam]) : 1;
  return {lanes, schedule[kTileVectors] * lanes};
}

absl::StatusOr<Kernel> GpuRows::run() {
  WL_RETURN_IF_ERROR(divide_rows());
  if (at_.rows() == 0) return out_.finish();
  if (persistent_ || schedule_[kRowsPerTeam] > 1) row_var_ = out_.loop_var(persistent_ ? "turn" : "i");
  at_.add_outer_loops();
  if (schedule_[kTeamsShareReduction] != 0 && out_.kernel().teams > 1) at_.share_outermost(out_.kernel().teams);
  WL_RETURN_IF_ERROR(store_row());
  if (at_.parts() > 1) share_rows();
  find_row();
  for (NodeId reduce : phases_.reduces) {
    const auto scope = out_.values_of(reduce);
    results_[reduce] = make_tile(group_.nodes[reduce].dtype, at_.wide(domain_.varies[reduce]));
  }
  const Affine turns = turns_of_block();
  rows_ahead_ = persistent_ ? schedule_[kPersistent] - 1 : 0;
  if (turns.terms.empty()) rows_ahead_ = std::min(rows_ahead_, turns.base - 1);
  tiles_ahead_ = schedule_[kTilesAhead];
  std::vector<PhaseCode> phases;
  for (int phase = 0; phase < phases_.count; ++phase) phases.push_back(phase_code(phase, at_.place_of(row_, limits_)));
  emit_turns(turns, std::move(phases));
  return finish();
}

// Sets how many rows a block has in all, how many of them it computes at a time, and how many blocks the grid has.
absl::Status GpuRows::divide_rows() {
  const int teams = out_.kernel().teams;
  if (at_.vector_extent() > 1 && at_.lanes() == 1)
    return invalid("a row of ", at_.vector_extent(), " elements needs a team of more than one thread");
  const bool teams_share = schedule_[kTeamsShareReduction] != 0 && teams > 1;
  if (teams_share && at_.outer_reduced().empty())
    return invalid("teams cannot share the reduction of a row of one loop; the threads of one team do");
  rows_at_once_ = teams_share ? 1 : teams;
  block_rows_ = rows_at_once_ * schedule_[kRowsPerTeam];
  blocks_of_rows_ = (at_.rows() + block_rows_ - 1) / block_rows_;
  persistent_ = schedule_[kPersistent] != 0;
  out_.kernel().grid = blocks_of_rows_ * at_.parts();
  if (persistent_ && at_.rows() > 0) out_.kernel().grid = persistent_blocks();
  return absl::OkStatus();
}

// The number of persistent blocks: as many as the machine runs at once. If possible, this number is rounded down so
// that a block computes the same tile along the vectorised axis in every iteration. Loads that depend on the tile but
// not on the row are then the same in every iteration.
int64_t GpuRows::persistent_blocks() const {
  const int64_t most = std::min(blocks_of_rows_, schedule_[kMinBlocks] * machine_.multiprocessors());
  const int64_t step = at_.vector_tiles() / std::gcd(at_.vector_tiles(), block_rows_);
  return most >= step ? most - most % step : most;
}

// Decides where a row's values are kept for later phases, and in which tiles the row is walked.
absl::Status GpuRows::store_row() {
  const int64_t storage = schedule_[kRowStorage];
  if (storage == kRowInRegisters && !at_.outer_reduced().empty())
    return invalid("row_storage: a row of several loops cannot stay in registers");
  // A row without elements must be walked by a loop, which then has no iterations.
  const bool nothing = at_.vector_reduced() && at_.vector_extent() == 0;
  const bool is_map = domain_.cls == LoopClass::kMap && at_.outer_reduced().empty();
  in_registers_ = !nothing && (storage == kRowInRegisters || is_map);
  if (storage != kRowInShared || nothing) phases_.kept.clear();
  if (at_.vector_reduced() && !in_registers_) {
    at_.set_tile(std::max<int64_t>(1, std::min(at_.vector_extent(), schedule_[kTileVectors] * at_.lanes())));
    if (at_.tile() < at_.vector_extent() || nothing) at_.set_tile_var(out_.loop_var("part"));
  }
  return absl::OkStatus();
}

// Divides rows among blocks, which exchange partial results in a further pass or within a cluster.
void GpuRows::share_rows() {
  share_row(in_registers_ ? at_.lanes() : at_.tile(), /*one_tile=*/in_registers_);
  if (!cluster_) {
    phases_.kept.clear();  // what shared memory holds is lost at the end of a pass, so row buffers keep nothing
    return;
  }
  if (at_.shares_vector()) at_.set_row_extent(at_.share());
  out_.kernel().cluster = static_cast<int>(at_.parts());
}

// Sets row_ (the number of a team's row), limits_ (its upper bounds) and bound_ (the bound of tiles).
void GpuRows::find_row() {
  row_ = at_.row_of_block(block_rows_);
  if (at_.row_teams() == 1) row_.add(kTeamVar, 1);
  if (row_var_ >= 0) row_.add(row_var_, persistent_ ? out_.kernel().grid * block_rows_ : rows_at_once_);
  const bool divides = at_.vector_extent() % at_.tile() == 0;
  rows_end_early_ = at_.row_atoms().empty() && !divides && !at_.vector_reduced();
  if (at_.rows() % block_rows_ != 0 && !rows_end_early_) limits_ = {fixed(at_.rows() - 1)};
  if (!divides) bound_ = at_.bound_at(at_.place_of(row_, limits_));
}

Affine GpuRows::turns_of_block() {
  if (!persistent_) return fixed(schedule_[kRowsPerTeam]);
  return wl::turns_of_block(out_, affine(kBlockVar), blocks_of_rows_, out_.kernel().grid);
}

// Emits the loop over the rows of a team. `turns`: its number of iterations.
void GpuRows::emit_turns(const Affine& turns, std::vector<PhaseCode> phases) {
  if (row_var_ >= 0) out_.open_loop(row_var_, {turns});
  for (PhaseCode& phase : phases) {
    std::vector<PhaseCode> alone;
    alone.push_back(std::move(phase));
    emit_phases(alone);
  }
  if (row_var_ >= 0) out_.close_loop();
  // A block must not end while other blocks of its cluster load from its shared memory.
  if (cluster_) out_.push(end_of_phase());
}

absl::StatusOr<Kernel> GpuRows::finish() {
  for (const Domain::Store& store : domain_.stores)
    out_.kernel().buffers[out_.output_buffer(store.output)].once =
        std::all_of(domain_.parallel.begin(), domain_.parallel.end(),
                    [&](AtomId a) { return domain_.atoms[a].extent == 1 || store.access.moves_along(a); });
  Kernel kernel = out_.finish();
  if (at_.rows() % block_rows_ != 0) guard_stores(kernel, kernel.body, {row_, {0, 0}, at_.rows()}, rows_end_early_);
  for (const auto& [phase, rings] : copied_) {
    const bool rows = rows_ahead_ > 0;
    WL_RETURN_IF_ERROR(
        pipeline(kernel, {rows ? row_var_ : at_.tile_var(), rings, 1 + (rows ? rows_ahead_ : tiles_ahead_)}));
  }
  if (persistent_) hoist_loads(kernel, row_var_);
  insert_barriers(kernel);
  const Gpu& gpu = machine_.target->gpu;
  if (kernel.threads > gpu.block_threads || kernel.scratch_bytes() > gpu.block_shared)
    return invalid("a block needs ", kernel.threads, " threads and ", kernel.scratch_bytes(),
                   " bytes of shared memory; ", machine_.target->name, " has ", gpu.block_threads, " and ",
                   gpu.block_shared);
  return kernel;
}

TileId GpuRows::new_tile(DType dtype, bool is_wide, bool) {
  if (is_wide) return out_.team_tile(dtype, {1, at_.tile()}, 1, vector_, bound_);
  return out_.team_tile(dtype, {1, 1}, -1, 1);
}

// If a team keeps its row in registers, the next phase finds the values of earlier phases in registers, unless a new
// pass (sweep over the grid) begins between the phases.
PhaseCode GpuRows::begin_phase() {
  if (in_registers_ && (at_.parts() == 1 || cluster_)) return std::move(carried_);
  return {};
}

void GpuRows::end_phase(PhaseCode& code) {
  if (!in_registers_) return;
  carried_ = {};
  carried_.tiles = code.tiles;
  carried_.loads = code.loads;
  carried_.joined = code.joined;
}

// The row buffer has a slot for each team, unless all teams share one row.
RowLowering::KeptSlot GpuRows::kept_slot(const PhaseCode&) {
  const int slots = at_.row_teams() > 1 ? 1 : out_.kernel().teams;
  return {slots, slots > 1 ? affine(kTeamVar) : fixed(0)};
}

// Values that are copied ahead pass through shared memory. Each thread copies the elements that it will load itself, so
// that no barrier is needed.
std::optional<TileId> GpuRows::load_copied(const Access& access, DType dtype, PhaseCode& code) {
  const bool in_tiles = tiles_ahead_ > 0 && at_.tile_var() >= 0 && at_.outer_reduced().empty();
  if ((rows_ahead_ == 0 && !in_tiles) || !at_.wide(at_.atoms_of(access))) return std::nullopt;
  if (!copies_rows(group_, domain_, access, vector_)) return std::nullopt;
  const int teams = out_.kernel().teams;
  const int64_t pitch = (at_.tile() + 63) / 64 * 64;
  std::vector<Pipeline::Ring>& rings = copied_[in_tiles ? code.phase : 0];
  Slice slice;
  slice.buffer = out_.shared(cat("ahead", copied_.size(), "_", rings.size()), dtype, {1, teams, pitch});
  if (teams > 1) slice.offset.add(kTeamVar, pitch);
  slice.strides = {0, 1};
  rings.push_back({slice.buffer, true});
  const TileId copied = make_tile(dtype, true), tile = make_tile(dtype, true);
  code.inner.push_back(load_instr(copied, at_.slice_of(out_.input_buffer(access.input), access, code.place, true)));
  code.inner.push_back(store_instr(copied, slice, false));
  code.inner.push_back(load_instr(tile, std::move(slice)));
  return tile;
}

}  // namespace wl

// Loop nests for machines with lanes: a team of threads owns a row (or a tile of the vector atom), and keeps it in
// registers over all phases, or walks it in parts once for each phase; what a later phase needs of an earlier one is
// then computed again or kept in shared memory.
#include <algorithm>
#include <numeric>

#include "compiler/kernel/barriers.h"
#include "compiler/schedule/data_movement.h"
#include "compiler/schedule/nest/loops.h"

namespace wl {
namespace {

// Teams beyond the last row work on some other, and store nothing. A tile that is bounded may end before it begins.
void guard_stores(const Kernel& kernel, std::vector<Instr>& body, const SliceGuard& guard, bool but_bounded) {
  for (Instr& instr : body) {
    guard_stores(kernel, instr.body, guard, but_bounded);
    if (instr.op != InstrOp::kStore || (but_bounded && !kernel.tiles[instr.args[0]].bound.empty())) continue;
    if (kernel.buffers[instr.slice.buffer].level == Level::kGlobal) instr.guards.push_back(guard);
  }
}

}  // namespace

bool LoopLowering::is_wide_tile(TileId tile) {
  return !out_.kernel().tiles[tile].layout.bases.empty();
}

// As many as the machine runs at once, and such that a block meets one tile of the vector atom alone where that may be:
// what moves with it and not with rows is then the same in every turn.
int64_t LoopLowering::persistent_blocks(int64_t chunks) const {
  const int64_t most = std::min(chunks, schedule_[kMinBlocks] * machine_.multiprocessors());
  const int64_t step = vector_tiles_ / std::gcd(vector_tiles_, chunk_);
  return most >= step ? most - most % step : most;
}

absl::StatusOr<Kernel> LoopLowering::run_teams() {
  const int teams = out_.kernel().teams;
  if (vector_extent_ > 1 && lanes_ == 1) return invalid("a row of ", vector_extent_, " needs more than one lane");
  const int64_t rows_each = schedule_[kRowsPerTeam];
  split_ = schedule_[kTeamsShareReduction] != 0 && teams > 1;
  if (split_ && outer_reduced_.empty())
    return invalid("a row of one loop is shared by the lanes of a team, not by teams");
  const int64_t at_once = split_ ? 1 : teams;  // rows
  chunk_ = at_once * rows_each;
  const int64_t chunks = (rows_ + chunk_ - 1) / chunk_;
  out_.kernel().grid = chunks * parts_;
  if (rows_ == 0) return out_.finish();
  const bool persistent = schedule_[kPersistent] != 0;
  if (persistent) out_.kernel().grid = persistent_blocks(chunks);
  if (persistent || rows_each > 1) row_var_ = out_.loop_var(persistent ? "turn" : "i");
  for (AtomId a : outer_reduced_) outer_vars_.push_back(out_.loop_var(domain_.atoms[a].name));
  const int64_t storage = schedule_[kRowStorage];
  if (storage == kRowInRegisters && !outer_reduced_.empty())
    return invalid("a row of several loops does not stay in registers");
  // A row of nothing is a loop that does not run.
  const bool nothing = vector_reduced_ && vector_extent_ == 0;
  resident_ = !nothing && (storage == kRowInRegisters || (domain_.cls == LoopClass::kMap && outer_reduced_.empty()));
  if (storage != kRowInShared || nothing) phases_.kept.clear();
  if (vector_reduced_ && !resident_) {
    vector_tile_ = std::max<int64_t>(1, std::min(vector_extent_, schedule_[kTileVectors] * lanes_));
    if (vector_tile_ < vector_extent_ || nothing) chunk_var_ = out_.loop_var("part");
  }
  if (parts_ > 1) share_out(resident_ ? lanes_ : vector_tile_);
  Affine row = row_of_block(chunk_);
  if (!split_) row.add(kTeamVar, 1);
  const int64_t blocks = out_.kernel().grid;
  if (row_var_ >= 0) row.add(row_var_, persistent ? blocks * chunk_ : at_once);
  const bool uneven = rows_ % chunk_ != 0;
  // Where rows are parts of the vector atom alone, those beyond the last are empty.
  const bool empty_beyond = row_atoms_.empty() && vector_extent_ % vector_tile_ != 0 && !vector_reduced_;
  const std::vector<Affine> clamp =
      uneven && !empty_beyond ? std::vector<Affine>{fixed(rows_ - 1)} : std::vector<Affine>();
  if (vector_extent_ % vector_tile_ != 0) {
    bound_ = {{}, {sum(fixed(vector_extent_), place_of(row, clamp).vector_base, -1)}};
  }
  for (NodeId reduce : phases_.reduces)
    results_[reduce] = {make_tile(group_.nodes[reduce].dtype, wide(domain_.varies[reduce]))};
  Affine turns_of_block = fixed(persistent ? chunks / blocks : rows_each);
  if (persistent && chunks % blocks != 0)
    turns_of_block = affine(out_.derived("turns", {affine(kBlockVar, -1, chunks - 1 + blocks)}, blocks));
  ahead_ = persistent ? schedule_[kPersistent] - 1 : 0;
  if (ahead_ > 0) slot_ = affine(out_.derived("slot", {affine(row_var_)}, 1, ahead_ + 1));
  std::vector<std::vector<Code>> codes(phases_.count);
  for (int phase = 0; phase < phases_.count; ++phase) codes[phase].push_back(phase_code(phase, place_of(row, clamp)));
  if (sent_.empty()) ahead_ = 0;
  const auto turned = [&](int64_t turns) {  // the row of so many turns later
    Affine later = row;
    later.base += turns * blocks * chunk_;
    return later;
  };
  for (int64_t i = 0; i < ahead_; ++i) {
    Affine first = turned(i);
    std::erase_if(first.terms, [&](const auto& term) { return term.first == row_var_; });
    send_rows(first, fixed(i));
  }
  if (row_var_ >= 0) out_.open_loop(row_var_, {turns_of_block});
  if (ahead_ > 0) {
    send_rows(turned(ahead_), affine(out_.derived("next_slot", {affine(row_var_, 1, ahead_)}, 1, ahead_ + 1)));
    out_.push(wait_instr(static_cast<int>(ahead_)));
  }
  for (std::vector<Code>& phase : codes) emit_row(std::move(phase));
  if (row_var_ >= 0) out_.close_loop();
  if (ahead_ > 0) out_.push(wait_instr(0));
  if (cluster_) out_.push(meeting());  // nobody leaves while others load from it
  for (const Domain::Store& store : domain_.stores)
    out_.kernel().buffers[out_.output_buffer(store.output)].once =
        std::all_of(domain_.parallel.begin(), domain_.parallel.end(),
                    [&](AtomId a) { return domain_.atoms[a].extent == 1 || store.access.moves_along(a); });
  Kernel kernel = out_.finish();
  if (persistent) hoist_loads(kernel, row_var_);
  if (uneven) guard_stores(kernel, kernel.body, {row, {0, 0}, rows_}, empty_beyond);
  insert_barriers(kernel);
  const Gpu& gpu = machine_.target->gpu;
  if (kernel.threads > gpu.block_threads || kernel.scratch_bytes() > gpu.block_shared)
    return invalid(kernel.threads, " threads with ", kernel.scratch_bytes(), " bytes of shared memory; ",
                   machine_.target->name, " has ", gpu.block_threads, " and ", gpu.block_shared);
  return kernel;
}

}  // namespace wl

// Reductions on GPUs: among the lanes of a team (the threads that share a row or tile), among the teams of a row, and
// among the blocks of a cluster.
#include <algorithm>

#include "compiler/schedule/nest/gpu.h"

namespace wl {

// The lanes of a wave combine their values by shuffles. Where a team has several waves, or several teams share a row,
// each wave stores one value to shared memory, and every thread then combines the values of all waves of the row.
void GpuRows::combine_lanes(NodeId reduce, Op combine, TileId partial, TileId result, PhaseCode& code) {
  Kernel& kernel = out_.kernel();
  const DType dtype = kernel.tiles[partial].dtype;
  const int waves = std::max(1, kernel.team / kernel.wave);
  const int slots = waves * at_.row_teams();
  if (slots == 1) {
    code.post.push_back(cross_instr(result, partial, combine));
    return;
  }
  const auto tile_with = [&](Layout layout) { return out_.tile({dtype, std::move(layout), {}}); };
  const TileId of_wave = tile_with(team_layout({1, waves}, 1, 1, waves, 1));  // a tile with one value for each wave
  Slice own;
  own.buffer = out_.shared(cat("waves", reduce), dtype, {kernel.teams, waves});
  if (kernel.teams > 1) own.offset.add(kTeamVar, waves);
  own.strides = {0, 1};
  Slice all = own;
  if (at_.row_teams() > 1) all.offset = fixed(0);
  code.exchange.push_back(cross_instr(of_wave, partial, combine));
  code.exchange.push_back(store_instr(of_wave, own, false));
  const int vector = slots % vector_ == 0 ? vector_ : 1;
  const TileId gathered = tile_with(team_layout({1, slots}, 1, vector, 1, 1));
  const TileId total = tile_with(team_layout({1, vector}, 1, vector, 1, 1));
  code.post.push_back(load_instr(gathered, all));
  code.post.push_back(fill_instr(total, identity_of(combine, dtype)));
  code.post.push_back(fold_instr(total, gathered, combine));
  code.post.push_back(cross_instr(result, total, combine));
}

void GpuRows::combine_elements(NodeId reduce, Op combine, TileId partial, TileId result, PhaseCode& code) {
  const DType accumulated = out_.kernel().tiles[partial].dtype, dtype = out_.kernel().tiles[result].dtype;
  if (at_.row_teams() == 1) {
    code.post.push_back(copy_instr(result, partial, dtype));
    return;
  }
  const TileId whole = accumulated == dtype ? result : out_.like(result, accumulated);
  combine_row_teams(reduce, combine, partial, whole, code);
  if (whole != result) code.post.push_back(copy_instr(result, whole, dtype));
}

// Each team that shares a row stores the elements that it has accumulated to shared memory; then each of these teams
// combines the elements of all of them.
void GpuRows::combine_row_teams(NodeId reduce, Op combine, TileId partial, TileId result, PhaseCode& code) {
  const int teams = out_.kernel().teams;
  const Tile tile = out_.kernel().tiles[partial];
  const int64_t width = tile.layout.shape[1];
  Slice slice;
  const auto [known, is_new] = exchanged_.try_emplace({reduce, tile.dtype}, -1);
  if (is_new) known->second = out_.shared(cat("teams", reduce), tile.dtype, {teams, width});
  slice.buffer = known->second;
  slice.offset = affine(kTeamVar, width);
  slice.strides = {0, 1};
  code.exchange.push_back(store_instr(partial, slice, false));
  TileId total = -1;
  for (int team = 0; team < teams; ++team) {
    slice.offset = fixed(team * width);
    const TileId one = out_.like(partial, tile.dtype);
    code.post.push_back(load_instr(one, slice));
    if (total < 0) {
      total = one;
      continue;
    }
    const TileId sum = team + 1 == teams ? result : out_.like(partial, tile.dtype);
    code.post.push_back(map_instr(sum, combine, tile.dtype, {total, one}));
    total = sum;
  }
}

// Computes sums of exponentials in one walk. Each thread subtracts the largest value that it has seen so far. When that
// value grows, the thread multiplies its sum by exp(old largest value - new largest value). After the row, the sum is
// multiplied by exp(largest value of the thread - largest value of the row).
void GpuRows::fold_online(NodeId largest, PhaseCode& code) {
  const DType dtype = group_.nodes[largest].dtype;
  const auto scope = out_.values_of(largest);
  const TileId value = folded_value(largest, dtype, code);
  const TileId own = accumulator(dtype), before = out_.like(own, dtype);
  code.fills.push_back(fill_instr(own, identity_of(Op::max, dtype)));
  code.inner.push_back(copy_instr(before, own, dtype));
  code.inner.push_back(fold_instr(own, value, Op::max));
  const TileId row = results_.at(largest);
  combine_lanes(largest, Op::max, own, row, code);
  for (const auto& [sum, maximum] : phases_.online) {
    if (maximum != largest) continue;
    const auto scope_of_sum = out_.values_of(sum);
    const TileId partial = out_.like(own, dtype), scaled = out_.like(own, dtype);
    code.fills.push_back(fill_instr(partial, 0));
    code.inner.push_back(times_power(partial, partial, before, own, true, dtype));
    const TileId term = make_tile(dtype, true);
    code.inner.push_back(times_power(term, std::nullopt, value, own, true, dtype));
    code.inner.push_back(fold_instr(partial, term, Op::add));
    // The sum is scaled after the reduction of the row's maximum, because all threads need that maximum. If the maximum
    // is infinite, the sum becomes NaN, as it would in two walks; if a row is in parts, the combination of the parts
    // makes the sum NaN.
    PhaseCode last;
    combine_lanes(sum, Op::add, scaled, results_.at(sum), last);
    code.post.push_back(times_power(scaled, partial, own, row, at_.parts() > 1, dtype));
    append(code.post, std::move(last.exchange));
    append(code.post, std::move(last.post));
  }
}

int GpuRows::part_lanes() {
  const Kernel& kernel = out_.kernel();
  return static_cast<int>(std::min<int64_t>({at_.parts(), kernel.wave, kernel.team}));
}

TileId GpuRows::part_tile(DType dtype, int64_t width) {
  return out_.tile({dtype, team_layout({1, width}, 1, 1, part_lanes(), part_lanes()), {}});
}

// In a cluster, partial results lie in shared memory, one element for each [part, row of the block, column].
RowLowering::PartialSpace GpuRows::partial_space(NodeId reduce, int64_t width, const RowPlace& place) {
  if (!cluster_) return RowLowering::partial_space(reduce, width, place);
  const auto [buffer, is_new] = partials_.try_emplace(reduce, -1);
  if (is_new)
    buffer->second = out_.cluster(cat("parts", reduce), partial_dtype(group_.nodes[reduce].dtype),
                                  {at_.parts(), block_rows_, width});
  const Affine row = at_.row_teams() > 1 ? fixed(0) : affine(kTeamVar);
  return {buffer->second, row, width, width * block_rows_};
}

// In a cluster, a barrier of the cluster's blocks ends a phase; without one, a new pass does.
Instr GpuRows::end_of_phase() {
  Instr out = RowLowering::end_of_phase();
  if (cluster_) out.op = InstrOp::kClusterBarrier;
  if (last_block_combines_) out.slice.buffer = out_.shared("last", DType::u32, {1});
  return out;
}

}  // namespace wl

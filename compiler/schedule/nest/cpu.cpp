#include "compiler/schedule/nest/cpu.h"

#include <algorithm>

namespace wl {

CpuRows::CpuRows(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine)
    : RowLowering(group, domain, schedule, machine, widths_of(domain, schedule, machine)),
      pipelined_(schedule[kPipeline] != 0 && phases_.count > 1 && at_.vector_reduced()) {}

RowLowering::Widths CpuRows::widths_of(const Domain& domain, const Schedule& schedule, const Machine& machine) {
  const int64_t extent = domain.vector >= 0 ? domain.atoms[domain.vector].extent : 1;
  const int lanes = extent != 1 ? machine.target->lanes : 1;
  return {lanes, domain.cls == LoopClass::kColumns ? schedule[kTileVectors] * lanes : schedule[kTileElements]};
}

TileId CpuRows::new_tile(DType dtype, bool is_wide, bool across_rows) {
  const int64_t height = across_rows ? at_.register_rows() : 1;
  if (!is_wide) return out_.tile(dtype, {height, 1}, -1, 1);
  return out_.tile(dtype, {height, at_.tile()}, 1, at_.lanes(), bound_);
}

void CpuRows::combine_lanes(NodeId, Op combine, TileId partial, TileId result, PhaseCode& code) {
  code.post.push_back(cross_instr(result, partial, combine));
}

void CpuRows::combine_elements(NodeId reduce, Op, TileId partial, TileId result, PhaseCode& code) {
  code.post.push_back(copy_instr(result, partial, group_.nodes[reduce].dtype));
}

// With pipelined rows, iterations of the loop over rows overlap. If a phase comes n phases after the one that computes
// a result, the result for its own row was computed n iterations ago.
TileId CpuRows::result_in(int phase, NodeId reduce) {
  const int age = pipelined_ ? phase - (phases_.level[reduce] - 1) : 0;
  return age == 0 ? results_.at(reduce) : older_.at(reduce)[static_cast<size_t>(age - 1)];
}

// The row buffer of pipelined rows is a ring with one row for each phase.
RowLowering::KeptSlot CpuRows::kept_slot(const PhaseCode& code) {
  if (!pipelined_) return {1, fixed(0)};
  return {phases_.count, affine(out_.derived("slot", {code.place.ring}, 1, phases_.count))};
}

absl::StatusOr<Kernel> CpuRows::run() {
  Kernel& kernel = out_.kernel();
  const int64_t blocks = std::max<int64_t>(1, kernel.threads * schedule_[kTasksPerThread]);
  const int64_t rows = at_.rows(), parts = at_.parts();
  block_rows_ = parts > 1 ? 1 : std::max<int64_t>(1, (rows + blocks - 1) / blocks);
  kernel.grid = rows == 0 ? 0 : (rows + block_rows_ - 1) / block_rows_ * parts;
  if (rows == 0) return out_.finish();
  if (parts == 1) row_var_ = out_.loop_var("i");
  at_.add_outer_loops();
  if (parts > 1) {
    phases_.kept.clear();  // what scratch holds is lost at the end of a pass, so row buffers keep nothing
    share_row(at_.lanes(), /*one_tile=*/true);
  }
  if (const int64_t chunk = schedule_[kOnlineChunk]; chunk > 0) {
    at_.set_tile(chunk);
    at_.set_tile_var(out_.loop_var("part"));
  }
  Affine row = at_.row_of_block(block_rows_);
  if (row_var_ >= 0) row.add(row_var_, 1);
  if (at_.vector_extent() % std::max<int64_t>(1, at_.tile()) != 0) bound_ = at_.bound_at(at_.place_of(row));
  make_results();
  std::vector<Affine> trips = {fixed(block_rows_)};
  if (rows % block_rows_ != 0) trips.push_back(affine(kBlockVar, -block_rows_, rows));
  if (pipelined_)
    emit_pipelined(trips);
  else
    emit_rows(row, trips);
  if (schedule_[kStreamStores] != 0) out_.push(fence_instr());
  return out_.finish();
}

void CpuRows::make_results() {
  for (NodeId reduce : phases_.reduces) {
    const auto scope = out_.values_of(reduce);
    const auto tile = [&] { return tile_of(group_.nodes[reduce].dtype, domain_.varies[reduce]); };
    results_[reduce] = tile();
    const int oldest = pipelined_ ? phases_.count - phases_.level[reduce] : 0;
    for (int age = 1; age <= oldest; ++age) older_[reduce].push_back(tile());
  }
}

void CpuRows::emit_rows(const Affine& row, const std::vector<Affine>& trips) {
  if (row_var_ >= 0) out_.open_loop(row_var_, trips);
  for (int phase = 0; phase < phases_.count; ++phase) {
    std::vector<PhaseCode> codes;
    codes.push_back(phase_code(phase, at_.place_of(row)));
    emit_phases(codes);
  }
  if (row_var_ >= 0) out_.close_loop();
}

// Note [Row pipeline]: with S phases, iteration i runs phase p on row i + (S-1-p) of the block, so that memory is busy
// while a phase computes (ALCOP's pipelining, applied to rows). Rows beyond the last one are clamped to the last row,
// which is then computed more than once, with the same result; no phase needs a guard or an epilogue. The prologue
// consists of the iterations -(S-1) .. -1, unrolled, each with the phases that have a row by then. The age of a result
// is the number of iterations since it was computed: at the end of every iteration each result is copied to the tile of
// the next age. Values that a later phase loads again lie in a ring of S row buffers.
void CpuRows::emit_pipelined(const std::vector<Affine>& trips) {
  const int last_phase = phases_.count - 1;
  const std::vector<Affine> last_row = {affine(kBlockVar, block_rows_, block_rows_ - 1), fixed(at_.rows() - 1)};
  const auto clamped = [&](const Affine& row, Affine ring) {
    RowPlace place = at_.place_of(row, last_row, RowGeometry::Clamp::kEveryIndex);
    place.ring = std::move(ring);
    return place;
  };
  for (int t = 0; t < last_phase; ++t) {
    std::vector<PhaseCode> codes;
    for (int phase = 0; phase <= t; ++phase)
      codes.push_back(phase_code(phase, clamped(affine(kBlockVar, block_rows_, t - phase), fixed(t - phase))));
    emit_phases(codes);
    age_results(static_cast<int>(codes.size()), /*prologue=*/true);
  }
  out_.open_loop(row_var_, trips);
  std::vector<PhaseCode> codes;
  for (int phase = 0; phase <= last_phase; ++phase) {
    const int64_t ahead = last_phase - phase;
    Affine row = affine(kBlockVar, block_rows_, ahead);
    row.add(row_var_, 1);
    RowPlace place = ahead > 0 ? clamped(row, {}) : at_.place_of(row);
    place.ring = affine(row_var_, 1, ahead);
    codes.push_back(phase_code(phase, std::move(place)));
  }
  emit_phases(codes);
  age_results(static_cast<int>(codes.size()), /*prologue=*/false);
  out_.close_loop();
}

// Copies every result to the tile for results that are one iteration older. In the prologue, copies only results that
// have been computed already.
void CpuRows::age_results(int phases, bool prologue) {
  for (const auto& [reduce, older] : older_) {
    const int ages = static_cast<int>(older.size());
    const int filled = prologue ? std::min(ages, phases - (phases_.level[reduce] - 1)) : ages;
    for (int age = filled; age >= 1; --age) {
      const TileId from = age == 1 ? results_.at(reduce) : older[static_cast<size_t>(age - 2)];
      out_.push(copy_instr(older[static_cast<size_t>(age - 1)], from, group_.nodes[reduce].dtype));
    }
  }
}

bool CpuRows::moves_with_row(const Access& access) const {
  const std::vector<AtomId>& atoms = at_.row_atoms();
  return std::any_of(atoms.begin(), atoms.end(), [&](AtomId a) { return access.strides[a] != 0; }) ||
         at_.vector_tiles() > 1;
}

// Prefetches the inputs that phase 0 loads and that differ from row to row: some rows ahead or, where a row is walked
// in chunks, some chunks ahead. The prefetches are in phase 0 or, with the choice prefetch_last_phase, in the last
// phase, which waits least for memory. In the last phase of a row in chunks, the prefetches stand before the phase's
// last load, so that they are in the last walk over the chunk.
void CpuRows::prefetch(PhaseCode& code) {
  const int64_t distance = schedule_[kPrefetch];
  const bool in_last_phase = schedule_[kPrefetchLastPhase] != 0;
  if (code.phase == 0) read_first_ = code.loads;
  if (distance == 0 || code.phase != (in_last_phase ? phases_.count - 1 : 0)) return;
  const auto is_fetched = [&](const auto& load) {
    return out_.kernel().tiles[load.second].layout.lanes() > 1 && moves_with_row(load.first);
  };
  if (std::none_of(read_first_.begin(), read_first_.end(), is_fetched)) return;
  // If rows are neighbours in memory, the chunk after the last one of a row is the first chunk of the next row, so
  // chunks are counted on across rows.
  const bool chunks = at_.tile_var() >= 0;
  Affine ahead = code.place.row;
  ahead.base += chunks ? 0 : distance;
  RowPlace place = at_.place_of(ahead);
  place.vector_base.base += chunks ? distance * at_.tile() : 0;
  for (const auto& load : read_first_) {
    if (!is_fetched(load)) continue;
    const auto& [access, tile] = load;
    Slice slice = at_.slice_of(out_.input_buffer(access.input), access, place, true);
    Instr instr = prefetch_instr(tile, std::move(slice), static_cast<int>(schedule_[kPrefetchLevel]));
    const auto last = std::find_if(code.inner.rbegin(), code.inner.rend(),
                                   [](const Instr& other) { return other.op == InstrOp::kLoad; });
    const bool second_walk = in_last_phase && chunks && last != code.inner.rend();
    code.inner.insert(second_walk ? std::prev(last.base()) : code.inner.begin(), std::move(instr));
  }
}

// A row is computed in chunks. Each chunk is walked twice while it lies in the L1 cache: first for its maximum, then
// for its sums. When the maximum grows, the sums so far are multiplied by exp(old maximum - new maximum).
void CpuRows::fold_online(NodeId largest, PhaseCode& code) {
  const DType dtype = group_.nodes[largest].dtype;
  const auto scope = out_.values_of(largest);
  const auto narrow = [&] { return make_tile(dtype, false); };
  const TileId lanes = accumulator(dtype), chunk = narrow(), now = narrow(), before = narrow();
  code.fills.push_back(fill_instr(now, identity_of(Op::max, dtype)));
  code.inner.push_back(fill_instr(lanes, identity_of(Op::max, dtype)));
  const TileId value = folded_value(largest, dtype, code);
  code.inner.push_back(fold_instr(lanes, value, Op::max));
  code.inner.push_back(cross_instr(chunk, lanes, Op::max));
  code.inner.push_back(copy_instr(before, now, dtype));
  code.inner.push_back(map_instr(now, Op::max, dtype, {before, chunk}));
  code.post.push_back(copy_instr(results_.at(largest), now, dtype));
  // While the maximum is -inf, 0 is subtracted from the values instead of the maximum, so that the sums are 0 and not
  // NaN.
  Instr least;
  least.op = InstrOp::kMap;
  least.result = narrow();
  const int a = push_arg(least, now, dtype), none = push_constant(least, identity_of(Op::max, dtype), dtype);
  const int is_none = push_op(least, Op::eq, DType::b1, {a, none});
  push_op(least, Op::select, dtype, {is_none, push_constant(least, 0, dtype), a});
  const TileId origin = least.result, factor = narrow();
  code.inner.push_back(std::move(least));
  code.inner.push_back(times_power(factor, std::nullopt, before, origin, false, dtype));
  for (const auto& [sum, maximum] : phases_.online) {
    if (maximum != largest) continue;
    const auto scope_of_sum = out_.values_of(sum);
    const TileId partial = accumulator(dtype), term = make_tile(dtype, true), whole = narrow();
    code.fills.push_back(fill_instr(partial, 0));
    code.inner.push_back(map_instr(partial, Op::mul, dtype, {partial, factor}));
    PhaseCode again;  // the code of the chunk's second walk, which computes the sums
    again.phase = code.phase;
    again.place = code.place;
    const TileId same = folded_value(largest, dtype, again);
    for (auto part : {&PhaseCode::pre, &PhaseCode::narrow, &PhaseCode::inner})
      append(code.*part, std::move(again.*part));
    code.inner.push_back(times_power(term, std::nullopt, same, origin, false, dtype));
    code.inner.push_back(fold_instr(partial, term, Op::add));
    code.post.push_back(cross_instr(whole, partial, Op::add));
    // The sum is multiplied by exp(now - now), where `now` is the row's maximum. This factor is 1, or NaN if the
    // maximum is infinite or NaN; the result must then be NaN.
    code.post.push_back(times_power(results_.at(sum), whole, now, now, false, dtype));
  }
}

}  // namespace wl

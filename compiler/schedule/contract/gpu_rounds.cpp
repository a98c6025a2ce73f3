// The tiles that each block of a contraction on GPUs computes, one after the other, and the work for each tile.
#include <set>
#include <utility>

#include "compiler/kernel/pipeline/pipeline.h"
#include "compiler/schedule/contract/gpu.h"
#include "compiler/schedule/launch.h"

namespace wl {
namespace {

// Moves the shared buffer `moved` to the place of buffer `to`. Buffers behind the old place of `moved` move forward to
// close the gap.
void put_at(Kernel& kernel, BufferId moved, BufferId to) {
  const int64_t from = kernel.buffers[moved].byte_offset, bytes = kernel.bytes_of(kernel.buffers[moved]);
  for (KernelBuffer& other : kernel.buffers)
    if (other.level == Level::kShared && other.byte_offset > from) other.byte_offset -= (bytes + 63) / 64 * 64;
  kernel.buffers[moved].byte_offset = kernel.buffers[to].byte_offset;
}

}  // namespace

void GpuContract::emit_rounds() {
  const int64_t tiles = resident_ ? 1 : product_loops(domain_).tiles(schedule_), parts = schedule_[kReductionBlocks],
                most = blocks_at_once(schedule_, machine_);
  if (resident_ || schedule_[kPersistent] == 0 || tiles <= most) {
    out_.kernel().grid = tiles * parts;
    // Blocks that share a tile must have neighbouring numbers, so the order of blocks that place_of_block() makes is
    // not used here.
    emit_tile(parts > 1 ? affine(kBlockVar) : place_of_block(tiles), parts);
    return;
  }
  out_.kernel().grid = most;
  const SharedRound shared = shared_round(schedule_, tiles, machine_);
  const int64_t alone = tiles - shared.tiles;
  const Affine place = place_of_block(most);
  turn_ = out_.loop_var("turn");
  out_.open_loop(turn_, {turns_of_block(out_, place, alone, most)});
  emit_tile(sum(place, affine(turn_), most), 1);
  out_.close_loop();
  turn_ = -1;
  if (shared.tiles == 0) return;
  copiers_ = 0;  // in the last round the computing waves copy, since some blocks take no part in that round
  for (Side* side : {&rows_, &columns_}) give_buffer(*side);
  part_blocks_ = shared.tiles * shared.parts;
  open_part();
  emit_tile(affine(kBlockVar, 1, alone * shared.parts), shared.parts);
  out_.close_loop();
}

void GpuContract::open_part() {
  if (part_blocks_ > 0) out_.open_loop(out_.loop_var("last_round"), section_trips(0, part_blocks_));
}

Affine GpuContract::place_of_block(int64_t blocks) {
  const int64_t dies = machine_.dies();
  if (resident_ || schedule_[kTilesByDie] == 0 || dies == 1) return affine(kBlockVar);
  const Affine die = affine(out_.derived("die", {affine(kBlockVar)}, 1, dies)),
               on_die = affine(out_.derived("on_die", {affine(kBlockVar)}, dies));
  Affine place = sum(on_die, die, blocks / dies);
  // If the dies do not divide the blocks evenly, the first dies have one block more than the others.
  if (blocks % dies != 0) place = sum(place, affine(out_.derived("longer", {die, fixed(blocks % dies)})));
  return place;
}

void GpuContract::emit_tile(const Affine& number, int64_t parts) {
  parts_ = parts;
  steps_ = -1;
  place_tile(number);
  if (resident_) fetch_resident();
  accumulator_ = out_.tile({dtype_, grid_layout(true, true), {}});
  if (resident_) total_ = find_total();
  if (total_ < 0) out_.push(fill_instr(accumulator_, 0));
  if (total_ >= 0) begin_with_addend();
  if (resident_) multiply_resident();
  if (!resident_) emit_whole_steps();
  if (!resident_) emit_tail();
  if (!resident_)
    rounds_.push_back(
        {steps_, rows_.buffer, columns_.buffer, copiers_ > 0, turn_ < 0 ? fixed(0) : affine(turn_, outer_ * whole_)});
  if (parts_ > 1) join_parts();
  emit_epilogue();
}

void GpuContract::place_tile(const Affine& number) {
  block_.assign(domain_.atoms.size(), fixed(0));
  int64_t inside = 1;
  const auto digit = [&](const std::string& name, int64_t extent) {
    const Affine out = extent == 1 ? fixed(0) : affine(out_.derived(name, {number}, inside, extent));
    inside *= extent;
    return out;
  };
  // the number of the part of K is the innermost digit of the block's number, so that neighbouring blocks share a tile
  part_ = digit("part", parts_);
  // The order of tiles, from the innermost loop outwards: raster_rows tiles of rows, all tiles of columns, and the
  // remaining tiles of rows.
  const int64_t raster = schedule_[kRasterRows];
  const Affine raster_row = digit("raster_row", raster);
  const auto tiles = [&](Side& side, const std::string& name) {
    side.first.resize(side.loops.size());
    for (size_t i = side.loops.size(); i-- > 0;) {
      const auto [atom, tile] = side.loops[i];
      const bool is_last = i + 1 == side.loops.size();
      const int64_t together = is_last && &side == &rows_ ? raster : 1;
      const std::string loop = is_last ? name : cat(name, "_", domain_.atoms[atom].name);
      const Affine first = digit(loop, quotient_up(extent_along(atom), tile) / together);
      side.first[i] = sum(fixed(0), first, tile * together);
      if (together > 1) side.first[i] = sum(side.first[i], raster_row, tile);
      if (atom >= 0) block_[atom] = side.first[i];
    }
  };
  tiles(columns_, "tile_column");
  tiles(rows_, "tile_row");
  std::set<AtomId> tiled;
  for (const Side* side : {&rows_, &columns_})
    for (const TileLoop& loop : side->loops) tiled.insert(loop.atom);
  for (const std::vector<AtomId>* list : {&domain_.m, &domain_.n, &domain_.batch})
    for (size_t i = list->size(); i-- > 0;)
      if (const AtomId a = (*list)[i]; !tiled.contains(a))
        block_[a] = digit(domain_.atoms[a].name, domain_.atoms[a].extent);
}

// Stores the sums of this block's part of a tile. Only the last block to arrive goes on, with the sums of all parts. It
// adds them in the order of the blocks, so that the result does not depend on which block is the last.
void GpuContract::join_parts() {
  const int64_t size = rows_.tile * columns_.tile, blocks = part_blocks_ > 0 ? part_blocks_ : out_.kernel().grid;
  Slice mine;
  mine.buffer = out_.work("parts", dtype_, {blocks, rows_.tile, columns_.tile});
  mine.offset = affine(kBlockVar, size);
  mine.strides = {columns_.tile, 1};
  out_.push(store_instr(accumulator_, mine, false));
  if (part_blocks_ > 0) out_.close_loop();
  Instr pass;
  pass.op = InstrOp::kPass;
  pass.pending = static_cast<int>(parts_);
  pass.slice.buffer = last_;
  out_.push(std::move(pass));
  open_part();
  const TileId total = out_.like(accumulator_, dtype_), one = out_.like(accumulator_, dtype_);
  out_.push(fill_instr(total, 0));
  const VarId other = out_.loop_var("other");
  out_.open_loop(other, {fixed(parts_)});
  Slice from = mine;
  from.offset = sum(affine(other, size), sum(affine(kBlockVar), part_, -1), size);
  out_.push(load_instr(one, std::move(from)));
  out_.push(map_instr(total, Op::add, dtype_, {total, one}));
  out_.close_loop();
  accumulator_ = total;
}

// Pipelines the loops of all rounds, the last loop first, because pipelining a loop renumbers the variables with higher
// numbers than the loop's. Rounds run one after the other, so their buffers get the same places in shared memory.
absl::Status GpuContract::pipeline_rounds(Kernel& kernel) const {
  for (auto round = rounds_.rbegin(); round != rounds_.rend(); ++round) {
    if (round->steps < 0) continue;  // this round has no loop over steps to pipeline
    const auto ring = [](BufferId buffer, const Side& side) { return Pipeline::Ring{buffer, side.async, side.boxes}; };
    Pipeline how{round->steps, {ring(round->rows, rows_), ring(round->columns, columns_)}, stages_, register_stages_};
    how.alongside = round->alongside;
    how.before = round->before;
    WL_RETURN_IF_ERROR(pipeline(kernel, how));
  }
  for (size_t i = 1; i < rounds_.size(); ++i) {
    put_at(kernel, rounds_[i].rows, rounds_[0].rows);
    put_at(kernel, rounds_[i].columns, rounds_[0].columns);
  }
  return absl::OkStatus();
}

}  // namespace wl

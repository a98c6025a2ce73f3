// Contractions on CPUs in tile registers: the steps along k, and the micro-kernel. All micro-kernels of a kernel have
// the same shape, so that the registers are configured only once. The number of words per step divides the depth, so
// that no shorter step is left over. If tiles do not divide the rows, some tiles begin with the last row of the
// preceding tile and compute that row again.
#include <algorithm>

#include "compiler/base/log2.h"
#include "compiler/schedule/contract/cpu.h"

namespace wl {
namespace {

// Returns the largest divisor of n that is at most `most`.
int64_t divisor_up_to(int64_t n, int64_t most) {
  for (int64_t d = std::min(n, most); d > 1; --d)
    if (n % d == 0) return d;
  return 1;
}

}  // namespace

std::optional<TileSteps> tile_steps(const Graph& group, const Domain& domain, const Machine& machine,
                                    const std::optional<Dot>& dot) {
  if (!dot || domain.m.empty() || domain.n.empty()) return std::nullopt;
  const Node& product = group.nodes[domain.contract];
  const auto dtype = [&](int side) { return group.nodes[product.operands[side]].dtype; };
  const int right = domain.right_operand();
  const std::vector<MatrixOp> all = matrices_for(dtype(1 - right), dtype(right), machine.target->features);
  if (all.empty()) return std::nullopt;
  const MatrixOp matrix = all[0];
  const MatrixInfo& row = info(matrix);
  const auto extent = [&](AtomId atom) { return domain.atoms[atom].extent; };
  if (2 * extent(domain.m.back()) <= row.m || 2 * extent(domain.n.back()) <= row.n) return std::nullopt;
  TileSteps best{matrix, -1, 0};
  const int64_t most = row.k / dot->group;
  for (const AtomId atom : domain.reduced) {
    const int64_t each = atom == dot->k_atom ? dot->group : 1;
    const int64_t words = divisor_up_to((extent(atom) + each - 1) / each, most);
    if (words >= best.words) best = {matrix, atom, words};
  }
  return 2 * best.words > most ? std::optional(best) : std::nullopt;
}

bool has_tile_rows(const Domain& domain, const Domain::Operand& operand, const Dot& dot, const TileSteps& steps) {
  return has_words(domain, operand, dot) &&
         operand.access.strides[steps.atom] == (steps.atom == dot.k_atom ? 1 : dot.group);
}

absl::Status CpuContract::prepare_tiles() {
  if (schedule_[kMatrix] == kNoMatrix) return absl::OkStatus();
  const bool other = image_ || turned_ || schedule_[kMr] > kMostTileRows || schedule_[kNv] > kMostTileVectors;
  if (!tiles_ || tiles_->matrix != matrix_of(schedule_) || other)
    return invalid("the operands or the tile do not fit the matrix instruction ",
                   value_text(kMatrix, schedule_[kMatrix]));
  // The words of a step must be neighbours in packed copies, so the loop over them becomes the innermost one.
  const auto deep = std::find(k_atoms_.begin(), k_atoms_.end(), tiles_->atom);
  for (auto atom = deep + 1; atom < k_atoms_.end(); ++atom)
    if (turns_of(static_cast<size_t>(atom - k_atoms_.begin())) > 1) {
      std::rotate(deep, deep + 1, k_atoms_.end());
      break;
    }
  return absl::OkStatus();
}

Layout CpuContract::tile_layout(int64_t height, int64_t width) const {
  const Layout& one = fragments_of(tiles_->matrix).c;
  const auto repeats = [&](int64_t extent, int axis) {
    return Repeats{log2_floor((extent + one.shape[axis] - 1) / one.shape[axis])};
  };
  return cut_to(repeated(one, {repeats(height, 0), repeats(width, 1)}), {height, width});
}

void CpuContract::multiply_tiles(const RowTile& row_tile, const Panels& panels, const Place& place, int64_t k_extent,
                                 TileId accumulator) {
  Place at = place;
  std::vector<Affine> turns(k_atoms_.size());
  size_t deep = 0;
  for (size_t i = 0; i < k_atoms_.size(); ++i) {
    if (k_atoms_[i] == tiles_->atom) deep = i;
    const int64_t words = words_of_turn(i);
    out_.open_loop(k_vars_[i], {fixed((i == 0 ? turns_of(0, k_extent) : turns_of(i)) / words)});
    turns[i] = affine(k_vars_[i], words);
    at[k_atoms_[i]] = sum(at[k_atoms_[i]], turns[i], step_of(i));
  }
  const std::optional<Fragments> shapes =
      wl::tiles_of(tiles_->matrix, out_.kernel().tiles[accumulator].layout, tiles_->words);
  WL_CHECK(shapes.has_value(), "tiles of ", row_tile.rows.height, " x ", panels.width);
  const auto read_tile = [&](const Side& side, const Layout& layout, AtomId along, Affine packed, int64_t own,
                             int64_t next) {
    const TileId tile = out_.tile({DType::u32, layout, {}});
    Slice from;
    if (side.packed) {
      from.buffer = side.buffer;
      from.offset = std::move(packed);
      from.strides = {own, next};
    } else {
      from = slice_at(out_.input_buffer(side.access.input), side.access, at, {along, tiles_->atom});
      from.strides[1] *= step_of(deep);
      if (&side == &b_ && schedule_[kPrefetch] > 0) fetch_ahead(tile, from);
    }
    read(side, tile, std::move(from));
    return tile;
  };
  const Affine turn = turn_in_block(turns);
  const TileId a = read_tile(a_, shapes->a, row_atom_, sum(turn, row_tile.tile, depth() * mr_), depth(), 1);
  const TileId b =
      read_tile(b_, shapes->b, column_atom_, sum(affine(panel_var_, depth() * nr_), turn, pitch_), 1, pitch_);
  out_.push(mma_instr(accumulator, tiles_->matrix, a, b));
  for (size_t i = 0; i < k_atoms_.size(); ++i) out_.close_loop();
}

}  // namespace wl

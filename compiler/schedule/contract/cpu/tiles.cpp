// Contractions on CPUs in tile registers: the steps along k, and the micro-kernel. All micro-kernels of a kernel have
// the same shape, so that the registers are configured only once. The number of words per step divides the depth, so
// that no shorter step is left over. If tiles do not divide the rows, some tiles begin with the last row of the
// preceding tile and compute that row again.
#include <algorithm>

#include "compiler/base/log2.h"
#include "compiler/schedule/contract/cpu/lowering.h"

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

Layout CpuContract::tile_layout(int64_t height, int64_t width) const {
  const Layout& one = fragments_of(product_.tiles->matrix).c;
  const auto repeats = [&](int64_t extent, int axis) {
    return Repeats{log2_floor((extent + one.shape[axis] - 1) / one.shape[axis])};
  };
  return cut_to(repeated(one, {repeats(height, 0), repeats(width, 1)}), {height, width});
}

void CpuContract::multiply_tiles(const RowTile& row_tile, const CpuSplit::Panels& panels, const Place& place,
                                 int64_t k_extent, TileId accumulator) {
  Place at = place;
  std::vector<Affine> turns(product_.k_atoms.size());
  size_t deep = 0;
  for (size_t i = 0; i < product_.k_atoms.size(); ++i) {
    if (product_.k_atoms[i] == product_.tiles->atom) deep = i;
    const int64_t words = product_.words_of_turn(i);
    out_.open_loop(k_vars_[i], {fixed((i == 0 ? product_.turns_of(0, k_extent) : product_.turns_of(i)) / words)});
    turns[i] = affine(k_vars_[i], words);
    at[product_.k_atoms[i]] = sum(at[product_.k_atoms[i]], turns[i], product_.step_of(i));
  }
  const std::optional<Fragments> shapes =
      wl::tiles_of(product_.tiles->matrix, out_.kernel().tiles[accumulator].layout, product_.tiles->words);
  WL_CHECK(shapes.has_value(), "tiles of ", row_tile.rows.height, " x ", panels.width);
  const auto read_tile = [&](const CpuSide& side, const Layout& layout, AtomId along, Affine packed, int64_t own,
                             int64_t next) {
    const TileId tile = out_.tile({DType::u32, layout, {}});
    Slice from;
    if (side.packed) {
      from.buffer = buffer_of(side);
      from.offset = std::move(packed);
      from.strides = {own, next};
    } else {
      from = slice_at(out_.input_buffer(side.access.input), side.access, at, {along, product_.tiles->atom});
      from.strides[1] *= product_.step_of(deep);
      if (&side == &product_.b && schedule_[kPrefetch] > 0) fetch_ahead(tile, from);
    }
    read(side, tile, std::move(from));
    return tile;
  };
  const Affine turn = turn_in_block(turns);
  const TileId a = read_tile(product_.a, shapes->a, product_.row_atom,
                             sum(turn, row_tile.tile, split_.depth * split_.mr), split_.depth, 1);
  const TileId b = read_tile(product_.b, shapes->b, product_.column_atom,
                             sum(affine(panel_var_, split_.depth * split_.nr), turn, pitch_), 1, pitch_);
  out_.push(mma_instr(accumulator, product_.tiles->matrix, a, b));
  for (size_t i = 0; i < product_.k_atoms.size(); ++i) out_.close_loop();
}

}  // namespace wl

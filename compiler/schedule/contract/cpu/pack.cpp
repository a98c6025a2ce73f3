// Packing of an operand on a CPU: copies of its slivers (the rows or columns of one tile) in the order in which
// micro-kernels read them.
#include <algorithm>
#include <utility>

#include "compiler/schedule/contract/cpu/lowering.h"

namespace wl {

// Packs a sliver (`width` rows or columns) of an operand, with the elementwise work on the operand done. In the copy,
// the loops over k are outermost.
void CpuContract::pack(const CpuSide& side, const Domain& domain, const Place& place, int64_t k_extent, AtomId along,
                       int64_t width, int lanes, Affine offset, int64_t pitch, std::vector<std::vector<Affine>> bound) {
  if (product_.dot && !product_.dot->widened)
    return pack_words(side, domain, place, k_extent, along, width, lanes, offset, pitch, bound);
  Place at = place;
  const AtomId last = product_.k_atoms.empty() ? -1 : product_.k_atoms.back();
  const auto extent = [&](size_t i) { return i == 0 ? k_extent : product_.domain.atoms[product_.k_atoms[i]].extent; };
  int64_t stride = pitch;
  for (size_t i = product_.k_atoms.size(); i-- > 0;) {
    if (i + 1 < product_.k_atoms.size()) {
      out_.open_loop(k_vars_[i], {fixed(extent(i))});
      at[product_.k_atoms[i]] = sum(at[product_.k_atoms[i]], affine(k_vars_[i]));
      offset = sum(offset, affine(k_vars_[i], stride));
    }
    stride *= extent(i);
  }
  const int64_t depth = product_.k_atoms.empty() ? 1 : extent(product_.k_atoms.size() - 1);
  if (const Iterations counted = packed_iterations(place, along, width, k_extent); !counted.trips.empty()) {
    at[last] = sum(at[last], counted.first);
    offset = sum(offset, counted.first, pitch);
    bound.resize(2);
    bound[0] = counted.trips;
  }
  if (bound.empty() && packs_squares(side, along, depth, width, lanes)) {
    pack_squares(side, at, along, depth, width, lanes, offset, pitch);
  } else {
    TileExpr expr{product_.group, domain, out_, at, {{last, depth}, {along, width}}, lanes, std::move(bound), true};
    store_packed(side, std::move(expr), std::move(offset), pitch);
  }
  for (size_t i = 0; i + 1 < product_.k_atoms.size(); ++i) out_.close_loop();
}

// Whether a sliver is packed in squares that are loaded in vectors along k and transposed in registers, which takes a
// fraction of the time of loading every vector element by element. The operand must be contiguous along k and not along
// `along`. The depth must be a multiple of the vector width. The width must be such a multiple too, unless it is less
// than one vector but at least a quarter of it.
bool CpuContract::packs_squares(const CpuSide& side, AtomId along, int64_t depth, int64_t width, int lanes) const {
  if (product_.k_atoms.empty() || along < 0 || lanes <= 1 || !side.direct) return false;
  const DType dtype = product_.operand_dtype(side);
  // Squares are transposed only for elements that take 4 bytes in registers.
  if (size_of(dtype) != 4 && !(is_float(dtype) && size_of(dtype) < 4)) return false;
  const std::vector<int64_t>& strides = side.access.strides;
  const bool wide = width % lanes == 0 || (width < lanes && 4 * width >= lanes);
  return strides[product_.k_atoms.back()] == 1 && strides[along] > 1 && depth % lanes == 0 && wide;
}

void CpuContract::pack_squares(const CpuSide& side, const Place& at, AtomId along, int64_t depth, int64_t width,
                               int lanes, const Affine& offset, int64_t pitch) {
  const AtomId last = product_.k_atoms.back();
  const VarId square = k_vars_.back();
  Place place = at;
  place[last] = sum(place[last], affine(square, lanes));
  Affine to = sum(offset, affine(square, lanes * pitch));
  out_.open_loop(square, {fixed(depth / lanes)});
  if (width > lanes) {
    const VarId column = out_.loop_var("square");
    out_.open_loop(column, {fixed(width / lanes)});
    place[along] = sum(place[along], affine(column, lanes));
    to = sum(std::move(to), affine(column, lanes));
  }
  std::vector<Instr> code;
  const TileId turned = turned_square(out_, product_.operand_dtype(side), side.access, place, last, along, lanes,
                                      std::min<int64_t>(width, lanes), code);
  out_.push_all(std::move(code));
  store_tile(side, turned, std::move(to), pitch);
  if (width > lanes) out_.close_loop();
  out_.close_loop();
}

void CpuContract::store_packed(const CpuSide& side, TileExpr expr, Affine offset, int64_t pitch) {
  const absl::StatusOr<TileId> value = expr.operand(product_.domain.contract, side.position);
  if (!value.ok()) return fail(value.status());
  out_.push_all(std::move(expr.code));
  store_tile(side, *value, std::move(offset), pitch);
}

void CpuContract::store_tile(const CpuSide& side, TileId value, Affine offset, int64_t pitch) {
  TileId packed = value;
  if (out_.kernel().tiles[packed].dtype != product_.dtype) {
    packed = out_.like(packed, product_.dtype);
    out_.push(copy_instr(packed, value, product_.dtype));
  }
  Slice to;
  to.buffer = buffer_of(side);
  to.offset = std::move(offset);
  to.strides = {pitch, 1};
  out_.push(store_instr(packed, std::move(to), false));
}

}  // namespace wl

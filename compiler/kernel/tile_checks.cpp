#include "compiler/kernel/tile_checks.h"

#include <algorithm>

#include "compiler/kernel/moves.h"
#include "compiler/kernel/tile_places.h"

namespace wl {
namespace {

bool fits_team(const Kernel& kernel, const Layout& layout) {
  const int64_t lanes = kernel.wave == 0 ? 1 : std::min(kernel.wave, kernel.team);
  const int64_t waves = kernel.wave == 0 ? 1 : std::max(1, kernel.team / kernel.wave);
  return layout.count('l') <= lanes && layout.count('u') <= waves;
}

// Whether the register repeats along each axis are evenly spaced. Machines without lanes require this, since their code
// has loops over registers.
bool counts_up(const Layout& layout) {
  std::vector<int64_t> repeat(layout.rank(), 0);
  for (int axis = 0; axis < layout.rank(); ++axis) {
    for (repeat[axis] = 1; repeat[axis] < layout.repeats(axis); repeat[axis] *= 2)
      for (int i = 0; i < layout.rank(); ++i)
        if (layout.first_of(i, repeat) != (i == axis ? repeat[axis] * layout.width(axis) : 0)) return false;
    repeat[axis] = 0;
  }
  return true;
}

std::vector<Layout::Base> bases_of(const Layout& layout, char kind) {
  std::vector<Layout::Base> out;
  for (const Layout::Base& base : layout.bases)
    if (base.kind == kind) out.push_back(base);
  return out;
}

// Pairs the bases of one kind in two layouts. Zero (replication) stands for the bases that one of the layouts lacks.
std::vector<std::pair<Layout::Base, Layout::Base>> side_by_side(const Layout& a, const Layout& b, char kind) {
  std::vector<Layout::Base> mine = bases_of(a, kind), theirs = bases_of(b, kind);
  const size_t size = std::max(mine.size(), theirs.size());
  mine.resize(size, {kind, 0});
  theirs.resize(size, {kind, 0});
  std::vector<std::pair<Layout::Base, Layout::Base>> out;
  for (size_t i = 0; i < size; ++i) out.emplace_back(mine[i], theirs[i]);
  return out;
}

bool moves_along(const Layout& layout, const Layout::Base& base, const std::vector<int>& axes) {
  return std::any_of(axes.begin(), axes.end(), [&](int axis) { return layout.part(base, axis) != 0; });
}

bool alike(const Layout& a, const Layout::Base& in_a, const Layout& b, const Layout::Base& in_b,
           const std::vector<int>& axes) {
  return std::all_of(axes.begin(), axes.end(), [&](int axis) { return a.part(in_a, axis) == b.part(in_b, axis); });
}

// Whether each register of `by` has the same coordinates along `axes` as the register of `arg` with the same repeat
// numbers. Along an axis that does not repeat in `arg`, one register of `arg` serves all registers of `by`.
bool registers_alike(const Layout& arg, const Layout& by, const std::vector<int>& axes) {
  for (int along = 0; along < by.rank(); ++along)
    for (int64_t step = 1; step < by.repeats(along); step *= 2) {
      std::vector<int64_t> repeat(by.rank(), 0), own(by.rank(), 0);
      repeat[along] = step;
      if (arg.repeats(along) != 1) own[along] = step;
      for (int axis : axes)
        if (arg.first_of(axis, own) != by.first_of(axis, repeat)) return false;
    }
  return true;
}

std::vector<int> other_axes(const Layout& layout, const std::vector<int>& axes) {
  std::vector<int> out;
  for (int axis = 0; axis < layout.rank(); ++axis)
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) out.push_back(axis);
  return out;
}

// Whether `to` has one register where `from` has a set of registers that differ only along `axes` (the other axes are
// `kept`).
bool repeats_fit(const Layout& from, const Layout& to, const std::vector<int>& axes, const std::vector<int>& kept) {
  return std::all_of(axes.begin(), axes.end(), [&](int axis) { return to.repeats(axis) == 1; }) &&
         std::all_of(kept.begin(), kept.end(), [&](int axis) { return to.repeats(axis) == from.repeats(axis); }) &&
         registers_alike(to, from, kept);
}

}  // namespace

absl::Status check_tiles(const Kernel& kernel) {
  for (size_t i = 0; i < kernel.tiles.size(); ++i) {
    const Layout& layout = kernel.tiles[i].layout;
    const auto fail = [&](const std::string& what) {
      return absl::InternalError(cat("kernel ", kernel.name, ": %", i, " has ", what));
    };
    const size_t rank = layout.shape.size(), bounds = kernel.tiles[i].bound.size();
    if (layout.bits.size() != rank || layout.outer.size() != rank || (bounds != 0 && bounds != rank))
      return fail("no layout and bound for every axis");
    if (const absl::Status status = layout.check(); !status.ok()) return fail(std::string(status.message()));
    if (!fits_team(kernel, layout)) return fail("more lanes than a team");
    if (kernel.wave == 0 && !counts_up(layout)) return fail("registers in an order of its own");
  }
  return absl::OkStatus();
}

std::string read_problem(const Layout& arg, const Layout& by) {
  std::vector<int> axes;
  for (int axis = 0; axis < arg.rank(); ++axis)
    if (arg.shape[axis] != 1) axes.push_back(axis);
  for (char kind : {'v', 'l', 'u'})
    for (const auto& [mine, theirs] : side_by_side(arg, by, kind))
      if (!alike(arg, mine, by, theirs, axes)) return "threads do not hold the elements that they need";
  if (arg.lanes() > 1 && arg.lanes() != by.lanes()) return "vectors of another length";
  return registers_alike(arg, by, axes) ? "" : "registers are not in the order of the result's";
}

std::string fold_problem(const Layout& from, const Layout& to, const std::vector<int>& axes) {
  if (to.lanes() != from.lanes()) return "a fold keeps its lanes";
  const std::vector<int> kept = other_axes(from, axes);
  for (char kind : {'v', 'l', 'u'})
    for (const auto& [before, after] : side_by_side(from, to, kind))
      if (!alike(from, before, to, after, kept) || moves_along(from, before, axes) != moves_along(to, after, axes))
        return "a fold leaves what differs between threads and vector elements apart";
  return repeats_fit(from, to, axes, kept) ? "" : "a fold leaves one register of those along its axes";
}

std::string cross_problem(const Layout& from, const Layout& to, const std::vector<int>& axes) {
  if (to.lanes() != 1) return "a cross leaves no lanes";
  const std::vector<int> kept = other_axes(from, axes);
  for (char kind : {'v', 'l', 'u'})
    for (const auto& [before, after] : side_by_side(from, to, kind)) {
      const bool crossed = moves_along(from, before, axes);
      if (crossed && moves_along(from, before, kept)) return "a cross of lanes that move along other axes too";
      if (kind == 'v' ? !crossed : !alike(from, before, to, after, kept))
        return "a cross keeps the lanes of other axes";
      if (moves_along(to, after, axes) != (kind == 'u' && crossed)) return "a cross leaves waves and no lanes";
    }
  const bool folded = std::all_of(axes.begin(), axes.end(), [&](int axis) { return from.repeats(axis) == 1; });
  return folded && repeats_fit(from, to, axes, kept) ? "" : "a cross is of one register along its axes";
}

std::string pack_problem(const Kernel& kernel, const Instr& pack) {
  const Layout &from = kernel.tiles[pack.args[0]].layout, &to = kernel.tiles[pack.result].layout;
  if (kernel.tiles[pack.result].dtype != DType::u32) return "words are u32";
  const DType dtype = kernel.tiles[pack.args[0]].dtype;
  if (dtype != pack.elements[0] && (dtype != DType::f32 || !is_float(pack.elements[0])))
    return "the tile has neither the words' elements nor f32, which is rounded";
  if (from.rank() != 2 || to.rank() != 2) return "words are of a tile with two axes";
  const int elements = elements_of_word(pack.elements[0]);
  const int64_t first = pack.slice.offset.base, words = to.shape[1];
  if (!pack.slice.offset.terms.empty() || first < 0 || from.shape[1 - pack.axis] != to.shape[0] ||
      first + words * elements > from.shape[pack.axis])
    return "words beyond the tile";
  const TilePlaces held(from, kernel.team, kernel.wave), places(to, kernel.team, kernel.wave);
  const std::vector<int64_t> at = packed_positions(held, places, pack.axis, first, elements);
  const size_t each = at.size() / static_cast<size_t>(kernel.team);
  const int64_t of_thread = held.registers() * held.vector();
  for (size_t i = 0; i < at.size(); ++i) {
    if (at[i] < 0) return "threads do not hold the elements of their words";
    if (at[i] % of_thread != at[i % each] % of_thread) return "threads hold the elements in other registers";
  }
  return "";
}

std::string view_problem(const Kernel& kernel, const Instr& view) {
  const Tile &from = kernel.tiles[view.args[0]], &to = kernel.tiles[view.result];
  if (from.dtype != to.dtype) return "a view keeps the elements' type";
  if (!from.bound.empty() || !to.bound.empty()) return "a view of tiles with bounds";
  if (elements(from.layout.shape) != elements(to.layout.shape)) return "a view keeps the number of elements";
  const TilePlaces have(from.layout, kernel.team, kernel.wave), want(to.layout, kernel.team, kernel.wave);
  if (have.registers() != want.registers() || have.vector() != want.vector()) return "a view keeps the registers";
  const auto number = [](std::span<const int64_t> index, const std::vector<int64_t>& shape) {
    int64_t at = 0;
    for (size_t axis = 0; axis < shape.size(); ++axis) at = at * shape[axis] + index[axis];
    return at;
  };
  for (int64_t at = 0; at < have.size(); ++at)
    if (number(have.index(at), from.layout.shape) != number(want.index(at), to.layout.shape))
      return cat("register ", have.register_of(at), " of thread ", have.thread_of(at), " would hold another element");
  return "";
}

std::string convert_problem(const Kernel& kernel, const Instr& convert) {
  const Layout &from = kernel.tiles[convert.args[0]].layout, &to = kernel.tiles[convert.result].layout;
  if (from.shape != to.shape) return "a convert keeps the shape";
  if (kernel.wave == 0 || goes_through_memory(convert)) return "";
  int bits = 0;
  for (int axis = 0; axis < from.rank(); ++axis) bits += std::max(from.bits[axis], to.bits[axis]);
  if (bits > kMostCoordinateBits) return "tiles of too many elements";
  return within_waves(moves_between(from, to, kernel.team, kernel.wave), kernel.wave)
             ? ""
             : "elements that move to another wave go through shared memory";
}

}  // namespace wl

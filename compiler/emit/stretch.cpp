#include "compiler/emit/stretch.h"

#include <algorithm>
#include <map>

namespace wl {
namespace {

// The largest number of register repeats of a tile that are printed as straight-line code in a stretch of several tile
// spaces. More would need too many registers and too much of the instruction cache.
constexpr int64_t kMaxUnrolled = 64;

// Whether tile `a` has the same space as tile `b`, except that some of its axes may have extent 1.
bool broadcasts_into(const Tile& a, const Tile& b) {
  if (a.layout.rank() != b.layout.rank()) return false;
  for (int axis = 0; axis < a.layout.rank(); ++axis) {
    const int lanes_a = a.layout.vector_axis() == axis ? a.layout.lanes() : 1;
    if (a.layout.shape[axis] == 1 && lanes_a == 1) continue;  // scalars broadcast; a vector of one element does not
    if (a.layout.shape[axis] != b.layout.shape[axis]) return false;
    const int lanes_b = b.layout.vector_axis() == axis ? b.layout.lanes() : 1;
    if (lanes_a != lanes_b) return false;
    const auto bound = [axis](const Tile& t) { return t.bound.empty() ? std::vector<Affine>() : t.bound[axis]; };
    if (bound(a) != bound(b)) return false;
  }
  return true;
}

// Whether the tile has a bound along an axis other than that of its vectors. Only a loop over the elements can check
// such a bound; a stretch of several tile spaces has no loop.
bool is_bounded_outside(const Tile& tile) {
  for (size_t axis = 0; axis < tile.bound.size(); ++axis)
    if (static_cast<int>(axis) != tile.layout.vector_axis() && !tile.bound[axis].empty()) return true;
  return false;
}

const std::vector<Affine>* ring_slot(const Kernel& kernel, const Affine& offset, int64_t* mod, int64_t* coefficient) {
  for (const auto& [var, c] : offset.terms) {
    const Var& v = kernel.vars[var];
    if (v.kind == Var::Kind::kDerived && v.mod > 1 && v.div == 1 && v.of.size() == 1) {
      *mod = v.mod;
      *coefficient = c;
      return &v.of;
    }
  }
  return nullptr;
}

// Whether two slices are different slots of one ring buffer. They are if the two slot numbers, before the remainder by
// the ring's length is taken, differ by a constant that is no multiple of that length.
bool disjoint_slots(const Kernel& kernel, const Slice& a, const Slice& b) {
  int64_t mod_a = 0, mod_b = 0, c_a = 0, c_b = 0;
  const std::vector<Affine>* of_a = ring_slot(kernel, a.offset, &mod_a, &c_a);
  const std::vector<Affine>* of_b = ring_slot(kernel, b.offset, &mod_b, &c_b);
  if (of_a == nullptr || of_b == nullptr || mod_a != mod_b || c_a != c_b) return false;
  return (*of_a)[0].terms == (*of_b)[0].terms && ((*of_a)[0].base - (*of_b)[0].base) % mod_a != 0;
}

bool conflict(const Kernel& kernel, const Instr& earlier, const Instr& later) {
  const InstrInfo &first = info(earlier.op), &second = info(later.op);
  if (!first.accesses_memory() || !second.accesses_memory() || (!first.stores() && !second.stores())) return false;
  if (kernel.overlap(earlier.slice.buffer, later.slice.buffer)) return true;
  if (earlier.slice.buffer != later.slice.buffer) return false;
  if (first.is_indexed() || second.is_indexed()) return true;
  return !(earlier.slice == later.slice) && !disjoint_slots(kernel, earlier.slice, later.slice);
}

void collect(const Kernel& kernel, const std::vector<Instr>& body, const ResidentTiles& in_tile_registers, int* stretch,
             std::map<TileId, std::set<int>>* uses) {
  for (size_t i = 0; i < body.size();) {
    if (body[i].op == InstrOp::kLoop) {
      collect(kernel, body[i].body, in_tile_registers, stretch, uses);
      ++i;
      continue;
    }
    const Stretch s = next_stretch(kernel, body, i, in_tile_registers);
    ++*stretch;
    for (const Instr* instr : s.instrs) {
      if (instr->result >= 0) (*uses)[instr->result].insert(*stretch);
      for (TileId arg : instr->args)
        if (info(instr->op).reads_arguments()) (*uses)[arg].insert(*stretch);
    }
    i += std::max<size_t>(1, s.instrs.size());
  }
}

}  // namespace

int64_t repeats_of(const Tile& tile) {
  int64_t n = 1;
  for (int axis = 0; axis < tile.layout.rank(); ++axis) n *= tile.layout.repeats(axis);
  return n;
}

bool same_space(const Tile& a, const Tile& b) {
  return a.layout.shape == b.layout.shape && broadcasts_into(a, b) && broadcasts_into(b, a);
}

bool uses_tile_registers(const Instr& instr, const ResidentTiles& tiles) {
  if (tiles.empty()) return false;
  return tiles.contains(instr.result) ||
         (info(instr.op).reads_arguments() &&
          std::any_of(instr.args.begin(), instr.args.end(), [&](TileId tile) { return tiles.contains(tile); }));
}

Stretch next_stretch(const Kernel& kernel, std::span<const Instr> body, size_t begin,
                     const ResidentTiles& in_tile_registers) {
  Stretch out;
  std::set<TileId> folded;
  bool mixed = false;
  for (size_t i = begin; i < body.size(); ++i) {
    const Instr& instr = body[i];
    const TileId tile = space_tile(instr);
    const bool alone = info(instr.op).stretch == InstrStretch::kAlone || uses_tile_registers(instr, in_tile_registers);
    const bool updates = info(instr.op).result == InstrResult::kUpdates;
    if (out.instrs.empty()) {
      if (instr.op == InstrOp::kLoop) return out;
      out.instrs.push_back(&instr);
      out.space = tile;
      if (alone) return out;
      if (updates) folded.insert(instr.result);
      continue;
    }
    if (alone) break;
    const Tile& space = kernel.tiles[out.space];
    const Tile& mine = kernel.tiles[tile];
    TileId joint = out.space;
    if (!same_space(mine, space)) {
      if (repeats_of(mine) > kMaxUnrolled || repeats_of(space) > kMaxUnrolled) break;
      if (is_bounded_outside(mine) || is_bounded_outside(space)) break;
      if (broadcasts_into(mine, space)) {
        joint = out.space;
      } else if (broadcasts_into(space, mine)) {
        joint = tile;
      } else {
        break;
      }
    }
    const bool uses_fold =
        std::any_of(instr.args.begin(), instr.args.end(), [&](TileId t) { return folded.contains(t); });
    const bool clash = std::any_of(out.instrs.begin(), out.instrs.end(),
                                   [&](const Instr* earlier) { return conflict(kernel, *earlier, instr); });
    if (uses_fold || clash) break;
    mixed = mixed || !same_space(mine, space);
    out.space = joint;
    out.instrs.push_back(&instr);
    if (updates) folded.insert(instr.result);
  }
  out.unrolled = mixed;
  return out;
}

std::set<TileId> register_tiles(const Kernel& kernel) {
  std::map<TileId, std::set<int>> uses;
  int stretch = 0;
  collect(kernel, kernel.body, tiles_in_registers(kernel), &stretch, &uses);
  std::set<TileId> out;
  for (const auto& [tile, where] : uses)
    if (where.size() > 1 && repeats_of(kernel.tiles[tile]) > 1) out.insert(tile);
  return out;
}

}  // namespace wl

#include "compiler/kernel/interp/team_tiles.h"

#include <limits>

#include "compiler/kernel/verify.h"

namespace wl {
namespace {

constexpr Number kNothing = std::numeric_limits<Number>::quiet_NaN();

// Returns the index of an element in row-major order; -1 if the element lies outside the shape.
int64_t number_in(const std::vector<int64_t>& shape, std::span<const int64_t> index) {
  int64_t number = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (index[axis] >= shape[axis]) return -1;
    number = number * shape[axis] + index[axis];
  }
  return number;
}

}  // namespace

TeamTiles::TeamTiles(const Kernel& kernel) : kernel_(kernel) {
  for (const Tile& tile : kernel.tiles)
    places_.emplace_back(tile.layout, kernel.wave > 0 ? kernel.team : 1, kernel.wave);
}

void TeamTiles::start(size_t teams) {
  values_.assign(teams, std::vector<std::vector<Number>>(kernel_.tiles.size()));
}

std::vector<Number>& TeamTiles::tile(TileId id) {
  values_[now_][id].resize(places_[id].size(), kNothing);
  return values_[now_][id];
}

Number TeamTiles::held(TileId id, TileId by, int64_t at) {
  const Layout &from = kernel_.tiles[id].layout, &to = kernel_.tiles[by].layout;
  if (from == to) return tile(id)[at];
  std::vector<int64_t>& known = positions_[{id, by}];
  if (known.empty()) known = positions_in(places_[id], from, places_[by]);
  WL_CHECK(known[at] >= 0, "a thread does not hold what it needs of %", id, " for %", by, "\n", print(kernel_));
  return tile(id)[known[at]];
}

std::vector<Number> TeamTiles::whole(TileId id) {
  const std::vector<int64_t>& shape = kernel_.tiles[id].layout.shape;
  const std::vector<Number>& mine = tile(id);
  std::vector<Number> out(elements(shape), kNothing);
  for (int64_t at = places_[id].size(); at-- > 0;)
    if (const int64_t number = number_in(shape, places_[id].index(at)); number >= 0) out[number] = mine[at];
  return out;
}

void TeamTiles::spread(TileId id, const std::vector<Number>& elements) {
  std::vector<Number>& mine = tile(id);
  for (int64_t at = 0; at < places_[id].size(); ++at)
    if (const int64_t number = number_in(kernel_.tiles[id].layout.shape, places_[id].index(at)); number >= 0)
      mine[at] = elements[number];
}

}  // namespace wl

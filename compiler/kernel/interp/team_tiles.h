// The values of all tiles in every team of a block, or of a cluster of blocks, while a kernel is interpreted.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "compiler/kernel/interp/number.h"
#include "compiler/kernel/kernel.h"
#include "compiler/kernel/tile_places.h"

namespace wl {

class TeamTiles {
 public:
  explicit TeamTiles(const Kernel& kernel);

  // Starts an interpretation with this many teams, none of which holds any value.
  void start(size_t teams);
  // Chooses the team to which all calls of the functions below refer.
  void be(size_t team) { now_ = team; }

  const TilePlaces& places(TileId id) const { return places_[id]; }
  // The values of a tile, one for each position (tile_places.h); NaN where nothing was assigned.
  std::vector<Number>& tile(TileId id);
  // For position `at` of tile `by`: returns the value that the position's thread holds of the corresponding element of
  // tile `id`. Aborts if the thread does not hold that element, which verify() rules out.
  Number held(TileId id, TileId by, int64_t at);
  // The elements of a tile in row-major order, whichever thread holds them.
  std::vector<Number> whole(TileId id);
  // Assigns the elements of a tile, in row-major order, in all threads that hold them.
  void spread(TileId id, const std::vector<Number>& elements);

 private:
  const Kernel& kernel_;
  std::vector<TilePlaces> places_;                        // for each tile: which position holds which element
  std::vector<std::vector<std::vector<Number>>> values_;  // for each team, tile and position: the value
  // for pairs of tiles: the cached results of positions_in()
  std::map<std::pair<TileId, TileId>, std::vector<int64_t>> positions_;
  size_t now_ = 0;
};

}  // namespace wl

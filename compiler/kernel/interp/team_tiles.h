// What the teams of a block, or of a cluster of blocks, hold of all tiles while a kernel is interpreted.
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

  // So many teams, of which none holds anything.
  void start(size_t teams);
  // All that follows is about this team.
  void be(size_t team) { now_ = team; }

  const TilePlaces& places(TileId id) const { return places_[id]; }
  // By position; NaN where nothing is.
  std::vector<Number>& tile(TileId id);
  // What the thread at a position of tile `by` holds of the element of tile `id` that belongs there. Aborts where it
  // does not hold it, which verify() rules out.
  Number held(TileId id, TileId by, int64_t at);
  // The elements of a tile, row by row, whichever thread holds them.
  std::vector<Number> whole(TileId id);
  // Makes them the elements of a tile, in all threads that hold them.
  void spread(TileId id, const std::vector<Number>& elements);

 private:
  const Kernel& kernel_;
  std::vector<TilePlaces> places_;                                       // by tile
  std::vector<std::vector<std::vector<Number>>> values_;                 // by team, tile and position
  std::map<std::pair<TileId, TileId>, std::vector<int64_t>> positions_;  // of one tile, for those of another
  size_t now_ = 0;
};

}  // namespace wl

// The loops of a contraction on GPUs along which tiles extend, and the numbers of tiles and of persistent blocks.
#include <algorithm>

#include "compiler/domain/reads.h"
#include "compiler/schedule/contract/contract.h"
#include "compiler/schedule/contract/counted.h"

namespace wl {

int64_t tile_of(const Schedule& s, const std::array<Choice, 3>& choices) {
  return s[choices[0]] * s[choices[1]] * s[choices[2]];
}

int64_t tiles_along(const Schedule& s, const std::array<int64_t, 3>& extents, const std::array<Choice, 3>& choices) {
  int64_t tiles = 1;
  for (size_t i = 0; i < choices.size(); ++i) tiles *= quotient_up(extents[i], s[choices[i]]);
  return tiles;
}

int64_t rows_of_tile(const Schedule& s) {
  return tile_of(s, kRowLoops);
}

int64_t columns_of_tile(const Schedule& s) {
  return tile_of(s, kColumnLoops);
}

int64_t contract_threads(const Schedule& s) {
  return (rows_of_tile(s) / s[kThreadRows]) * (columns_of_tile(s) / s[kThreadColumns]);
}

int64_t ProductLoops::row_tiles(const Schedule& s) const {
  return tiles_along(s, rows, kRowLoops);
}

int64_t ProductLoops::last_row_tiles(const Schedule& s) const {
  return quotient_up(rows[0], s[kTileRows]);
}

int64_t ProductLoops::column_tiles(const Schedule& s) const {
  return tiles_along(s, columns, kColumnLoops);
}

int64_t ProductLoops::raster_columns(const Schedule& s) const {
  int64_t tiles = 1;
  for (size_t i = 0; i < kColumnLoops.size(); ++i)
    if (i == 0 || s[kColumnLoops[i]] > 1) tiles *= quotient_up(columns[i], s[kColumnLoops[i]]);
  return tiles;
}

AtomId step_loop(const Domain& domain, int64_t vector) {
  AtomId best = -1;
  int64_t most = -1;
  for (const AtomId atom : domain.reduced) {
    int64_t score = domain.atoms[atom].extent;
    for (const int side : {0, 1})
      for (const Access& access : reads_of(domain, domain.contract, side))
        if (access.strides[atom] == 1 && score >= vector) score += int64_t{1} << 40;
    if (score > most) {
      most = score;
      best = atom;
    }
  }
  return best;
}

int64_t blocks_at_once(const Schedule& s, const Machine& machine) {
  return s[kMinBlocks] * machine.multiprocessors();
}

SharedRound shared_round(const Schedule& s, int64_t tiles, const Machine& machine) {
  const int64_t blocks = blocks_at_once(s, machine);
  if (s[kPersistent] == 0 || s[kReductionBlocks] == 1 || tiles <= blocks) return {};
  return {tiles % blocks, s[kReductionBlocks]};
}

ProductLoops product_loops(const Domain& domain) {
  ProductLoops out;
  out.outer = extent_of(domain, domain.batch) * extent_of(domain, domain.m) * extent_of(domain, domain.n);
  for (const auto& [atoms, extents] : {std::pair{&domain.m, &out.rows}, std::pair{&domain.n, &out.columns}})
    for (size_t i = 0; i < std::min(atoms->size(), extents->size()); ++i) {
      (*extents)[i] = domain.atoms[(*atoms)[atoms->size() - 1 - i]].extent;
      out.outer /= std::max<int64_t>(1, (*extents)[i]);
    }
  for (AtomId atom : domain.reduced) out.depth = std::max(out.depth, domain.atoms[atom].extent);
  return out;
}

}  // namespace wl

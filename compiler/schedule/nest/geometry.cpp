#include "compiler/schedule/nest/geometry.h"

#include <algorithm>

#include "compiler/domain/phases.h"
#include "compiler/schedule/nest/blocking.h"
#include "compiler/schedule/nest/row_parts.h"

namespace wl {

RowGeometry::RowGeometry(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine,
                         int lanes, int64_t tile, KernelBuilder& out)
    : domain_(domain), out_(out), lanes_(lanes) {
  if (domain.vector >= 0) {
    vector_extent_ = domain.atoms[domain.vector].extent;
    vector_reduced_ = domain.atoms[domain.vector].reduced;
  }
  tile_ = row_extent_ = vector_extent_;
  if (!vector_reduced_) {
    tile_ = std::max<int64_t>(1, std::min(vector_extent_, tile));
    vector_tiles_ = (vector_extent_ + tile_ - 1) / tile_;
  }
  register_rows_ = schedule[kRegisterRows];
  if (register_rows_ > 1) register_rows_atom_ = wl::register_rows_atom(domain);
  cache_block_rows_ = schedule[kCacheBlockRows];
  if (cache_block_rows_ > 0) cache_block_atom_ = wl::cache_block_atom(group, domain, machine);
  rows_ = vector_tiles_;
  for (AtomId a : domain.parallel)
    if (a != domain.vector) {
      row_atoms_.push_back(a);
      rows_ *= steps_of(a);
    }
  for (AtomId a : domain.reduced)
    if (a != domain.vector) outer_reduced_.push_back(a);
  parts_ = schedule[kReductionBlocks];
}

void RowGeometry::add_outer_loops() {
  for (AtomId a : outer_reduced_) {
    outer_vars_.push_back(out_.loop_var(domain_.atoms[a].name));
    outer_index_.push_back(affine(outer_vars_.back()));
  }
}

void RowGeometry::share_outermost(int teams) {
  row_teams_ = teams;
  outer_index_[0] = affine(outer_vars_[0], teams);
  outer_index_[0].add(kTeamVar, 1);
}

void RowGeometry::share_row(int64_t step) {
  part_ = affine(out_.derived("which", {affine(kBlockVar)}, 1, parts_));
  part_atom_ = shared_atom(domain_);
  const int64_t extent = domain_.atoms[part_atom_].extent;
  share_ = share_of(extent, parts_, shares_vector() ? step : 1);
  WL_CHECK((extent + share_ - 1) / share_ == parts_, "a part without work");
}

bool RowGeometry::inner(const std::vector<AtomId>& varies) const {
  return std::any_of(varies.begin(), varies.end(), [&](AtomId a) {
    return domain_.atoms[a].reduced || (a == domain_.vector && domain_.cls == LoopClass::kMap);
  });
}

bool RowGeometry::wide(const std::vector<AtomId>& varies) const {
  return lanes_ > 1 && holds(varies, domain_.vector);
}

bool RowGeometry::across_rows(const std::vector<AtomId>& varies) const {
  return register_rows_atom_ >= 0 && holds(varies, register_rows_atom_);
}

std::vector<AtomId> RowGeometry::atoms_of(const Access& access) const {
  std::vector<AtomId> out;
  for (AtomId a = 0; a < static_cast<AtomId>(domain_.atoms.size()); ++a)
    if (access.moves_along(a)) out.push_back(a);
  return out;
}

// The number of rows along an atom (one loop of the group). If a tile has several neighbouring rows along it
// (register_rows_), these count as one.
int64_t RowGeometry::steps_of(AtomId atom) const {
  return domain_.atoms[atom].extent / (atom == register_rows_atom_ ? register_rows_ : 1);
}

Affine RowGeometry::row_of_block(int64_t rows) {
  if (parts_ == 1) return affine(kBlockVar, rows);
  return affine(out_.derived("rows", {affine(kBlockVar)}, parts_), rows);
}

// The place of row number i where rows are walked in cache blocks. The number is split like a number in mixed radix,
// from the lowest digit on: the row within its cache block (i % cache_block_rows_), the iteration of the loop over
// cache_block_atom_, the number of the block among the rows within that loop, and the iterations of the loops around
// it.
RowPlace RowGeometry::cache_block_place(const Affine& row, RowPlace place) {
  const int64_t within = rows_within(domain_, cache_block_atom_, tile_);
  const int64_t turns = domain_.atoms[cache_block_atom_].extent;
  Affine inner = affine(out_.derived("in_band", {row}, 1, cache_block_rows_));
  const VarId block = out_.derived("band", {row}, turns * cache_block_rows_, within / cache_block_rows_);
  inner = sum(std::move(inner), affine(block), cache_block_rows_);
  if (vector_tiles_ > 1) place.vector_base = affine(out_.derived("tile", {inner}, 1, vector_tiles_), tile_);
  int64_t inside = vector_tiles_;
  bool outside = false;
  for (size_t i = row_atoms_.size(); i-- > 0;) {
    const AtomId a = row_atoms_[i];
    const int64_t extent = domain_.atoms[a].extent;
    if (a == cache_block_atom_) {
      place.atom[a] = affine(out_.derived(domain_.atoms[a].name, {row}, cache_block_rows_, extent));
      inside = within * extent;
      outside = true;
      continue;
    }
    place.atom[a] = affine(out_.derived(domain_.atoms[a].name, {outside ? row : inner}, inside, i == 0 ? 0 : extent));
    inside *= extent;
  }
  place.row = row;
  return place;
}

RowPlace RowGeometry::place_of(const Affine& row, const std::vector<Affine>& limits, Clamp clamp) {
  RowPlace place;
  place.atom.assign(domain_.atoms.size(), fixed(0));
  if (cache_block_atom_ >= 0) return cache_block_place(row, std::move(place));
  std::vector<Affine> outermost = {row};
  outermost.insert(outermost.end(), limits.begin(), limits.end());
  const std::vector<Affine> within = clamp == Clamp::kEveryIndex ? outermost : std::vector<Affine>{row};
  const bool direct = limits.empty();
  int64_t inside = vector_tiles_;
  if (vector_tiles_ > 1) {
    const bool only = row_atoms_.empty();
    place.vector_base =
        direct && only ? row : affine(out_.derived("tile", only ? outermost : within, 1, only ? 0 : vector_tiles_));
    place.vector_base = sum(fixed(0), place.vector_base, tile_);
  }
  for (size_t i = row_atoms_.size(); i-- > 0;) {
    const AtomId a = row_atoms_[i];
    const int64_t steps = steps_of(a);
    Affine step = row;
    if (!direct || inside != 1 || i != 0)
      step = affine(out_.derived(domain_.atoms[a].name, i == 0 ? outermost : within, inside, i == 0 ? 0 : steps));
    place.atom[a] = a == register_rows_atom_ ? sum(fixed(0), step, register_rows_) : step;
    inside *= steps;
  }
  for (size_t i = 0; i < outer_reduced_.size(); ++i) place.atom[outer_reduced_[i]] = outer_index_[i];
  if (tile_var_ >= 0) place.vector_base = affine(tile_var_, tile_);
  if (parts_ > 1) {
    Affine& shared = shares_vector() ? place.vector_base : place.atom[part_atom_];
    shared = sum(std::move(shared), part_, share_);
  }
  place.row = row;
  return place;
}

std::vector<std::vector<Affine>> RowGeometry::bound_at(const RowPlace& place) const {
  if (vector_extent_ % std::max<int64_t>(1, tile_) == 0) return {};
  return {{}, {sum(fixed(vector_extent_), place.vector_base, -1)}};
}

std::vector<Affine> RowGeometry::outer_trips(size_t loop) {
  const AtomId atom = outer_reduced_[loop];
  const int64_t extent = domain_.atoms[atom].extent;
  std::vector<Affine> trips = {fixed(extent)};
  if (parts_ > 1 && atom == part_atom_) {
    trips = {fixed(share_)};
    if (extent % share_ != 0) trips.push_back(sum(fixed(extent), part_, -share_));
  }
  if (row_teams_ == 1 || loop != 0) return trips;
  for (Affine& trip : trips) trip = sum(std::move(trip), affine(kTeamVar, -1, row_teams_ - 1));
  return {affine(out_.derived("share", std::move(trips), row_teams_))};
}

std::vector<Affine> RowGeometry::tile_trips() const {
  const int64_t whole = vector_reduced_ ? vector_extent_ : row_extent_;
  const int64_t tiles = (whole + tile_ - 1) / tile_;
  if (!shares_vector()) return {fixed(tiles)};
  std::vector<Affine> trips = {fixed(share_ / tile_)};
  if (tiles % (share_ / tile_) != 0) trips.push_back(sum(fixed(tiles), part_, -share_ / tile_));
  return trips;
}

Affine RowGeometry::index_of(int64_t offset, const std::vector<int64_t>& strides, const RowPlace& place) const {
  Affine out = fixed(offset);
  for (AtomId a = 0; a < static_cast<AtomId>(domain_.atoms.size()); ++a)
    if (a != domain_.vector && strides[a] != 0) out = sum(std::move(out), place.atom[a], strides[a]);
  if (domain_.vector >= 0 && strides[domain_.vector] != 0)
    out = sum(std::move(out), place.vector_base, strides[domain_.vector]);
  return out;
}

Slice RowGeometry::slice_of(BufferId buffer, const Access& access, const RowPlace& place, bool is_wide) const {
  Slice out;
  out.buffer = buffer;
  out.offset = index_of(access.offset, access.strides, place);
  out.strides = {register_rows_atom_ >= 0 ? access.strides[register_rows_atom_] : 0,
                 is_wide && domain_.vector >= 0 ? access.strides[domain_.vector] : 0};
  return out;
}

}  // namespace wl

#include <algorithm>
#include <numeric>

#include "compiler/schedule/launch.h"
#include "compiler/schedule/transpose/transpose.h"

namespace wl {
namespace {

// Emits the kernel of a transpose. The second atom (loop of the group) is the one along which transposed inputs are
// contiguous.
class Transpose {
 public:
  Transpose(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine)
      : group_(group),
        domain_(domain),
        out_(group, machine),
        lanes_(machine.target->lanes),
        rows_(transposed_tile(domain.atoms[domain.second].extent, schedule[kTileRows], lanes_)),
        columns_(transposed_tile(domain.atoms[domain.vector].extent, schedule[kTileColumns], lanes_)),
        ahead_(schedule[kPrefetch]),
        level_(static_cast<int>(schedule[kPrefetchLevel])),
        rows_inner_(schedule[kRowsInnermost] == 1),
        staged_(schedule[kStaged] != 0),
        streaming_(schedule[kStreamStores] != 0) {
    set_launch(out_.kernel(), "transpose", schedule, machine);
    out_.kernel().unroll = static_cast<int>(schedule[kUnroll]);
    open_tiles(schedule[kTasksPerThread]);
  }

  // Emits the computation of a tile, square by square. Staged tiles are computed in scratch and then stored in whole
  // rows.
  absl::StatusOr<Kernel> lower() {
    const VarId outer = rows_inner_ ? column_ : row_, inner = rows_inner_ ? row_ : column_;
    out_.open_loop(outer, {fixed((rows_inner_ ? columns_ : rows_) / lanes_)});
    out_.open_loop(inner, {fixed((rows_inner_ ? rows_ : columns_) / lanes_)});
    const Place place = square();
    // Prefetches, loads and transposes of transposed inputs, which precede all other instructions of a square.
    std::vector<Instr> crossed;
    TileExpr expr{group_, domain_, out_, place, {{domain_.second, lanes_}, {domain_.vector, lanes_}}, lanes_};
    expr.load = [&](const Access& access) -> TileId {
      if (std::find(read_.begin(), read_.end(), access) == read_.end()) read_.push_back(access);
      if (!crosses(access)) return -1;
      if (ahead_ > 0 && !staged_) {
        Place later = place;
        later[along()] = sum(later[along()], fixed(ahead_ * lanes_));
        crossed.push_back(fetch(access, later, domain_.second, domain_.vector, {lanes_, lanes_}, 0));
      }
      return turned(access, place, crossed);
    };
    for (const Domain::Store& store : domain_.stores) {
      TileId value = -1;
      if (store.source >= 0) {
        WL_ASSIGN_OR_RETURN(value, expr.value(store.source));
      } else {
        value = expr.load(store.copy);
        if (value < 0) value = expr.load_input(store.copy);
      }
      expr.code.push_back(staged_ ? store_instr(value, scratch(store), false)
                                  : store_instr(value,
                                                slice_at(out_.output_buffer(store.output), store.access, place,
                                                         {domain_.second, domain_.vector}),
                                                streaming_));
    }
    out_.push_all(std::move(crossed));
    out_.push_all(std::move(expr.code));
    out_.close_loop();
    out_.close_loop();
    if (staged_) write_rows();
    out_.close_loop();
    if (streaming_) out_.push(fence_instr());
    return out_.finish();
  }

 private:
  // Opens the loop over a block's tiles, and sets origin_, the place where a tile begins.
  void open_tiles(int64_t tasks) {
    const int64_t down = domain_.atoms[domain_.second].extent / rows_;
    const int64_t across = domain_.atoms[domain_.vector].extent / columns_;
    int64_t tiles = down * across;
    for (AtomId a : domain_.parallel)
      if (a != domain_.second && a != domain_.vector) tiles *= domain_.atoms[a].extent;
    const int64_t blocks = std::max<int64_t>(1, out_.kernel().threads * tasks);
    const int64_t chunk = (tiles + blocks - 1) / blocks;
    out_.kernel().grid = (tiles + chunk - 1) / chunk;
    const VarId tile_var = out_.loop_var("tile");
    std::vector<Affine> trips = {fixed(chunk)};
    if (tiles % chunk != 0) trips.push_back(affine(kBlockVar, -chunk, tiles));
    out_.open_loop(tile_var, trips);
    Affine tile = affine(kBlockVar, chunk);
    tile.add(tile_var, 1);
    row_ = out_.loop_var("row");
    column_ = out_.loop_var("column");
    origin_.assign(domain_.atoms.size(), fixed(0));
    int64_t inside = 1;
    const auto digit = [&](const std::string& name, int64_t extent) {
      const Affine index = extent == 1 ? fixed(0) : affine(out_.derived(name, {tile}, inside, extent));
      inside *= extent;
      return index;
    };
    const auto place_rows = [&] { origin_[domain_.second] = sum(fixed(0), digit("tile_row", down), rows_); };
    const auto place_columns = [&] { origin_[domain_.vector] = sum(fixed(0), digit("tile_column", across), columns_); };
    if (rows_inner_) place_rows();
    place_columns();
    if (!rows_inner_) place_rows();
    for (size_t i = domain_.parallel.size(); i-- > 0;) {
      const AtomId a = domain_.parallel[i];
      if (a != domain_.second && a != domain_.vector)
        origin_[a] = digit(domain_.atoms[a].name, domain_.atoms[a].extent);
    }
  }

  // Returns the place of the square with the numbers row_ and column_ within the tile.
  Place square() const {
    Place place = origin_;
    place[domain_.second] = sum(affine(row_, lanes_), place[domain_.second]);
    place[domain_.vector] = sum(affine(column_, lanes_), place[domain_.vector]);
    return place;
  }

  // Returns the atom (loop of the group) that the innermost loop over squares runs along.
  AtomId along() const { return rows_inner_ ? domain_.second : domain_.vector; }

  // Whether an input is transposed: it is contiguous along the second atom, and varies along the vectorised axis.
  bool crosses(const Access& access) const {
    return access.strides[domain_.second] == 1 && access.strides[domain_.vector] != 0;
  }

  // Returns the tile with a square of a transposed input after its transposition: the tile's lanes run along the
  // vectorised axis.
  TileId turned(const Access& access, const Place& place, std::vector<Instr>& into) {
    for (const auto& [known, tile] : squares_known_)
      if (known == access) return tile;
    squares_known_.emplace_back(access, turned_square(out_, group_.nodes[access.input].dtype, access, place,
                                                      domain_.second, domain_.vector, lanes_, lanes_, into));
    return squares_known_.back().second;
  }

  Instr fetch(const Access& access, const Place& place, AtomId axis0, AtomId axis1, std::vector<int64_t> shape,
              int vector_axis) {
    const TileId of = out_.tile(group_.nodes[access.input].dtype, std::move(shape), vector_axis, lanes_);
    return prefetch_instr(of, slice_at(out_.input_buffer(access.input), access, place, {axis0, axis1}), level_);
  }

  // The pitch of rows in scratch, in elements. It is one vector more than a row has, so that the rows of a square fall
  // into different cache sets.
  int64_t pitch() const { return columns_ + lanes_; }

  DType dtype_of(const Domain::Store& store) const {
    return group_.nodes[store.source >= 0 ? store.source : store.copy.input].dtype;
  }

  // Returns where the square of a stored value lies in scratch. Every store has a tile of its own there.
  Slice scratch(const Domain::Store& store) {
    scratch_.push_back(out_.shared(cat("tile", scratch_.size()), dtype_of(store), {rows_, pitch()}));
    Affine to = affine(row_, lanes_ * pitch());
    to.add(column_, lanes_);
    return {scratch_.back(), to, {pitch(), 1}};
  }

  // Stores the tile from scratch to memory in whole rows. Between these stores, which read no memory, come prefetches
  // of the inputs of the tile that is `ahead_` tiles later.
  void write_rows() {
    const int64_t steps = std::gcd(rows_, columns_), rows_each = rows_ / steps;
    const VarId step = out_.loop_var("step"), part = out_.loop_var("part");
    Affine row = affine(step, rows_each);
    row.add(part, 1);
    Place place = origin_, next = origin_;
    next[along()] = sum(next[along()], fixed(ahead_ * (rows_inner_ ? rows_ : columns_)));
    Place below = next;
    place[domain_.second] = sum(place[domain_.second], row);
    below[domain_.second] = sum(below[domain_.second], row);
    next[domain_.vector] = sum(next[domain_.vector], affine(step, columns_ / steps));

    out_.open_loop(step, {fixed(steps)});
    out_.open_loop(part, {fixed(rows_each)});
    for (size_t i = 0; i < scratch_.size(); ++i) {
      const Domain::Store& store = domain_.stores[i];
      const TileId whole = out_.tile(dtype_of(store), {1, columns_}, 1, lanes_);
      out_.push(load_instr(whole, {scratch_[i], sum(fixed(0), row, pitch()), {0, 1}}));
      out_.push(store_instr(
          whole, slice_at(out_.output_buffer(store.output), store.access, place, {-1, domain_.vector}), streaming_));
    }
    const auto fetch_all = [&](bool crossing) {
      for (const Access& access : read_) {
        if (ahead_ == 0 || crosses(access) != crossing) continue;
        if (crossing) {
          out_.push(fetch(access, next, domain_.vector, domain_.second, {columns_ / steps, rows_}, 1));
        } else if (access.strides[domain_.vector] != 0 && access.strides[domain_.second] != 0) {
          out_.push(fetch(access, below, -1, domain_.vector, {1, columns_}, 1));
        }
      }
    };
    fetch_all(false);
    out_.close_loop();
    fetch_all(true);
    out_.close_loop();
  }

  const Graph& group_;
  const Domain& domain_;
  KernelBuilder out_;
  const int lanes_;
  const int64_t rows_, columns_;  // number of elements of a tile: along the second atom, and along the vectorised axis
  const int64_t ahead_;
  const int level_;  // the cache level that inputs are prefetched into
  const bool rows_inner_, staged_, streaming_;
  VarId row_ = -1, column_ = -1;  // variables that number the squares within a tile
  Place origin_;
  std::vector<Access> read_;  // the distinct accesses by which a tile reads inputs
  std::vector<std::pair<Access, TileId>> squares_known_;
  std::vector<BufferId> scratch_;  // the scratch buffer of each store's tile
};

}  // namespace

int64_t transposed_tile(int64_t extent, int64_t wanted, int64_t lanes) {
  int64_t tile = std::max<int64_t>(lanes, std::min(extent, wanted) / lanes * lanes);
  while (extent % tile != 0) tile -= lanes;
  return tile;
}

bool transposes(const Domain& domain, const Machine& machine) {
  if (domain.cls != LoopClass::kMap || domain.second < 0 || domain.vector < 0) return false;
  const int64_t lanes = machine.target->lanes;
  const auto whole = [&](AtomId a) { return domain.atoms[a].extent >= lanes && domain.atoms[a].extent % lanes == 0; };
  if (lanes <= 1 || !whole(domain.second) || !whole(domain.vector)) return false;
  return std::all_of(domain.stores.begin(), domain.stores.end(),
                     [](const Domain::Store& s) { return s.source >= 0 || (s.copy.input >= 0 && s.pieces.empty()); });
}

absl::StatusOr<Kernel> lower_transpose(const Graph& group, const Domain& domain, const Schedule& schedule,
                                       const Machine& machine) {
  return Transpose(group, domain, schedule, machine).lower();
}

}  // namespace wl

#include <algorithm>
#include <utility>

#include "compiler/schedule/axes.h"
#include "compiler/schedule/contract/contract.h"
#include "compiler/schedule/contract/cpu/product.h"
#include "compiler/schedule/contract/extents.h"

namespace wl {
namespace {

// The largest scratch of a thread, in bytes: larger packed panels cost more time than they save.
constexpr int64_t kScratchLimit = 64 << 20;
// The least prefetch distance, in rows of a panel, if must_prefetch() holds. The computation of fewer rows would take
// less time than memory needs to deliver one row.
constexpr int64_t kShortestFetch = 64;
// The most rows of a micro-kernel in vector registers; values of `mr` above this are for tile registers.
constexpr int64_t kMostVectorRows = 14;

int64_t vectors_of(const Extents& e, const Machine& machine) {
  const int64_t lanes = machine.target->lanes;
  return std::max<int64_t>(1, (e.columns + lanes - 1) / lanes);
}

// Returns the number of elements of an image's copy for a block with `columns` output pixels and `depth` elements of K.
int64_t image_elements(const Slides& image, int64_t columns, int64_t depth) {
  const Slide &width = image.width, &height = image.height;
  const int64_t taps = width.taps * height.taps, planes = width.planes * height.planes;
  const int64_t rows = std::min(height.outputs, std::max<int64_t>(1, columns / width.outputs));
  const int64_t row = height.output < 0 ? columns + width.halo() : width.positions;
  return (depth + taps - 1) / taps * planes * row * (rows + height.halo());
}

// Whether the contraction's rows are pixels of an image, which the choice nc then splits into blocks. For the left
// operand's image this requires that the image is copied (`copied`).
bool blocks_have_rows(const Extents& e, bool copied) {
  return (e.turned && e.image) || (e.left_image && copied && e.once->height.output >= 0);
}

// Returns the extent that the choice nc may split: that of the rows if they are pixels of an image, else that of the
// columns.
int64_t split_extent(const Extents& e, bool copied = true) {
  return blocks_have_rows(e, copied) ? e.rows * e.outer_rows : e.columns * e.outer_columns;
}

// Whether the rows may be divided among `tasks` tasks. If there is no outer loop of rows, all tasks must get the same
// number of rows, and at least 4.
bool divides_rows(const Extents& e, int64_t tasks) {
  if (e.outer_rows > 1) return tasks <= e.outer_rows;
  return e.rows % tasks == 0 && e.rows / tasks >= 4;
}

// Whether tiles may be `nv` vectors wide. If the right operand is stored in several panels, nv must divide the number
// of vectors in a panel. If it is stored in one panel, tiles share the vectors evenly, and nv is legal only if no
// smaller nv gives the same tiles.
bool fits_columns(const Extents& e, int64_t nv, const Machine& machine) {
  const int64_t vectors = vectors_of(e, machine), tiles = (vectors + nv - 1) / nv;
  if (!e.panels) return nv <= vectors;
  return e.outer_columns > 1 ? vectors % nv == 0 : (vectors + tiles - 1) / tiles == nv;
}

int64_t right_bytes(const Extents& e) {
  return e.columns * e.outer_columns * e.depth * e.right_size;
}

// Whether the right operand must be prefetched: it is stored in several panels, as weights are, and exceeds the L1
// cache. The search cannot measure what prefetching gains, because it runs one kernel again and again, so that the
// operand is in a cache. In a program of many kernels the operand comes from memory.
bool must_prefetch(const Extents& e, const Machine& machine) {
  return e.panels && e.outer_columns > 1 && e.depth > kShortestFetch && right_bytes(e) > machine.l1_bytes;
}

// Returns the number of elements in a thread's scratch for packed operands, the copied image and partial results.
int64_t scratch_of(const Schedule& s, const Extents& e) {
  const auto share = [](int64_t all, int64_t tasks) { return (all + tasks - 1) / tasks; };
  const int64_t kc = s[kKc] == 0 ? e.depth : s[kKc];
  int64_t columns = share(e.columns * e.outer_columns, s[kColumnTasks]);
  int64_t rows = e.outer_rows > 1 ? e.rows * share(e.outer_rows, s[kRowTasks]) : e.rows / s[kRowTasks];
  int64_t& split = blocks_have_rows(e, s[kCopyImage] != 0) ? rows : columns;
  if (s[kNc] != 0) split = std::min(split, s[kNc]);
  const std::optional<Slides>& image = s[kCopyImage] == kCopyWhole ? e.once : e.rows_once;
  int64_t elements = s[kPackA] ? rows * kc : 0;
  if (s[kCopyImage]) elements += image_elements(*image, e.turned || e.left_image ? rows : columns, kc);
  if (s[kPackB] && (!s[kCopyImage] || e.left_image)) elements += columns * kc;
  return kc < e.depth ? elements + rows * columns : elements;
}

// Whether a schedule for tile registers is legal. The height of a tile of sums must be that of whole tile registers: of
// one, or of two if the contraction has more rows than one register holds. Tile registers must be able to load operands
// that are not packed.
bool legal_in_tiles(const Schedule& s, const Extents& e, const Machine& machine) {
  const bool reads_right = s[kPackB] == 0 && e.right_words;
  return e.tiles && !e.turned && s[kCopyImage] == kCopyTaps && s[kMr] % kTileRegisterRows == 0 &&
         (s[kMr] == kTileRegisterRows || e.rows > kTileRegisterRows) && s[kNv] <= kMostTileVectors &&
         (s[kPackA] != 0 || e.left_tiles) && (!reads_right || e.columns % (s[kNv] * machine.target->lanes) == 0);
}

// Whether a schedule for vector registers is legal. The accumulators of a micro-kernel must fit the registers together
// with one row of B and one element of A, and there must be enough accumulators to hide the latency of multiply-adds.
bool legal_in_vectors(const Schedule& s, const Extents& e, const Machine& machine) {
  const int64_t registers = machine.target->vector_registers, vectors = vectors_of(e, machine);
  const int64_t mr = std::min(s[kMr], e.rows), nv = s[kNv];
  if (s[kMr] > kMostVectorRows || mr * nv + nv + 1 > registers) return false;
  if (!e.turned && !e.left_image && s[kMr] > e.rows) return false;
  // With accumulators in less than half of the registers, multiply-adds wait for each other's results. Such a schedule
  // is legal only if its tiles are high, or if the contraction has too few rows or columns for larger tiles.
  return mr * nv >= registers / 2 || mr * 2 > e.rows || mr >= 14 || nv * 2 > vectors;
}

// Whether the choices of packing and copying are legal for operands that are read as words (u32 of several narrow
// elements). With `widen`, no image may be copied and the right operand may not be packed. Without a copied image, an
// operand must be packed if the elements of a word are not neighbours in memory. legal_contract() has the rules for
// exchanged rows and columns.
bool legal_with_words(const Schedule& s, const Extents& e) {
  if (!e.dot || s[kCopyImage]) return !e.dot || !e.widened;
  if (e.widened && s[kPackB]) return false;
  return (e.left_words || s[kPackA] || e.turned) && (e.right_words || s[kPackB] || e.turned);
}

bool legal_contract(const Schedule& s, const Extents& e, const Machine& machine) {
  if (!(s[kMatrix] == kNoMatrix ? legal_in_vectors(s, e, machine) : legal_in_tiles(s, e, machine))) return false;
  if (!legal_with_words(s, e)) return false;
  const int64_t nv = s[kNv];
  if (!fits_columns(e, nv, machine)) return false;
  if (s[kNc] != 0 && s[kNc] >= split_extent(e, s[kCopyImage] != 0)) return false;
  if (s[kRowTasks] > 1 && !divides_rows(e, s[kRowTasks])) return false;
  if (s[kColumnTasks] > vectors_of(e, machine) * e.outer_columns) return false;
  if (s[kSkipPadding] && !(e.zeros && s[kCopyImage])) return false;
  if (e.turned && s[kPackB]) return false;
  if (e.turned || e.left_image) {
    if (s[kCopyImage] && s[kPackA]) return false;
    // An operand A that cannot be read in place is packed in any case, so pack_a=0 would give the same kernel.
    if (!(e.direct && e.left_words) && !s[kCopyImage] && !s[kPackA]) return false;
    // If the number of columns is no multiple of the tile's width, the right operand's columns must be read in place as
    // one row, because only such a row can be cut into tiles of almost equal width.
    const bool one_row = s[kColumnTasks] == 1 && e.outer_columns == 1 && e.in_place;
    if (e.turned && !one_row && e.columns % (nv * machine.target->lanes) != 0) return false;
  } else if (s[kCopyImage] && !s[kPackB]) {
    return false;  // a copied image packs B in any case, so pack_b=0 would give the same kernel as pack_b=1
  }
  if (s[kPrefetch] != 0 && (s[kPackB] || !e.in_place || s[kPrefetch] >= e.depth)) return false;
  if (!s[kPackB] && s[kPrefetch] < kShortestFetch && must_prefetch(e, machine)) return false;
  if (scratch_of(s, e) * e.packed_size > kScratchLimit) return false;
  const int64_t tasks = s[kRowTasks] * s[kColumnTasks];
  if (tasks > 1 && tasks > 4 * s[kThreads]) return false;
  return tasks * e.outer >= s[kThreads];
}

// Returns the legal points among `points`, without duplicates.
std::vector<Point> legal_ones(const Space& space, const std::vector<Point>& points) {
  std::vector<Point> kept;
  for (const Point& point : points)
    if (space.is_legal(point) && std::find(kept.begin(), kept.end(), point) == kept.end()) kept.push_back(point);
  return kept;
}

// Adds seeds for one way to compute the contraction, the most promising tiles first; some may be illegal.
void add_seeds_of(Space& space, const Extents& e, const Machine& machine) {
  const int64_t threads = machine.threads;
  const auto first = [&](Choice choice, int64_t wanted) { return largest_up_to(values_of(space, choice), wanted); };
  const auto vectors = [&](int64_t wanted) {
    // Returns the largest nv up to `wanted` that is legal for the extents `e`. The axis has further values, which are
    // legal only for other ways to compute the contraction.
    int64_t most = 1;
    for (const int64_t nv : values_of(space, kNv))
      if (nv <= wanted && nv > most && fits_columns(e, nv, machine)) most = nv;
    return most;
  };
  // Whether the loops over batch elements and outer rows have enough iterations for all threads.
  const bool many = e.outer >= threads;
  const int64_t column_tasks = many ? 1 : first(kColumnTasks, threads);
  const int64_t row_tasks = many || column_tasks >= threads ? 1 : first(kRowTasks, threads);
  // Elementwise work on B in place is repeated for every tile of rows, so B is left unpacked only if rows are few.
  const bool few = e.rows <= 32 && e.right_words;
  const int64_t pack_b = few || e.turned || (e.panels && !e.computed) ? 0 : 1;
  // In a program of many kernels, an operand larger than the L2 cache comes from memory, so seeds prefetch it.
  const bool is_large = right_bytes(e) > machine.l2_bytes;
  const bool copies = e.once && !(e.left_image && e.direct);
  const bool left = e.turned || e.left_image;  // whether it is the left operand whose image may be copied
  const bool ahead = pack_b == 0 && (must_prefetch(e, machine) || (e.in_place && (left || !e.once) && is_large));
  const int64_t prefetch = ahead ? first(kPrefetch, kShortestFetch) : 0;
  for (const auto& [mr, nv] : {std::pair<int64_t, int64_t>{kMostTileRows, 2},
                               {kMostTileRows, 1},
                               {9, 3},
                               {8, 3},
                               {14, 2},
                               {12, 2},
                               {8, 2},
                               {6, 4},
                               {6, 2},
                               {4, 3},
                               {4, 2},
                               {4, 1},
                               {2, 1},
                               {1, 1}})
    for (int64_t kc : {int64_t{0}, int64_t{1024}}) {
      const bool in_tiles = mr > kMostVectorRows;
      if (in_tiles && !e.tiles) continue;
      if (!left && mr == 8 && nv == 2) continue;
      // If no legal tile is three vectors wide, this seed is left out: other seeds have tiles of fewer vectors and more
      // rows.
      if (e.turned && nv == 3 && vectors(nv) < nv) continue;
      if (kc == 0 ? e.depth > 1536 : e.depth <= 1024) continue;
      // nc is chosen so that what a block packs or copies of the image stays in the L2 cache, if that is possible.
      const int64_t depth = std::min(e.depth, int64_t{1024});
      const int64_t in_block = e.once ? image_elements(*e.once, 768, depth) : depth * 768;
      const int64_t nc = !e.image && !(e.left_image && copies)          ? 0
                         : in_block * e.packed_size <= machine.l2_bytes ? 768
                                                                        : 192;
      Chosen seed = {{kMr, first(kMr, mr)},
                     {kNv, vectors(nv)},
                     {kKc, kc},
                     {kNc, nc < split_extent(e) ? nc : 0},
                     {kPackB, e.once && !left ? 1 : pack_b},
                     {kPackA, (e.left_words && !e.left_narrow) || (e.turned && e.once) ? 0 : 1},
                     {kRowTasks, row_tasks},
                     {kColumnTasks, column_tasks},
                     {kPrefetch, prefetch},
                     {kThreads, threads}};
      if (in_tiles) {
        seed.emplace_back(kMatrix, 1 + static_cast<int64_t>(e.tiles->matrix));
        if (!e.left_tiles) seed.emplace_back(kPackA, 1);
      }
      if (copies && !in_tiles) seed.emplace_back(kCopyImage, kCopyWhole);
      if (axis_of(space.axes, kWiden) != nullptr) seed.emplace_back(kWiden, e.widened ? 1 : 0);
      if (copies && e.zeros) seed.emplace_back(kSkipPadding, 1);
      if (e.turned) {
        seed.emplace_back(kTurnTiles, 1);
        if (!e.direct && !e.once) seed.emplace_back(kPackA, 1);
      }
      add_seed(space, seed);
    }
}

// Returns the share of vector lanes that compute columns of the result; the other lanes compute a halo or nothing. The
// columns are those of one atom or of a copied image.
double used_lanes(const Extents& e, const Machine& machine) {
  const int64_t lanes = machine.target->lanes;
  int64_t used = e.columns, all = e.columns;
  if (e.once && !e.turned && !e.left_image && e.once->height.output >= 0) {
    used = e.once->width.outputs * e.once->height.outputs;
    all = e.once->width.positions * (e.once->height.outputs - 1) + e.once->width.outputs;
  }
  return static_cast<double>(used) / static_cast<double>((all + lanes - 1) / lanes * lanes);
}

// Sets at most eight seeds: two from each way to compute the contraction, then two more from each, and so on. If no
// seed is legal, the first legal point becomes the seed. Of two ways that differ only in turn_tiles, the one that uses
// more lanes comes first.
void add_contract_seeds(Space& space, const std::vector<Extents>& ways, const Machine& machine) {
  std::vector<std::vector<Point>> found;
  for (size_t i = 0; i < ways.size(); ++i) {
    space.seeds.clear();
    add_seeds_of(space, ways[i], machine);
    found.push_back(legal_ones(space, space.seeds));
    if (ways[i].turned && used_lanes(ways[i], machine) > used_lanes(ways[i - 1], machine))
      std::swap(found[i - 1], found[i]);
  }
  space.seeds.clear();
  constexpr size_t kMost = 8, kInTurn = 2;
  for (size_t i = 0; i < kMost; i += kInTurn)
    for (const std::vector<Point>& way : found)
      for (size_t j = i; j < std::min(i + kInTurn, way.size()); ++j)
        if (space.seeds.size() < kMost) space.seeds.push_back(way[j]);
  if (!space.seeds.empty()) return;
  space.enumerate([&](const Point& point) {
    space.seeds.push_back(point);
    return false;
  });
}

}  // namespace

Space space_contract(const Graph& group, const Domain& domain, const Machine& machine) {
  const std::vector<Extents> ways = ways_of(group, domain, machine);
  const bool turns = std::ranges::any_of(ways, &Extents::turned);
  const bool parallel = machine.threads > 1;
  const auto any = [&](const auto& admits) { return std::any_of(ways.begin(), ways.end(), admits); };
  const Extents& e = ways[0];
  // The value of mr that was considered last. If rows are pixels, and their number is between two values of mr, the
  // axis also has the larger one of these.
  int64_t covers = 1;
  Space space;
  space.kind = "contract";
  space.axes = {
      axis(kMr, {1, 2, 4, 6, 8, 9, 12, 14, kTileRegisterRows, kMostTileRows},
           [&](int64_t m) {
             if (m > kMostVectorRows) return e.tiles && (m == kTileRegisterRows || e.rows > kTileRegisterRows);
             const int64_t below = std::exchange(covers, m);
             return any(
                 [&](const Extents& w) { return m <= w.rows || ((w.turned || w.left_image) && below < w.rows); });
           }),
      axis(kNv, {1, 2, 3, 4},
           [&](int64_t n) { return any([&](const Extents& w) { return fits_columns(w, n, machine); }); }),
      axis(kKc, {0, 1024, 768, 512, 256}, [&](int64_t k) { return k == 0 || k < e.depth; }),
      axis(kNc, {0, 768, 192},
           [&](int64_t n) { return n == 0 || any([&](const Extents& w) { return n < split_extent(w); }); }),
      e.panels && !e.computed                                        ? axis(kPackB, {0})
      : turns || any([](const Extents& w) { return w.right_words; }) ? axis(kPackB, {1, 0})
                                                                     : axis(kPackB, {1}),
      turns || any([](const Extents& w) { return w.left_words; }) ? axis(kPackA, {0, 1}) : axis(kPackA, {1}),
      axis(kRowTilesOutermost, {1, 0}),
      axis(
          kRowTasks, {1, 2, 4, 8},
          [&](int64_t t) { return t == 1 || (parallel && any([&](const Extents& w) { return divides_rows(w, t); })); }),
      axis(kColumnTasks, {1, 2, 4, 8},
           [&](int64_t t) {
             return t == 1 ||
                    (parallel && any([&](const Extents& w) { return t <= vectors_of(w, machine) * w.outer_columns; }));
           }),
      threads_axis(machine),
      compiler_axis(machine),
      axis(kPrefetch, {0, 64, 32, 128},
           [&](int64_t p) { return p == 0 || any([&](const Extents& w) { return w.in_place && p < w.depth; }); }),
  };
  Axis copies(kCopyImage, {kCopyTaps});
  if (e.rows_once) copies.values.push_back(kCopyRows);
  if (e.once) copies.values.push_back(kCopyWhole);
  if (copies.values.size() > 1) space.axes.push_back(copies);
  if (turns) space.axes.push_back(axis(kTurnTiles, {0, 1}));
  if (any([](const Extents& w) { return w.widened; })) {
    Axis widen(kWiden, {ways[0].widened ? 1 : 0});
    if (ways.back().widened != ways[0].widened) widen.values.push_back(1 - widen.values[0]);
    space.axes.push_back(widen);
  }
  if (e.tiles)
    space.axes.emplace_back(kMatrix, std::vector<int64_t>{kNoMatrix, 1 + static_cast<int64_t>(e.tiles->matrix)});
  if (any([](const Extents& w) { return w.zeros; })) space.axes.push_back(axis(kSkipPadding, {0, 1}));
  add_listed_axes(space, machine);
  space.legal = [=](const Schedule& s) {
    const auto way = std::ranges::find_if(
        ways, [&](const Extents& w) { return w.turned == (s[kTurnTiles] != 0) && w.widened == (s[kWiden] != 0); });
    return way != ways.end() && legal_contract(s, *way, machine);
  };
  add_contract_seeds(space, ways, machine);
  add_split_effects(space, group, domain, machine);
  return space;
}

}  // namespace wl

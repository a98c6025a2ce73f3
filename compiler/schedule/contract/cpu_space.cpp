#include <algorithm>
#include <utility>

#include "compiler/plan/flat.h"
#include "compiler/plan/image.h"
#include "compiler/schedule/axes.h"
#include "compiler/schedule/contract/contract.h"
#include "compiler/schedule/contract/dot.h"
#include "compiler/schedule/contract/in_place.h"
#include "compiler/schedule/contract/tiles.h"

namespace wl {
namespace {

// The largest scratch of a thread. Larger packed panels cost more time than they save.
constexpr int64_t kScratchLimit = 64 << 20;
// Rows of a panel from one that is prefetched to the one that is read then. Memory is slower than fewer rows.
constexpr int64_t kShortestFetch = 64;
// The most columns of a panel of which a turned contraction reads a part: a row of it is in one page of memory.
constexpr int64_t kWidestPanel = 1024;
// The most rows of a micro-kernel of vectors; others are of tile registers.
constexpr int64_t kMostVectorRows = 14;

struct Slides {
  Slide width, height;
};

// Of the contraction as it is, or turned.
struct Extents {
  bool turned = false;
  bool panels = false;                         // the right operand is in panels
  bool direct = false;                         // the left operand is read as it is
  bool in_place = false;                       // the right operand may be read where it lies
  bool computed = false;                       // and there is work on what is read
  int64_t right_size = 1;                      // bytes of an element of the right operand in memory
  bool zeros = false;                          // some rows of the image have taps that are outside of it
  bool image = false;                          // columns, or rows of a turned contraction, are pixels
  bool left_image = false;                     // the window is the left operand, and nothing is turned
  std::optional<Slides> rows_once, once;       // of a window that slides over an image; by kCopyRows and kCopyWhole
  std::optional<Dot> dot;                      // products are of words
  bool left_words = true, right_words = true;  // with dot: need not be packed
  std::optional<TileSteps> tiles;              // words may be multiplied in tile registers
  bool left_tiles = false;                     // and the left operand need not be packed for that
  int64_t rows = 1, outer_rows = 1, columns = 1, depth = 1, outer = 1, outer_columns = 1;
};

std::optional<Slides> slides_of(const std::optional<Image>& image) {
  return image ? std::optional<Slides>({image->width, image->height}) : std::nullopt;
}

Extents extents_of(const Graph& group, const Domain& original, bool turn, const Machine& machine) {
  Extents out;
  out.turned = turn;
  const Domain given = turn ? turned(original) : original;
  const int64_t lanes = machine.target->lanes;
  out.dot = dot_of(group, given, machine);
  out.panels = is_in_panels(group, given, out.dot, turn ? kWidestPanel : kMostVectors * lanes);
  const std::optional<InPlace> right = right_in_place(group, given);
  out.in_place = right && !given.n.empty() && right->access.strides[given.n.back()] == 1;
  out.computed = right && right->computed;
  out.right_size = size_of(
      group.nodes[right ? right->access.input : group.nodes[given.contract].operands[given.right_operand()]].dtype);
  out.direct = given.operands[given.contract][1 - given.right_operand()].is_direct();
  if (out.dot) {
    out.left_words = has_words(given, given.operands[given.contract][1 - given.right_operand()], *out.dot);
    out.in_place = out.right_words = has_rows_of_words(given, *out.dot);
    if (!turn) out.tiles = tile_steps(group, given, machine, out.dot);
    const Domain::Operand& left = given.operands[given.contract][1 - given.right_operand()];
    out.left_tiles = out.tiles && has_tile_rows(given, left, *out.dot, *out.tiles);
  }
  const std::optional<FlatColumns> flat = out.panels || turn ? std::nullopt : flat_columns(given);
  const Domain& domain = flat ? flat->domain : given;
  out.image = flat.has_value() || (turn && domain.m.size() > 1);
  out.rows_once = slides_of(column_image(original, false));
  std::optional<Image> image = column_image(original, true);
  if (!image && !turn && !out.dot) {
    image = row_image(original, true);  // all of it: its pixels need no lanes of their own
    out.left_image = image.has_value();
  }
  out.once = slides_of(image);
  out.zeros = (turn || out.left_image) && image && zeros_around(original, *image);
  // Without taps along a row both are the same.
  if (out.once && out.once->width.tap < 0) out.rows_once.reset();
  const auto extent = [&](AtomId a) { return domain.atoms[a].extent; };
  if (!domain.m.empty()) out.rows = extent(domain.m.back());
  if (domain.m.size() > 1) out.outer_rows = extent(domain.m[domain.m.size() - 2]);
  if (!domain.n.empty()) out.columns = extent(domain.n.back());
  out.depth = extent_of(domain, domain.reduced);
  out.outer =
      extent_of(domain, domain.batch) * extent_of(domain, domain.m) / std::max<int64_t>(1, out.rows * out.outer_rows);
  out.outer_columns = extent_of(domain, domain.n) / std::max<int64_t>(1, out.columns);
  return out;
}

int64_t vectors_of(const Extents& e, const Machine& machine) {
  const int64_t lanes = machine.target->lanes;
  return std::max<int64_t>(1, (e.columns + lanes - 1) / lanes);
}

// Elements of the copied image of a block of so many columns, and so much depth.
int64_t image_elements(const Slides& image, int64_t columns, int64_t depth) {
  const Slide &width = image.width, &height = image.height;
  const int64_t taps = width.taps * height.taps, planes = width.planes * height.planes;
  const int64_t rows = std::min(height.outputs, std::max<int64_t>(1, columns / width.outputs));
  const int64_t row = height.output < 0 ? columns + width.halo() : width.positions;
  return (depth + taps - 1) / taps * planes * row * (rows + height.halo());
}

// Whether rows are pixels of an image, of which a block has some rows; of a left operand, where that is copied.
bool blocks_have_rows(const Extents& e, bool copied) {
  return (e.turned && e.image) || (e.left_image && copied && e.once->height.output >= 0);
}

// The extents that nc may split: pixels where there are some.
int64_t split_extent(const Extents& e, bool copied = true) {
  return blocks_have_rows(e, copied) ? e.rows * e.outer_rows : e.columns * e.outer_columns;
}

// Into how many tasks the rows can be divided.
bool divides_rows(const Extents& e, int64_t tasks) {
  if (e.outer_rows > 1) return tasks <= e.outer_rows;
  return e.rows % tasks == 0 && e.rows / tasks >= 4;
}

// Whether tiles may have so many vectors. Those of the only panel are split evenly, so that some numbers mean another.
bool fits_columns(const Extents& e, int64_t nv, const Machine& machine) {
  const int64_t vectors = vectors_of(e, machine), tiles = (vectors + nv - 1) / nv;
  if (!e.panels) return nv <= vectors;
  return e.outer_columns > 1 ? vectors % nv == 0 : (vectors + tiles - 1) / tiles == nv;
}

int64_t right_bytes(const Extents& e) {
  return e.columns * e.outer_columns * e.depth * e.right_size;
}

// Whether the right operand is always prefetched: one of several panels, which is a weight, that does not fit the first
// cache. A program of many kernels finds it in memory. A search calls one kernel again and again, finds the weight in a
// cache, and sees neither the gain there nor a loss.
bool must_prefetch(const Extents& e, const Machine& machine) {
  return e.panels && e.outer_columns > 1 && e.depth > kShortestFetch && right_bytes(e) > machine.l1_bytes;
}

// Elements of a thread's scratch.
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

// Whether tiles of sums are of whole tile registers, or of a part of one where there is no more.
bool legal_in_tiles(const Schedule& s, const Extents& e, const Machine& machine) {
  const bool reads_right = s[kPackB] == 0 && e.right_words;
  return e.tiles && !e.turned && s[kCopyImage] == kCopyTaps && s[kMr] % kTileRegisterRows == 0 &&
         (s[kMr] == kTileRegisterRows || e.rows > kTileRegisterRows) && s[kNv] <= kMostTileVectors &&
         (s[kPackA] != 0 || e.left_tiles) && (!reads_right || e.columns % (s[kNv] * machine.target->lanes) == 0);
}

// Whether the accumulators of a micro-kernel of vectors fit the registers, and are enough of them.
bool legal_in_vectors(const Schedule& s, const Extents& e, const Machine& machine) {
  const int64_t registers = machine.target->vector_registers, vectors = vectors_of(e, machine);
  const int64_t mr = std::min(s[kMr], e.rows), nv = s[kNv];
  if (s[kMr] > kMostVectorRows || mr * nv + nv + 1 > registers) return false;
  if (!e.turned && !e.left_image && s[kMr] > e.rows) return false;
  // Small micro-kernels are bound by the latency of their additions; they are for results with few rows or columns.
  return mr * nv >= registers / 2 || mr * 2 > e.rows || mr >= 14 || nv * 2 > vectors;
}

// e: of the contraction; bytes: of an element.
bool legal_contract(const Schedule& s, const Extents& e, const Machine& machine, int64_t bytes) {
  if (!(s[kMatrix] == kNoMatrix ? legal_in_vectors(s, e, machine) : legal_in_tiles(s, e, machine))) return false;
  const int64_t nv = s[kNv];
  if (!fits_columns(e, nv, machine)) return false;
  if (s[kNc] != 0 && s[kNc] >= split_extent(e, s[kCopyImage] != 0)) return false;
  if (s[kRowTasks] > 1 && !divides_rows(e, s[kRowTasks])) return false;
  if (s[kColumnTasks] > vectors_of(e, machine) * e.outer_columns) return false;
  if (s[kSkipPadding] && !(e.zeros && s[kCopyImage])) return false;
  if (e.turned && s[kPackB]) return false;
  if (e.turned || e.left_image) {
    if (s[kCopyImage] && s[kPackA]) return false;
    if (!(e.direct && e.left_words) && !s[kCopyImage] && !s[kPackA]) return false;  // the same as with it
    // Tiles that the columns do not fill are split as one row of them.
    const bool one_row = s[kColumnTasks] == 1 && e.outer_columns == 1 && e.in_place;
    if (e.turned && !one_row && e.columns % (nv * machine.target->lanes) != 0) return false;
  } else if (s[kCopyImage] && !s[kPackB]) {
    return false;  // the same as with it
  }
  if (s[kPrefetch] != 0 && (s[kPackB] || !e.in_place || s[kPrefetch] >= e.depth)) return false;
  if (!s[kPackB] && s[kPrefetch] < kShortestFetch && must_prefetch(e, machine)) return false;
  if (scratch_of(s, e) * bytes > kScratchLimit) return false;
  const int64_t tasks = s[kRowTasks] * s[kColumnTasks];
  if (tasks > 1 && tasks > 4 * s[kThreads]) return false;
  return tasks * e.outer >= s[kThreads];
}

// Those of the points that are legal, once each.
std::vector<Point> legal_ones(const Space& space, const std::vector<Point>& points) {
  std::vector<Point> kept;
  for (const Point& point : points)
    if (space.is_legal(point) && std::find(kept.begin(), kept.end(), point) == kept.end()) kept.push_back(point);
  return kept;
}

void add_seeds_of(Space& space, const Extents& e, const Machine& machine, int64_t bytes) {
  const int64_t threads = machine.threads;
  const auto first = [&](Choice choice, int64_t wanted) { return largest_up_to(values_of(space, choice), wanted); };
  const auto vectors = [&](int64_t wanted) {
    int64_t most = 1;  // an axis may have values for the other way
    for (const int64_t nv : values_of(space, kNv))
      if (nv <= wanted && nv > most && fits_columns(e, nv, machine)) most = nv;
    return most;
  };
  const bool many = e.outer >= threads;  // batch elements enough for the threads
  const int64_t column_tasks = many ? 1 : first(kColumnTasks, threads);
  const int64_t row_tasks = many || column_tasks >= threads ? 1 : first(kRowTasks, threads);
  // Work on panels is repeated for few rows only.
  const bool few = e.rows <= 32 && e.right_words;
  const int64_t pack_b = few || e.turned || (e.panels && !e.computed) ? 0 : 1;
  // Operands that are larger than the second cache come from memory in a program of many kernels, and late.
  const bool is_large = right_bytes(e) > machine.l2_bytes;
  const bool copies = e.once && !(e.left_image && e.direct);
  const bool left = e.turned || e.left_image;  // what is copied, if anything is
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
      if (e.turned && nv == 3 && vectors(nv) < nv) continue;  // those of two vectors may be higher
      if (kc == 0 ? e.depth > 1536 : e.depth <= 1024) continue;
      // A packed or copied image should stay in the second cache.
      const int64_t depth = std::min(e.depth, int64_t{1024});
      const int64_t in_block = e.once ? image_elements(*e.once, 768, depth) : depth * 768;
      const int64_t nc = !e.image && !(e.left_image && copies) ? 0 : in_block * bytes <= machine.l2_bytes ? 768 : 192;
      Chosen seed = {{kMr, first(kMr, mr)},
                     {kNv, vectors(nv)},
                     {kKc, kc},
                     {kNc, nc < split_extent(e) ? nc : 0},
                     {kPackB, e.once && !left ? 1 : pack_b},
                     {kPackA, e.left_words || (e.turned && e.once) ? 0 : 1},
                     {kRowTasks, row_tasks},
                     {kColumnTasks, column_tasks},
                     {kPrefetch, prefetch},
                     {kThreads, threads}};
      if (in_tiles) {
        seed.emplace_back(kMatrix, 1 + static_cast<int64_t>(e.tiles->matrix));
        if (!e.left_tiles) seed.emplace_back(kPackA, 1);
      }
      if (copies && !in_tiles) seed.emplace_back(kCopyImage, kCopyWhole);
      if (copies && e.zeros) seed.emplace_back(kSkipPadding, 1);
      if (e.turned) {
        seed.emplace_back(kTurnTiles, 1);
        if (!e.direct && !e.once) seed.emplace_back(kPackA, 1);
      }
      add_seed(space, seed);
    }
}

// Of the lanes that a contraction computes with, the share that is used where the columns are those of one atom, or of
// a copied image.
double used_lanes(const Extents& e, const Machine& machine) {
  const int64_t lanes = machine.target->lanes;
  int64_t used = e.columns, all = e.columns;
  if (e.once && !e.turned && !e.left_image && e.once->height.output >= 0) {
    used = e.once->width.outputs * e.once->height.outputs;
    all = e.once->width.positions * (e.once->height.outputs - 1) + e.once->width.outputs;
  }
  return static_cast<double>(used) / static_cast<double>((all + lanes - 1) / lanes * lanes);
}

// At most eight seeds: of the ways to compute the contraction in turn, two at a time, the one that uses more lanes
// first; the first legal point where no seed is legal.
void add_contract_seeds(Space& space, const std::vector<Extents>& ways, const Machine& machine, int64_t bytes) {
  std::vector<std::vector<Point>> found;
  for (const Extents& way : ways) {
    space.seeds.clear();
    add_seeds_of(space, way, machine, bytes);
    found.push_back(legal_ones(space, space.seeds));
  }
  if (ways.size() > 1 && used_lanes(ways[1], machine) > used_lanes(ways[0], machine)) std::swap(found[0], found[1]);
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

// As it is, and turned where the left operand is in panels, which columns of vectors can be read from.
std::vector<Extents> ways_of(const Graph& group, const Domain& domain, const Machine& machine) {
  std::vector<Extents> ways = {extents_of(group, domain, false, machine)};
  if (domain.m.empty() || domain.n.empty()) return ways;
  const Extents turn = extents_of(group, domain, true, machine);
  const int64_t lanes = machine.target->lanes;
  if (turn.panels && turn.columns * 2 >= lanes && (turn.columns % lanes == 0 || turn.outer_columns == 1))
    ways.push_back(turn);
  return ways;
}

}  // namespace

Space space_contract(const Graph& group, const Domain& domain, const Machine& machine) {
  const std::vector<Extents> ways = ways_of(group, domain, machine);
  const bool parallel = machine.threads > 1;
  const auto any = [&](const auto& admits) { return std::any_of(ways.begin(), ways.end(), admits); };
  const Extents& e = ways[0];
  int64_t covers = 1;  // a whole row of an image may be computed with the first mr that is as large
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
      e.panels && !e.computed            ? axis(kPackB, {0})
      : e.right_words || ways.size() > 1 ? axis(kPackB, {1, 0})
                                         : axis(kPackB, {1}),
      e.left_words || ways.size() > 1 ? axis(kPackA, {0, 1}) : axis(kPackA, {1}),
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
  if (ways.size() > 1) space.axes.push_back(axis(kTurnTiles, {0, 1}));
  if (e.tiles)
    space.axes.emplace_back(kMatrix, std::vector<int64_t>{kNoMatrix, 1 + static_cast<int64_t>(e.tiles->matrix)});
  if (any([](const Extents& w) { return w.zeros; })) space.axes.push_back(axis(kSkipPadding, {0, 1}));
  add_listed_axes(space, machine);
  const Node& product = group.nodes[domain.contract];
  const int64_t bytes = size_of(e.dot ? group.nodes[product.operands[0]].dtype : product.dtype);
  space.legal = [=](const Schedule& s) {
    return legal_contract(s, ways[static_cast<size_t>(s[kTurnTiles])], machine, bytes);
  };
  add_contract_seeds(space, ways, machine, bytes);
  return space;
}

}  // namespace wl

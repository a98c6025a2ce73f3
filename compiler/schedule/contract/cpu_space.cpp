#include <algorithm>

#include "compiler/plan/flat.h"
#include "compiler/plan/image.h"
#include "compiler/schedule/axes.h"
#include "compiler/schedule/contract/contract.h"

namespace wl {
namespace {

// The largest scratch of a thread. Larger packed panels cost more time than they save.
constexpr int64_t kScratchLimit = 64 << 20;
// Vectors across the columns of the widest micro-kernels.
constexpr int64_t kMostVectors = 4;

struct Slides {
  Slide width, height;
};

struct Extents {
  bool panels = false;                    // the right operand is in panels
  bool in_place = false;                  // the right operand may be read as it is
  bool image = false;                     // columns are pixels
  std::optional<Slides> rows_once, once;  // of a window that slides over an image; by kCopyRows and kCopyWhole
  int64_t rows = 1, columns = 1, depth = 1, outer = 1, outer_columns = 1;
};

std::optional<Slides> slides_of(const Domain& domain, bool along_rows) {
  const std::optional<Image> image = column_image(domain, along_rows);
  return image ? std::optional<Slides>({image->width, image->height}) : std::nullopt;
}

// Whether the right operand has the order of packed panels in memory: the columns of a row are neighbours, and the next
// row follows. There is nothing to pack then.
bool is_in_panels(const Domain& domain, const Machine& machine) {
  if (domain.n.empty() || domain.reduced.empty()) return false;
  const Domain::Operand& right = domain.operands[domain.contract][domain.right_operand()];
  const int64_t columns = domain.atoms[domain.n.back()].extent;
  return right.is_direct() && columns <= kMostVectors * machine.target->lanes &&
         right.access.strides[domain.n.back()] == 1 && right.access.strides[domain.reduced.back()] == columns;
}

Extents extents_of(const Domain& original, const Machine& machine) {
  Extents out;
  out.panels = is_in_panels(original, machine);
  const Domain::Operand& right = original.operands[original.contract][original.right_operand()];
  out.in_place = right.is_direct() && !original.n.empty() && right.access.strides[original.n.back()] == 1;
  const std::optional<FlatColumns> flat = out.panels ? std::nullopt : flat_columns(original);
  const Domain& domain = flat ? flat->domain : original;
  out.image = flat.has_value();
  out.rows_once = slides_of(original, false);
  out.once = slides_of(original, true);
  // Without taps along a row both are the same.
  if (out.once && out.once->width.tap < 0) out.rows_once.reset();
  const auto extent = [&](AtomId a) { return domain.atoms[a].extent; };
  if (!domain.m.empty()) out.rows = extent(domain.m.back());
  if (!domain.n.empty()) out.columns = extent(domain.n.back());
  out.depth = extent_of(domain, domain.reduced);
  out.outer = extent_of(domain, domain.batch) * extent_of(domain, domain.m) / std::max<int64_t>(1, out.rows);
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

// e: of the contraction; bytes: of an element.
bool legal_contract(const Schedule& s, const Extents& e, const Machine& machine, int64_t bytes) {
  const int64_t registers = machine.target->vector_registers;
  const int64_t vectors = vectors_of(e, machine);
  const int64_t mr = s[kMr], nv = s[kNv];
  if (mr * nv + nv + 1 > registers) return false;
  // Small micro-kernels are bound by the latency of their additions; they are for results with few rows or columns.
  if (mr * nv < registers / 2 && mr * 2 <= e.rows && mr < 14 && nv * 2 <= vectors) return false;
  const int64_t kc = s[kKc] == 0 ? e.depth : s[kKc];
  const int64_t columns = (e.columns * e.outer_columns + s[kColumnTasks] - 1) / s[kColumnTasks];
  const int64_t nc = s[kNc] == 0 ? columns : std::min(columns, s[kNc]);
  const int64_t rows = e.rows / s[kRowTasks];
  if (s[kCopyImage] && !s[kPackB]) return false;  // the same as with it
  if (s[kPrefetch] != 0 && s[kPackB]) return false;
  const std::optional<Slides>& image = s[kCopyImage] == kCopyWhole ? e.once : e.rows_once;
  const int64_t right = s[kCopyImage] ? image_elements(*image, nc, kc) : s[kPackB] ? nc * kc : 0;
  int64_t scratch = right + (s[kPackA] ? rows * kc : 0);
  if (kc < e.depth) scratch += rows * nc;
  if (scratch * bytes > kScratchLimit) return false;
  const int64_t tasks = s[kRowTasks] * s[kColumnTasks];
  if (tasks > 1 && tasks > 4 * s[kThreads]) return false;
  return tasks * e.outer >= s[kThreads];
}

// Keeps at most eight of the seeds that are legal; the first legal point where no seed is.
void keep_legal_seeds(Space& space) {
  std::vector<Point> kept;
  for (const Point& seed : space.seeds)
    if (space.is_legal(seed) && std::find(kept.begin(), kept.end(), seed) == kept.end() && kept.size() < 8)
      kept.push_back(seed);
  if (kept.empty())  // no seed suits the extents
    space.enumerate([&](const Point& point) {
      kept.push_back(point);
      return false;
    });
  space.seeds = kept;
}

void add_contract_seeds(Space& space, const Extents& e, const Machine& machine, int64_t bytes) {
  const int64_t threads = machine.threads;
  const auto first = [&](Choice choice, int64_t wanted) { return largest_up_to(values_of(space, choice), wanted); };
  const bool many = e.outer >= threads;  // batch elements enough for the threads
  const int64_t column_tasks = many ? 1 : first(kColumnTasks, threads);
  const int64_t row_tasks = many || column_tasks >= threads ? 1 : first(kRowTasks, threads);
  const int64_t pack_b = e.rows <= 32 || e.panels ? 0 : 1;
  // Operands that are larger than the second cache come from memory in a program of many kernels, and late.
  const bool is_large = e.columns * e.outer_columns * e.depth * bytes > machine.l2_bytes;
  const int64_t prefetch = pack_b == 0 && !e.once && is_large ? first(kPrefetch, 64) : 0;
  for (const auto& [mr, nv] : {std::pair<int64_t, int64_t>{9, 3},
                               {8, 3},
                               {14, 2},
                               {12, 2},
                               {6, 4},
                               {6, 2},
                               {4, 3},
                               {4, 2},
                               {4, 1},
                               {2, 1},
                               {1, 1}})
    for (int64_t kc : {int64_t{0}, int64_t{1024}}) {
      if (kc == 0 ? e.depth > 1536 : e.depth <= 1024) continue;
      // A packed or copied image should stay in the second cache.
      const int64_t depth = std::min(e.depth, int64_t{1024});
      const int64_t in_block = e.once ? image_elements(*e.once, 768, depth) : depth * 768;
      const int64_t nc = !e.image ? 0 : in_block * bytes <= machine.l2_bytes ? 768 : 192;
      Chosen seed = {{kMr, first(kMr, mr)},
                     {kNv, first(kNv, nv)},
                     {kKc, kc},
                     {kNc, e.image && nc < e.columns * e.outer_columns ? nc : 0},
                     {kPackB, e.once ? 1 : pack_b},
                     {kRowTasks, row_tasks},
                     {kColumnTasks, column_tasks},
                     {kPrefetch, prefetch},
                     {kThreads, threads}};
      if (e.once) seed.emplace_back(kCopyImage, kCopyWhole);
      add_seed(space, seed);
    }
  keep_legal_seeds(space);
}

}  // namespace

Space space_contract(const Graph& group, const Domain& domain, const Machine& machine) {
  const Extents e = extents_of(domain, machine);
  const int64_t vectors = vectors_of(e, machine);
  const bool parallel = machine.threads > 1;
  const auto divides = [&](int64_t t) { return e.rows % t == 0 && e.rows / t >= 4; };
  Space space;
  space.kind = "contract";
  space.axes = {
      axis(kMr, {1, 2, 4, 6, 8, 9, 12, 14}, [&](int64_t m) { return m <= e.rows; }),
      axis(kNv, {1, 2, 3, 4}, [&](int64_t n) { return n <= vectors && (!e.panels || vectors % n == 0); }),
      axis(kKc, {0, 1024, 768, 512, 256}, [&](int64_t k) { return k == 0 || k < e.depth; }),
      axis(kNc, {0, 768, 192}, [&](int64_t n) { return n == 0 || n < e.columns * e.outer_columns; }),
      e.panels ? axis(kPackB, {0}) : axis(kPackB, {1, 0}),
      axis(kPackA, {0, 1}),
      axis(kRowTilesOutermost, {1, 0}),
      axis(kRowTasks, {1, 2, 4, 8}, [&](int64_t t) { return t == 1 || (parallel && divides(t)); }),
      axis(kColumnTasks, {1, 2, 4, 8},
           [&](int64_t t) { return t == 1 || (parallel && t <= vectors * e.outer_columns); }),
      threads_axis(machine),
      compiler_axis(machine),
      axis(kPrefetch, {0, 64, 32, 128}, [&](int64_t p) { return p == 0 || (e.in_place && p < e.depth); }),
  };
  Axis copies(kCopyImage, {kCopyTaps});
  if (e.rows_once) copies.values.push_back(kCopyRows);
  if (e.once) copies.values.push_back(kCopyWhole);
  if (copies.values.size() > 1) space.axes.push_back(copies);
  add_listed_axes(space, machine);
  const int64_t bytes = size_of(group.nodes[domain.contract].dtype);
  space.legal = [=](const Schedule& s) { return legal_contract(s, e, machine, bytes); };
  add_contract_seeds(space, e, machine, bytes);
  return space;
}

}  // namespace wl

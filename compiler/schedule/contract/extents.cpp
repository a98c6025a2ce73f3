#include "compiler/schedule/contract/extents.h"

#include <algorithm>

#include "compiler/domain/merged_columns.h"
#include "compiler/schedule/contract/contract.h"
#include "compiler/schedule/contract/in_place.h"

namespace wl {
namespace {

// The most columns of a panel that a contraction with exchanged rows and columns (turn_tiles) reads in place, a part at
// a time. A row of f32 of such a panel is at most one page of memory (4 KiB).
constexpr int64_t kWidestPanel = 1024;

std::optional<Slides> slides_of(const std::optional<Image>& image) {
  return image ? std::optional<Slides>({image->width, image->height}) : std::nullopt;
}

Extents extents_of(const Graph& group, const Domain& original, bool turn, bool widen, const Machine& machine) {
  Extents out;
  out.turned = turn;
  out.widened = widen;
  const Domain given = turn ? turned(original) : original;
  const int64_t lanes = machine.target->lanes;
  out.dot = dot_of(group, given, machine, widen);
  out.panels = is_in_panels(group, given, out.dot, turn ? kWidestPanel : kMostVectors * lanes);
  const std::optional<InPlace> right = right_in_place(group, given);
  out.in_place = right && !given.n.empty() && right->access.strides[given.n.back()] == 1;
  out.computed = right && right->computed;
  out.right_size = size_of(
      group.nodes[right ? right->access.input : group.nodes[given.contract].operands[given.right_operand()]].dtype);
  const int left_side = 1 - given.right_operand();
  const Domain::Operand& left = given.operands[given.contract][left_side];
  out.direct = left.is_direct();
  const Node& product = group.nodes[given.contract];
  out.packed_size = size_of(widen ? DType::f32 : out.dot ? group.nodes[product.operands[0]].dtype : product.dtype);
  out.left_narrow = (!out.dot || widen) && size_of(group.nodes[product.operands[left_side]].dtype) < 4;
  if (out.dot) {
    out.left_words = !widen && has_words(given, left, *out.dot);
    out.in_place = out.right_words = has_rows_of_words(given, *out.dot);
    if (!turn && !widen) out.tiles = tile_steps(group, given, machine, out.dot);
    out.left_tiles = out.tiles && has_tile_rows(given, left, *out.dot, *out.tiles);
  }
  const std::optional<MergedColumns> merged = out.panels || turn ? std::nullopt : merged_columns(given);
  const Domain& domain = merged ? merged->domain : given;
  out.image = merged.has_value() || (turn && domain.m.size() > 1);
  out.rows_once = slides_of(column_image(original, false));
  std::optional<Image> image = column_image(original, true);
  if (!image && !turn && !out.dot) {
    // The left operand's image is only copied whole (kCopyWhole): its pixels are rows, and rows never include a halo.
    image = row_image(original, true);
    out.left_image = image.has_value();
  }
  out.once = slides_of(image);
  out.zeros = (turn || out.left_image) && image && zeros_around(original, *image);
  // If the window has no taps along a row of the image, kCopyRows and kCopyWhole copy the same, so kCopyRows is not
  // offered.
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

// Returns the values that `widen` may have, the faster one first. True is possible for floats (bf16) that could be
// multiplied as words, with or without exchanged rows and columns. If the machine does not multiply words of these
// dtypes, true is the only value.
std::vector<bool> widths_of(const Graph& group, const Domain& domain, const Machine& machine) {
  const Node& product = group.nodes[domain.contract];
  const DType a = group.nodes[product.operands[0]].dtype, b = group.nodes[product.operands[1]].dtype;
  const bool sides = !domain.m.empty() && !domain.n.empty();
  if (!is_float(a) ||
      !(dot_of(group, domain, machine, false) || (sides && dot_of(group, turned(domain), machine, false))))
    return {false};
  const Arithmetic& rates = machine.target->arithmetic;
  const double rate = std::max(rates.dots(a, b), rates.matrices(a, b));
  if (rate == 0) return {true};
  return {rate < 1, rate >= 1};
}

}  // namespace

std::vector<Extents> ways_of(const Graph& group, const Domain& domain, const Machine& machine) {
  std::vector<Extents> ways;
  const int64_t lanes = machine.target->lanes;
  for (const bool widen : widths_of(group, domain, machine)) {
    ways.push_back(extents_of(group, domain, false, widen, machine));
    if (domain.m.empty() || domain.n.empty()) continue;
    const Extents turn = extents_of(group, domain, true, widen, machine);
    if (turn.panels && turn.columns * 2 >= lanes && (turn.columns % lanes == 0 || turn.outer_columns == 1))
      ways.push_back(turn);
  }
  return ways;
}

}  // namespace wl

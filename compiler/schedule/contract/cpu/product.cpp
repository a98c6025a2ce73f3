#include "compiler/schedule/contract/cpu/product.h"

#include <algorithm>

#include "compiler/schedule/contract/contract.h"
#include "compiler/schedule/contract/in_place.h"

namespace wl {
namespace {

// Returns the image that is copied, if any: the image over which the right operand's window slides or, if the right
// operand has no window and turn_tiles is off, the image over which the left operand's window slides.
std::optional<Image> copied_image(const Domain& domain, const Schedule& schedule) {
  if (schedule[kCopyImage] == kCopyTaps) return std::nullopt;
  const bool along_rows = schedule[kCopyImage] == kCopyWhole;
  std::optional<Image> image = column_image(domain, along_rows);
  return image || schedule[kTurnTiles] != 0 ? image : row_image(domain, along_rows);
}

// Whether the right operand B is packed: the schedule demands it, B cannot be read in place, or B's columns are not
// contiguous.
bool packs_right(const Graph& group, const Domain& domain, const std::optional<Dot>& dot, const Schedule& schedule,
                 int lanes) {
  if (schedule[kPackB] != 0) return true;
  if (dot) return !has_rows_of_words(domain, *dot);
  const std::optional<InPlace> right = right_in_place(group, domain);
  return !right || (lanes > 1 && right->access.strides[domain.n.back()] != 1);
}

// Merges the loops over an image's rows and pixels into one loop of columns, if B is packed row by row. Returns nullopt
// if B is not packed, has no such loops, or is stored in panels, whose layout keeps the two loops apart.
std::optional<MergedColumns> packed_columns(const Graph& group, const Domain& domain, const std::optional<Dot>& dot,
                                            const Schedule& schedule, int lanes) {
  if (domain.n.empty() || !packs_right(group, domain, dot, schedule, lanes)) return std::nullopt;
  return is_in_panels(group, domain, dot, kMostVectors * lanes) ? std::nullopt : merged_columns(domain);
}

// Returns the atoms of K, in the order of the loops. The words of a step in tile registers must be neighbours in packed
// copies, so the loop over them becomes the innermost one.
std::vector<AtomId> ordered_k(const CpuProduct& product) {
  std::vector<AtomId> atoms = product.domain.reduced;
  if (!product.tiles) return atoms;
  const auto deep = std::find(atoms.begin(), atoms.end(), product.tiles->atom);
  const auto is_long = [&](AtomId atom) {
    const int64_t extent = product.domain.atoms[atom].extent;
    return extent > (product.dot->k_atom == atom ? product.dot->group : 1);
  };
  if (deep != atoms.end() && std::any_of(deep + 1, atoms.end(), is_long)) std::rotate(deep, deep + 1, atoms.end());
  return atoms;
}

}  // namespace

CpuProduct::CpuProduct(const Graph& of, const Domain& given, const Schedule& schedule, const Machine& on)
    : group(of),
      machine(on),
      turned(schedule[kTurnTiles] != 0 ? std::optional(wl::turned(given)) : std::nullopt),
      whole(turned ? *turned : given),
      image(copied_image(given, schedule)),
      slides_on_rows(image && image->operand != given.right_operand()),
      dot(slides_on_rows ? std::nullopt : dot_of(group, whole, machine, schedule[kWiden] != 0, image)),
      tiles(schedule[kMatrix] != kNoMatrix ? tile_steps(group, whole, machine, dot) : std::nullopt),
      merged(!image && !turned && !tiles ? packed_columns(group, whole, dot, schedule, machine.target->lanes)
                                         : std::nullopt),
      zeros(schedule[kSkipPadding] != 0 && rows_are_pixels() && image ? zeros_around(given, *image) : std::nullopt),
      domain(merged ? merged->domain : whole),
      dtype(group.nodes[domain.contract].dtype),
      row_atom(domain.m.empty() ? -1 : domain.m.back()),
      column_atom(domain.n.empty() ? -1 : domain.n.back()),
      outer_row_atom(domain.m.size() > 1 ? domain.m[domain.m.size() - 2] : -1),
      k_atoms(ordered_k(*this)) {
  if (is_float(dtype) && size_of(dtype) < 4) dtype = DType::f32;
  if (row_atom >= 0) rows = domain.atoms[row_atom].extent;
  if (column_atom >= 0) columns = domain.atoms[column_atom].extent;
  if (image && !slides_on_rows) image->channel = -1;
  if (merged) {
    height = merged->height;
    width = merged->width;
  } else if (image && image->height.output >= 0) {
    height = image->height.output;
    width = image->width.output;
    // The columns include the halo (padding) between two rows of the copy.
    if (columns_are_pixels()) columns = (image->height.outputs - 1) * image->width.positions + image->width.outputs;
  }
  if (rows_are_pixels() && outer_row_atom >= 0) {
    height = outer_row_atom;
    width = row_atom;
  }
  lanes = columns > 1 ? machine.target->lanes : 1;
  a.position = 1 - domain.right_operand();
  b.position = domain.right_operand();
  for (CpuSide* side : {&a, &b}) {
    const Domain::Operand& operand = domain.operands[domain.contract][side->position];
    side->direct = operand.is_direct();
    if (side->direct) side->access = operand.access;
    side->words = dot && has_words(domain, operand, *dot);
  }
  a.packed = schedule[kPackA] != 0 || !a.direct || (dot && !a.words) || widens() || (image && rows_are_pixels()) ||
             (tiles && !has_tile_rows(domain, domain.operands[domain.contract][a.position], *dot, *tiles));
  b.packed = merged || packs_right(group, domain, dot, schedule, lanes) || (image && !rows_are_pixels());
  if (const auto right = right_in_place(group, domain); right && right->computed && !b.packed) {
    b.computed = true;
    b.access = right->access;
  }
}

absl::Status CpuProduct::check(const Schedule& schedule) const {
  if (schedule[kCopyImage] != kCopyTaps && !image)
    return invalid("copy_image needs an operand whose window slides over an image");
  if (schedule[kSkipPadding] != 0 && !zeros)
    return invalid("skip_padding needs a copied image of which whole rows are padding");
  if (widens() && (image || schedule[kPackB] != 0))
    return invalid("widen excludes copy_image and pack_b, which copy words");
  if (turned && (domain.m.empty() || domain.n.empty()))
    return invalid("turn_tiles needs a product with rows and columns");
  if (turned && lanes != machine.target->lanes) return invalid("turn_tiles needs more than one column");
  if (schedule[kMatrix] == kNoMatrix) return absl::OkStatus();
  const bool other = image || turned || schedule[kMr] > kMostTileRows || schedule[kNv] > kMostTileVectors;
  if (!tiles || tiles->matrix != matrix_of(schedule) || other)
    return invalid("the operands or the tile do not fit the matrix instruction ",
                   value_text(kMatrix, schedule[kMatrix]));
  return absl::OkStatus();
}

bool CpuProduct::has_heavy_epilogue() const {
  int cost = 0;
  for (NodeId id = domain.contract + 1; id < static_cast<NodeId>(group.nodes.size()); ++id)
    if (class_of(group.nodes[id].op) == OpClass::kElementwise && !domain.operands[id].empty())
      cost += info(group.nodes[id].op).cost;
  return cost > 8;
}

CpuLoops CpuProduct::loops() const {
  CpuLoops out;
  out.rows = rows;
  out.has_outer_rows = outer_row_atom >= 0;
  if (out.has_outer_rows) out.outer_rows = domain.atoms[outer_row_atom].extent;
  out.columns = columns;
  for (const AtomId atom : domain.n)
    if (atom != column_atom) out.outer_columns *= domain.atoms[atom].extent;
  out.lanes = lanes;
  if (height >= 0) {
    out.image_rows = whole.atoms[height].extent;
    out.image_width = whole.atoms[width].extent;
    if (image) out.image_positions = image->width.positions;
  }
  out.rows_are_pixels = height >= 0 && rows_are_pixels();
  out.columns_are_pixels = columns_are_pixels();
  out.copies_image = image.has_value();
  out.fits_tiles = tiles.has_value();
  out.cuts_anywhere = !merged && !tiles && (turned || !image) && !b.packed;
  if (!k_atoms.empty()) {
    out.depth = domain.atoms[k_atoms[0]].extent;
    out.depth_group = step_of(0);
    out.depth_words = words_of_turn(0);
    out.blocks_depth = !image || !image->is_tap(k_atoms[0]);
  }
  for (size_t i = 1; i < k_atoms.size(); ++i) out.inner_turns *= turns_of(i);
  out.packs_left = a.packed;
  out.packs_right = b.packed;
  if (widens()) out.left_group = dot->group;
  return out;
}

// Along a tap of the window, the copied image has as many planes as the image's atom has iterations; along the
// channels it has those of a block of K. If the kernel multiplies words of several narrow elements, words are counted.
CpuImageCopy image_copy_of(const CpuProduct& product, const CpuSplit& split) {
  const Image& image = *product.image;
  const std::vector<AtomId>& atoms = product.k_atoms;
  const bool has_rows = product.height >= 0;
  const int64_t halo = image.width.halo(), line = product.machine.target->lanes;
  const int64_t columns = product.rows_are_pixels() ? split.rows_per_task : split.columns_per_block;
  const int64_t positions = has_rows ? image.width.positions : columns + halo;
  const int64_t rows = has_rows ? split.image_rows_per_block + image.height.halo() : 1;
  const int64_t size = size_of(product.packed_dtype(product.image_side()));
  CpuImageCopy out;
  int64_t pitch = 1;
  out.plane_pitches.assign(atoms.size(), 0);
  const auto put = [&](const auto& which) {
    for (size_t i = atoms.size(); i-- > 0;) {
      if (out.plane_pitches[i] != 0 || !which(atoms[i])) continue;
      const bool in_blocks = i == 0 && !image.is_tap(atoms[0]);
      out.plane_pitches[i] = pitch;
      pitch *= product.turns_of(i, in_blocks ? split.k_block : image.domain.atoms[atoms[i]].extent);
    }
  };
  if (image.channel >= 0) {
    put([&](AtomId atom) { return atom == image.channel; });
    put([&](AtomId atom) { return !image.is_tap(atom); });
    // Pixels whose distance is a multiple of 512 bytes would share few cache sets, so they are padded.
    if (pitch * size % 512 == 0) pitch += line;
  }
  out.position_pitch = pitch;
  out.row_pitch = positions * out.position_pitch;
  // Planes begin at a multiple of a vector. Their distance is no multiple of 4096 bytes, as they would then share cache
  // sets.
  pitch = (rows * out.row_pitch + line - 1) / line * line;
  if (pitch * size % 4096 == 0) pitch += line;
  const int64_t plane = pitch;
  put([](AtomId) { return true; });
  // The last panel may read beyond the last plane, so the buffer has room behind that plane.
  const int64_t reach =
      product.rows_are_pixels() ? 0 : columns + (has_rows ? image.height.halo() * out.row_pitch : 0) + halo;
  out.elements = pitch + std::max<int64_t>(0, reach - plane);
  return out;
}

}  // namespace wl

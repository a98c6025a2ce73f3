// Contractions on CPUs that copy an image to scratch. The operand that is a window sliding over the image is read from
// the copy.
#include <algorithm>
#include <utility>

#include "compiler/schedule/contract/cpu/lowering.h"

namespace wl {

// Whether elements along an atom are neighbours in the copied image, so that open_planes() opens no loop over the
// atom.
bool CpuContract::is_inner(AtomId atom) const {
  return atom == product_.image->channel || (product_.dot && atom == product_.dot->k_atom);
}

// Opens loops over the planes and channels of the copy, except over atoms whose elements are neighbours in the copy.
// Sets `at` to the place inside these loops, and advances `offset` to the plane.
void CpuContract::open_planes(const Place& place, int64_t k_extent, Place& at, Affine& offset) {
  at = place;
  for (size_t i = 0; i < product_.k_atoms.size(); ++i) {
    const AtomId atom = product_.k_atoms[i];
    if (is_inner(atom)) continue;
    const bool blocked = i == 0 && !product_.image->is_tap(atom);
    out_.open_loop(k_vars_[i], {fixed(blocked ? k_extent : product_.image->domain.atoms[atom].extent)});
    at[atom] = sum(at[atom], affine(k_vars_[i]));
  }
  for (size_t i = product_.k_atoms.size(); i-- > 0;)
    if (!is_inner(product_.k_atoms[i])) offset = sum(offset, affine(k_vars_[i], copy_.plane_pitches[i]));
}

// Copies the part of the image that this block reads, with the elementwise work on it done. Each copied tile is a plane
// or, if channels are innermost in memory, a row.
void CpuContract::copy_image(const Place& place, int64_t k_extent) {
  const Domain& domain = product_.image->domain;
  Place at;
  Affine offset;
  open_planes(place, k_extent, at, offset);
  const AtomId width = product_.image->width.output, channel = product_.image->channel;
  // Upper bounds of the number of image rows from the first row that this block reads to the end of the image. If the
  // image has no loop over rows, upper bounds of the number of positions instead.
  std::vector<Affine> left;
  int64_t rows = 1;
  at[width] = product_.height >= 0         ? fixed(0)
              : product_.rows_are_pixels() ? first_row_
                                           : sum(fixed(0), first_panel_, split_.nr);
  if (product_.height >= 0) {
    rows = split_.image_rows_per_block + product_.image->height.halo();
    at[product_.height] = first_image_row_;
    if (image_rows_left().size() > 1) left = {sum(fixed(product_.image->height.positions), first_image_row_, -1)};
  } else {
    left = {sum(fixed(product_.image->width.positions), at[width], -1)};
  }
  const bool each_row = channel >= 0 && product_.height >= 0;
  if (each_row) {
    left.push_back(fixed(rows));
    out_.open_loop(image_row_var_, std::exchange(left, {}));
    at[product_.height] = sum(at[product_.height], affine(image_row_var_));
    offset = sum(offset, affine(image_row_var_, copy_.row_pitch));
  }
  const int64_t positions = copy_.row_pitch / copy_.position_pitch;
  const int64_t channels = channel == product_.k_atoms[0] ? k_extent : channel >= 0 ? domain.atoms[channel].extent : 1;
  const int64_t across = channel >= 0 ? channels : positions, down = channel >= 0 ? positions : rows;
  std::vector<std::vector<Affine>> bound;
  if (!left.empty()) bound = (channel >= 0 || product_.height >= 0) ? std::vector{left, {}} : std::vector{{}, left};
  const int lanes = across > 1 ? product_.machine.target->lanes : 1;
  const auto part = [&](Place first) {
    const TileLoop rows_loop{channel >= 0 ? width : product_.height, down},
        columns_loop{channel >= 0 ? channel : width, across};
    return TileExpr{product_.group, domain, out_, std::move(first), {rows_loop, columns_loop}, lanes, bound, true};
  };
  if (product_.dot) {
    const size_t words =
        static_cast<size_t>(std::ranges::find(product_.k_atoms, product_.dot->k_atom) - product_.k_atoms.begin());
    const int64_t elements = words == 0 ? k_extent : domain.atoms[product_.dot->k_atom].extent;
    each_word(k_vars_[words], elements, [&](const Affine& turn, int64_t full) {
      Place first = at;
      first[product_.dot->k_atom] = sum(first[product_.dot->k_atom], turn, product_.dot->group);
      store_words(product_.image_side(), part(std::move(first)), full, sum(offset, turn, copy_.plane_pitches[words]),
                  copy_.row_pitch);
    });
  } else {
    store_packed(product_.image_side(), part(at), std::move(offset),
                 channel >= 0 ? copy_.position_pitch : copy_.row_pitch);
  }
  if (each_row) out_.close_loop();
  for (const AtomId atom : product_.k_atoms)
    if (!is_inner(atom)) out_.close_loop();
}

// Opens a loop over the taps (positions in the window) that lie inside the image for a row of outputs. Returns the tap
// of the current iteration.
Affine CpuContract::open_taps(VarId var, const Place& place) {
  const int64_t step = product_.zeros->strides[product_.image->height.tap], taps = product_.image->height.taps;
  const Affine row = sum(fixed(0), place[product_.height], product_.zeros->strides[product_.height]);
  Affine first;
  if (product_.zeros->offset < 0) {
    const Affine inside = affine(out_.derived("inside", {row, fixed(-product_.zeros->offset)}));
    first = affine(out_.derived("first_tap", {sum(fixed(step - 1 - product_.zeros->offset), inside, -1)}, step));
  }
  const Affine last = sum(fixed(product_.zeros->extent - 1 - product_.zeros->offset + step), row, -1);
  const Affine end = affine(out_.derived("end_tap", {last, fixed(taps * step)}, step));
  out_.open_loop(var, {sum(end, first, -1)});
  return sum(std::move(first), affine(var));
}

// Returns the offset in the copied image, in elements, from which one iteration of the loops over k reads the elements
// of the first pixel. `turns`: the iteration number of each loop.
Affine CpuContract::tap_in_image(const std::vector<Affine>& turns) {
  Affine out;
  for (size_t i = product_.k_atoms.size(); i-- > 0;) {
    const AtomId k = product_.k_atoms[i];
    const Affine& turn = turns[i];
    if (!product_.image->is_tap(k)) {
      out = sum(out, turn, copy_.plane_pitches[i]);
      continue;
    }
    const Slide& slide = k == product_.image->width.tap ? product_.image->width : product_.image->height;
    const int64_t step = slide.step * (k == product_.image->width.tap ? copy_.position_pitch : copy_.row_pitch);
    if (slide.planes == slide.taps) {
      out = sum(out, turn, copy_.plane_pitches[i]);
    } else if (slide.planes == 1) {
      out = sum(out, turn, step);
    } else {
      out = sum(out, affine(out_.derived("plane", {turn}, 1, slide.planes)), copy_.plane_pitches[i]);
      out = sum(out, affine(out_.derived("position", {turn}, slide.planes)), step);
    }
  }
  return out;
}

// Opens a loop over the image rows that contain pixels of a panel. Returns the panel's part of a row, without the halo
// columns between two rows.
CpuContract::Stored CpuContract::open_image_row(const CpuSplit::Panels& panels, const Place& place) {
  const int64_t width = product_.image->width.outputs;
  const Affine begin = column_of(panels);
  const Affine first = affine(out_.derived("first_row", {begin}, copy_.row_pitch));
  const Affine last = affine(out_.derived("last_row", {sum(begin, fixed(panels.width - 1))}, copy_.row_pitch));
  std::vector<Affine> trips = {sum(sum(fixed(1), last), first, -1)};
  for (const Affine& rows : image_rows_left()) trips.push_back(sum(rows, first, -1));
  out_.open_loop(image_row_var_, std::move(trips));
  const Affine row = sum(first, affine(image_row_var_));
  const Affine row_begin = sum(fixed(0), row, copy_.row_pitch);
  // The part of the panel that lies in this row begins where the panel begins or where the row begins, whichever is
  // later.
  const Affine earlier = affine(out_.derived("earlier", {begin, row_begin}));
  Stored part;
  part.at = place;
  part.at[product_.height] = sum(first_image_row_, row);
  part.at[product_.image->width.output] = sum(begin, earlier, -1);
  part.from = sum(row_begin, earlier, -1);
  part.width = std::min(panels.width, width);
  part.bound = {
      {}, {sum(fixed(width), part.at[product_.image->width.output], -1), sum(fixed(panels.width), part.from, -1)}};
  return part;
}

}  // namespace wl

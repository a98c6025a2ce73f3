// Contractions on CPUs that copy an image to scratch. The operand that is a window sliding over the image is read from
// the copy.
#include <algorithm>
#include <utility>

#include "compiler/schedule/contract/cpu.h"

namespace wl {

// Sets the atoms of the image's rows and pixels. If pixels are columns, the columns include the halo (padding) between
// two rows of the copy.
void CpuContract::prepare_image() {
  const Slide& width = image_->width;
  height_ = image_->height.output;
  if (height_ < 0) return;
  width_ = width.output;
  row_pitch_ = width.positions;
  if (rows_are_pixels()) return;
  columns_total_ = (image_->height.outputs - 1) * row_pitch_ + width.outputs;
}

// Returns the extent of the copied image along the loop of the reduction with index `k` in k_atoms_: along a tap of
// the window the number of planes, along the channels the number of channels in a block of K. If the kernel multiplies
// words of several narrow elements, words are counted.
int64_t CpuContract::turns_in_image(size_t k) const {
  if (k == 0 && !image_->is_tap(k_atoms_[0])) return turns_of(0, k_block_);
  return turns_of(k, image_->domain.atoms[k_atoms_[k]].extent);
}

void CpuContract::allocate_image() {
  const int64_t halo = image_->width.halo(), line = machine_.target->lanes;
  const int64_t columns = rows_are_pixels() ? rows_per_task_ : columns_per_block_;
  const int64_t positions = height_ >= 0 ? image_->width.positions : columns + halo;
  const int64_t rows = height_ >= 0 ? image_rows_per_block_ + image_->height.halo() : 1;
  int64_t pitch = 1;
  plane_pitches_.assign(k_atoms_.size(), 0);
  const auto put = [&](const auto& which) {
    for (size_t i = k_atoms_.size(); i-- > 0;) {
      if (plane_pitches_[i] != 0 || !which(k_atoms_[i])) continue;
      plane_pitches_[i] = pitch;
      pitch *= turns_in_image(i);
    }
  };
  if (!slides_on_rows_) image_->channel = -1;
  if (image_->channel >= 0) {
    put([&](AtomId atom) { return atom == image_->channel; });
    put([&](AtomId atom) { return !image_->is_tap(atom); });
    // Pixels whose distance is a multiple of 512 bytes would share few cache sets, so they are padded.
    if (pitch * size_of(packed_dtype(image_side())) % 512 == 0) pitch += line;
  }
  position_pitch_ = pitch;
  row_pitch_ = positions * position_pitch_;
  // Planes begin at a multiple of a vector. Their distance is no multiple of 4096 bytes, as they would then share cache
  // sets.
  pitch = (rows * row_pitch_ + line - 1) / line * line;
  if (pitch * size_of(packed_dtype(image_side())) % 4096 == 0) pitch += line;
  const int64_t plane = pitch;
  put([](AtomId) { return true; });
  // The last panel may read beyond the last plane, so the buffer has room behind that plane.
  const int64_t reach =
      rows_are_pixels() ? 0 : columns + (height_ >= 0 ? image_->height.halo() * row_pitch_ : 0) + halo;
  image_side().buffer = out_.shared(rows_are_pixels() ? "a_image" : "b_image", packed_dtype(image_side()),
                                    {pitch + std::max<int64_t>(0, reach - plane)});
}

// Whether elements along an atom are neighbours in the copied image, so that open_planes() opens no loop over the
// atom.
bool CpuContract::is_inner(AtomId atom) const {
  return atom == image_->channel || (dot_ && atom == dot_->k_atom);
}

// Opens loops over the planes and channels of the copy, except over atoms whose elements are neighbours in the copy.
// Sets `at` to the place inside these loops, and advances `offset` to the plane.
void CpuContract::open_planes(const Place& place, int64_t k_extent, Place& at, Affine& offset) {
  at = place;
  for (size_t i = 0; i < k_atoms_.size(); ++i) {
    const AtomId atom = k_atoms_[i];
    if (is_inner(atom)) continue;
    const bool blocked = i == 0 && !image_->is_tap(atom);
    out_.open_loop(k_vars_[i], {fixed(blocked ? k_extent : image_->domain.atoms[atom].extent)});
    at[atom] = sum(at[atom], affine(k_vars_[i]));
  }
  for (size_t i = k_atoms_.size(); i-- > 0;)
    if (!is_inner(k_atoms_[i])) offset = sum(offset, affine(k_vars_[i], plane_pitches_[i]));
}

// Copies the part of the image that this block reads, with the elementwise work on it done. Each copied tile is a plane
// or, if channels are innermost in memory, a row.
void CpuContract::copy_image(const Place& place, int64_t k_extent) {
  const Domain& domain = image_->domain;
  Place at;
  Affine offset;
  open_planes(place, k_extent, at, offset);
  const AtomId width = image_->width.output, channel = image_->channel;
  // Upper bounds of the number of image rows from the first row that this block reads to the end of the image. If the
  // image has no loop over rows, upper bounds of the number of positions instead.
  std::vector<Affine> left;
  int64_t rows = 1;
  at[width] = height_ >= 0 ? fixed(0) : rows_are_pixels() ? first_row_ : sum(fixed(0), first_panel_, nr_);
  if (height_ >= 0) {
    rows = image_rows_per_block_ + image_->height.halo();
    at[height_] = first_image_row_;
    if (image_rows_left().size() > 1) left = {sum(fixed(image_->height.positions), first_image_row_, -1)};
  } else {
    left = {sum(fixed(image_->width.positions), at[width], -1)};
  }
  const bool each_row = channel >= 0 && height_ >= 0;
  if (each_row) {
    left.push_back(fixed(rows));
    out_.open_loop(image_row_var_, std::exchange(left, {}));
    at[height_] = sum(at[height_], affine(image_row_var_));
    offset = sum(offset, affine(image_row_var_, row_pitch_));
  }
  const int64_t positions = row_pitch_ / position_pitch_;
  const int64_t channels = channel == k_atoms_[0] ? k_extent : channel >= 0 ? domain.atoms[channel].extent : 1;
  const int64_t across = channel >= 0 ? channels : positions, down = channel >= 0 ? positions : rows;
  std::vector<std::vector<Affine>> bound;
  if (!left.empty()) bound = (channel >= 0 || height_ >= 0) ? std::vector{left, {}} : std::vector{{}, left};
  const int lanes = across > 1 ? machine_.target->lanes : 1;
  const auto part = [&](Place first) {
    const TileLoop rows_loop{channel >= 0 ? width : height_, down},
        columns_loop{channel >= 0 ? channel : width, across};
    return TileExpr{group_, domain, out_, std::move(first), {rows_loop, columns_loop}, lanes, bound, true};
  };
  if (dot_) {
    const size_t words = static_cast<size_t>(std::ranges::find(k_atoms_, dot_->k_atom) - k_atoms_.begin());
    const int64_t elements = words == 0 ? k_extent : domain.atoms[dot_->k_atom].extent;
    each_word(k_vars_[words], elements, [&](const Affine& turn, int64_t full) {
      Place first = at;
      first[dot_->k_atom] = sum(first[dot_->k_atom], turn, dot_->group);
      store_words(image_side(), part(std::move(first)), full, sum(offset, turn, plane_pitches_[words]), row_pitch_);
    });
  } else {
    store_packed(image_side(), part(at), std::move(offset), channel >= 0 ? position_pitch_ : row_pitch_);
  }
  if (each_row) out_.close_loop();
  for (const AtomId atom : k_atoms_)
    if (!is_inner(atom)) out_.close_loop();
}

// Opens a loop over the taps (positions in the window) that lie inside the image for a row of outputs. Returns the tap
// of the current iteration.
Affine CpuContract::open_taps(VarId var, const Place& place) {
  const int64_t step = zeros_->strides[image_->height.tap], taps = image_->height.taps;
  const Affine row = sum(fixed(0), place[height_], zeros_->strides[height_]);
  Affine first;
  if (zeros_->offset < 0) {
    const Affine inside = affine(out_.derived("inside", {row, fixed(-zeros_->offset)}));
    first = affine(out_.derived("first_tap", {sum(fixed(step - 1 - zeros_->offset), inside, -1)}, step));
  }
  const Affine last = sum(fixed(zeros_->extent - 1 - zeros_->offset + step), row, -1);
  const Affine end = affine(out_.derived("end_tap", {last, fixed(taps * step)}, step));
  out_.open_loop(var, {sum(end, first, -1)});
  return sum(std::move(first), affine(var));
}

// Returns the offset in the copied image, in elements, from which one iteration of the loops over k reads the elements
// of the first pixel. `turns`: the iteration number of each loop.
Affine CpuContract::tap_in_image(const std::vector<Affine>& turns) {
  Affine out;
  for (size_t i = k_atoms_.size(); i-- > 0;) {
    const AtomId k = k_atoms_[i];
    const Affine& turn = turns[i];
    if (!image_->is_tap(k)) {
      out = sum(out, turn, plane_pitches_[i]);
      continue;
    }
    const Slide& slide = k == image_->width.tap ? image_->width : image_->height;
    const int64_t step = slide.step * (k == image_->width.tap ? position_pitch_ : row_pitch_);
    if (slide.planes == slide.taps) {
      out = sum(out, turn, plane_pitches_[i]);
    } else if (slide.planes == 1) {
      out = sum(out, turn, step);
    } else {
      out = sum(out, affine(out_.derived("plane", {turn}, 1, slide.planes)), plane_pitches_[i]);
      out = sum(out, affine(out_.derived("position", {turn}, slide.planes)), step);
    }
  }
  return out;
}

// Opens a loop over the image rows that contain pixels of a panel. Returns the panel's part of a row, without the halo
// columns between two rows.
CpuContract::Stored CpuContract::open_image_row(const Panels& panels, const Place& place) {
  const int64_t width = image_->width.outputs;
  const Affine begin = column_of(panels);
  const Affine first = affine(out_.derived("first_row", {begin}, row_pitch_));
  const Affine last = affine(out_.derived("last_row", {sum(begin, fixed(panels.width - 1))}, row_pitch_));
  std::vector<Affine> trips = {sum(sum(fixed(1), last), first, -1)};
  for (const Affine& rows : image_rows_left()) trips.push_back(sum(rows, first, -1));
  out_.open_loop(image_row_var_, std::move(trips));
  const Affine row = sum(first, affine(image_row_var_));
  const Affine row_begin = sum(fixed(0), row, row_pitch_);
  // The part of the panel that lies in this row begins where the panel begins or where the row begins, whichever is
  // later.
  const Affine earlier = affine(out_.derived("earlier", {begin, row_begin}));
  Stored part;
  part.at = place;
  part.at[height_] = sum(first_image_row_, row);
  part.at[image_->width.output] = sum(begin, earlier, -1);
  part.from = sum(row_begin, earlier, -1);
  part.width = std::min(panels.width, width);
  part.bound = {{}, {sum(fixed(width), part.at[image_->width.output], -1), sum(fixed(panels.width), part.from, -1)}};
  return part;
}

}  // namespace wl

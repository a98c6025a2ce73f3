// A contraction one of whose operands is read as taps of an image in scratch.
#include <algorithm>

#include "compiler/schedule/contract/cpu.h"

namespace wl {

// The columns are the elements from one row of the copy to the next, those of the halo among them.
void CpuContract::prepare_image() {
  const Slide& width = image_->width;
  height_ = image_->height.output;
  if (height_ < 0) return;
  width_ = width.output;
  row_pitch_ = width.positions;
  if (turned_) return;
  columns_total_ = (image_->height.outputs - 1) * row_pitch_ + width.outputs;
}

void CpuContract::allocate_image() {
  const int64_t halo = image_->width.halo();
  const int64_t columns = turned_ ? rows_per_task_ : columns_per_block_;
  if (height_ >= 0)
    image_pitch_ = (image_rows_per_block_ + image_->height.halo()) * row_pitch_;
  else
    image_pitch_ = row_pitch_ = columns + halo;
  // Planes begin at cache lines, and not a multiple of 4096 bytes apart, which would share cache sets.
  const int64_t line = machine_.target->lanes;
  image_pitch_ = (image_pitch_ + line - 1) / line * line;
  if (image_pitch_ * size_of(dtype_) % 4096 == 0) image_pitch_ += line;
  int64_t planes = 1;
  for (size_t i = 0; i < k_atoms_.size(); ++i)
    planes *= i == 0 && !image_->is_tap(k_atoms_[0]) ? k_block_ : image_->domain.atoms[k_atoms_[i]].extent;
  // The last panel may read beyond the last plane.
  const int64_t reach = columns + (height_ >= 0 ? image_->height.halo() * row_pitch_ : 0) + halo;
  image_side().buffer = out_.shared(turned_ ? "a_image" : "b_image", dtype_,
                                    {(planes - 1) * image_pitch_ + std::max(image_pitch_, reach)});
}

// Copies what this block reads of the image, plane by plane, after the elementwise work on it.
void CpuContract::copy_image(const Place& place, int64_t k_extent) {
  const Domain& domain = image_->domain;
  Place at = place;
  Affine offset;
  int64_t stride = image_pitch_;
  const auto blocked = [&](size_t i) { return i == 0 && !image_->is_tap(k_atoms_[i]); };
  for (size_t i = k_atoms_.size(); i-- > 0;) {
    offset = sum(offset, affine(k_vars_[i], stride));
    stride *= blocked(i) ? k_block_ : domain.atoms[k_atoms_[i]].extent;
  }
  for (size_t i = 0; i < k_atoms_.size(); ++i) {
    out_.open_loop(k_vars_[i], {fixed(blocked(i) ? k_extent : domain.atoms[k_atoms_[i]].extent)});
    at[k_atoms_[i]] = sum(at[k_atoms_[i]], affine(k_vars_[i]));
  }
  const AtomId width = image_->width.output;
  std::vector<std::vector<Affine>> bound;
  int64_t rows = 1;
  if (height_ >= 0) {
    rows = image_rows_per_block_ + image_->height.halo();
    at[height_] = first_image_row_;
    at[width] = fixed(0);
    if (image_rows_left().size() > 1) bound = {{sum(fixed(image_->height.positions), first_image_row_, -1)}, {}};
  } else {
    at[width] = turned_ ? first_row_ : sum(fixed(0), first_panel_, nr_);
    bound = {{}, {sum(fixed(image_->width.positions), at[width], -1)}};
  }
  TileExpr expr{group_,
                domain,
                out_,
                at,
                height_,
                width,
                rows,
                row_pitch_,
                row_pitch_ > 1 ? machine_.target->lanes : 1,
                std::move(bound),
                true,
                {},
                nullptr,
                {}};
  store_packed(image_side(), std::move(expr), std::move(offset), row_pitch_);
  for (size_t i = 0; i < k_atoms_.size(); ++i) out_.close_loop();
}

// Opens a loop over those taps of a row of outputs that are inside of the image; returns which tap a turn is.
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

// Where the copy has the first column's element for the turns of the loops over k.
Affine CpuContract::tap_in_image(const std::vector<Affine>& turns) {
  Affine out;
  int64_t stride = image_pitch_;
  for (size_t i = k_atoms_.size(); i-- > 0;) {
    const AtomId k = k_atoms_[i];
    const Affine& turn = turns[i];
    if (!image_->is_tap(k)) {
      out = sum(out, turn, stride);
      stride *= i == 0 ? k_block_ : domain_.atoms[k].extent;
      continue;
    }
    const Slide& slide = k == image_->width.tap ? image_->width : image_->height;
    const int64_t step = slide.step * (k == image_->width.tap ? 1 : row_pitch_);
    if (slide.planes == slide.taps) {
      out = sum(out, turn, stride);
    } else if (slide.planes == 1) {
      out = sum(out, turn, step);
    } else {
      out = sum(out, affine(out_.derived("plane", {turn}, 1, slide.planes)), stride);
      out = sum(out, affine(out_.derived("position", {turn}, slide.planes)), step);
    }
    stride *= slide.planes;
  }
  return out;
}

// Opens a loop over the rows of the image that a panel has elements of. The columns between two rows are left out.
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
  // The row's part of the panel begins at the later of both beginnings.
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

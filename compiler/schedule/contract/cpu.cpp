#include "compiler/schedule/contract/cpu.h"

#include <algorithm>

#include "compiler/schedule/contract/contract.h"
#include "compiler/schedule/contract/in_place.h"
#include "compiler/schedule/launch.h"

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

}  // namespace

CpuContract::CpuContract(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine)
    : group_(group),
      turned_(schedule[kTurnTiles] != 0 ? std::optional(turned(domain)) : std::nullopt),
      whole_(turned_ ? *turned_ : domain),
      image_(copied_image(domain, schedule)),
      slides_on_rows_(image_ && image_->operand != domain.right_operand()),
      dot_(slides_on_rows_ ? std::nullopt : dot_of(group, whole_, machine, schedule[kWiden] != 0, image_)),
      tiles_(schedule[kMatrix] != kNoMatrix ? tile_steps(group, whole_, machine, dot_) : std::nullopt),
      merged_(!image_ && !turned_ && !tiles_ ? packed_columns(group, domain, dot_, schedule, machine.target->lanes)
                                             : std::nullopt),
      zeros_(schedule[kSkipPadding] != 0 && rows_are_pixels() && image_ ? zeros_around(domain, *image_) : std::nullopt),
      domain_(merged_ ? merged_->domain : whole_),
      schedule_(schedule),
      machine_(machine),
      out_(group, machine) {}

absl::Status CpuContract::prepare() {
  set_launch(out_.kernel(), "contract", schedule_, machine_);
  if (schedule_[kCopyImage] != kCopyTaps && !image_)
    return invalid("copy_image needs an operand whose window slides over an image");
  if (schedule_[kSkipPadding] != 0 && !zeros_)
    return invalid("skip_padding needs a copied image of which whole rows are padding");
  if (widens() && (image_ || schedule_[kPackB] != 0))
    return invalid("widen excludes copy_image and pack_b, which copy words");
  if (turned_ && (domain_.m.empty() || domain_.n.empty()))
    return invalid("turn_tiles needs a product with rows and columns");
  dtype_ = group_.nodes[domain_.contract].dtype;
  if (is_float(dtype_) && size_of(dtype_) < 4) dtype_ = DType::f32;
  const auto extent = [&](AtomId a) { return a < 0 ? int64_t{1} : domain_.atoms[a].extent; };
  row_atom_ = domain_.m.empty() ? -1 : domain_.m.back();
  column_atom_ = domain_.n.empty() ? -1 : domain_.n.back();
  k_atoms_ = domain_.reduced;
  WL_RETURN_IF_ERROR(prepare_tiles());
  rows_total_ = extent(row_atom_);
  columns_total_ = extent(column_atom_);
  if (merged_) {
    height_ = merged_->height;
    width_ = merged_->width;
  } else if (image_) {
    prepare_image();
  }
  if (rows_are_pixels() && domain_.m.size() > 1) {
    height_ = domain_.m[domain_.m.size() - 2];
    width_ = row_atom_;
  }
  lanes_ = columns_total_ > 1 ? machine_.target->lanes : 1;
  if (turned_ && lanes_ != machine_.target->lanes) return invalid("turn_tiles needs more than one column");
  WL_RETURN_IF_ERROR(prepare_rows());
  prepare_columns();
  if (turned_ && columns_total_ % nr_ != 0 && !splits_whole_row())
    return invalid("turn_tiles: ", columns_total_, " columns in several blocks do not fill the tiles of each");
  prepare_depth();
  prepare_counted();
  prepare_operands();
  if (tiles_ && !b_.packed && columns_total_ % nr_ != 0)
    return invalid("tiles of ", nr_, " columns do not divide ", columns_total_, " columns");
  return absl::OkStatus();
}

void CpuContract::prepare_depth() {
  k_inner_ = 1;
  for (size_t i = 1; i < k_atoms_.size(); ++i) k_inner_ *= turns_of(i);
  const int64_t k0 = k_atoms_.empty() ? 1 : domain_.atoms[k_atoms_[0]].extent;
  const int64_t kc = schedule_[kKc], step = k_atoms_.empty() ? 1 : step_of(0) * words_of_turn(0);
  const auto blocks = [&] { return std::max<int64_t>(1, (k0 + k_block_ - 1) / k_block_); };
  k_block_ = std::max<int64_t>(
      step, kc == 0 || k_inner_ == 0 || (image_ && image_->is_tap(k_atoms_[0])) ? k0 : std::min(k0, kc / k_inner_));
  k_blocks_ = blocks();
  k_block_ = std::max<int64_t>(1, (k0 + k_blocks_ - 1) / k_blocks_);
  k_block_ = (k_block_ + step - 1) / step * step;
  k_blocks_ = blocks();
}

// Decides which operands are packed or copied, and allocates the scratch for copies, partial results and tiles.
void CpuContract::prepare_operands() {
  a_.position = 1 - domain_.right_operand();
  b_.position = domain_.right_operand();
  for (Side* side : {&a_, &b_}) {
    const Domain::Operand& operand = domain_.operands[domain_.contract][side->position];
    side->direct = operand.is_direct();
    if (side->direct) side->access = operand.access;
    side->words = dot_ && has_words(domain_, operand, *dot_);
  }
  a_.packed = schedule_[kPackA] != 0 || !a_.direct || (dot_ && !a_.words) || widens();
  if (tiles_ && !has_tile_rows(domain_, domain_.operands[domain_.contract][a_.position], *dot_, *tiles_))
    a_.packed = true;
  b_.packed = merged_ || packs_right(group_, domain_, dot_, schedule_, lanes_);
  if (image_) image_side().packed = true;
  if (const auto right = right_in_place(group_, domain_); right && right->computed && !b_.packed) {
    b_.computed = true;
    b_.access = right->access;
  }
  if (image_) allocate_image();
  if (merged_) {
    // Rows of the copy whose distance is a multiple of 4096 bytes would share cache sets, so they are padded.
    pitch_ = columns_per_block_;
    if (pitch_ * size_of(packed_dtype(b_)) % 4096 == 0) pitch_ += lanes_;
    b_.buffer = out_.shared("b_rows", packed_dtype(b_), {depth(), pitch_});
  } else if (b_.packed && b_.buffer < 0) {
    pitch_ = nr_;
    b_.buffer = out_.shared("b_panels", packed_dtype(b_), {panels_per_block_, depth(), nr_});
  }
  if (a_.packed && a_.buffer < 0)
    a_.buffer = out_.shared("a_tiles", packed_dtype(a_),
                            {row_tiles_ * outer_rows_per_block_, tiles_ ? mr_ : left_depth(), tiles_ ? depth() : mr_});
  if (k_blocks_ > 1) partial_ = out_.shared("partial", dtype_, {partial_rows(), columns_per_block_});
  heavy_ = tiles_ || heavy_epilogue();
  if (heavy_ || turned_ || (image_ && columns_are_pixels())) spill_ = out_.shared("tile", dtype_, {mr_, nr_});
}

void CpuContract::prepare_columns() {
  nr_ = std::min(schedule_[kNv] * lanes_, (columns_total_ + lanes_ - 1) / lanes_ * lanes_);
  panels_per_column_atom_ = (columns_total_ + nr_ - 1) / nr_;
  panels_ = panels_per_column_atom_;
  for (AtomId a : domain_.n)
    if (a != column_atom_) panels_ *= domain_.atoms[a].extent;
  column_tasks_ = std::min(schedule_[kColumnTasks], panels_);
  panels_per_task_ = (panels_ + column_tasks_ - 1) / column_tasks_;
  column_tasks_ = (panels_ + panels_per_task_ - 1) / panels_per_task_;
  const int64_t nc = schedule_[kNc];
  panels_per_block_ =
      nc == 0 || height_ >= 0 ? panels_per_task_ : std::min(panels_per_task_, std::max<int64_t>(1, nc / nr_));
  if (height_ >= 0) prepare_image_rows();
  if (columns_are_pixels()) {
    // The last row of a block is not followed by a halo (the padding between two rows of an image).
    split_panels(image_ ? (image_rows_per_block_ - 1) * row_pitch_ + image_width_
                        : image_rows_per_block_ * image_width_);
    return;
  }
  if (splits_whole_row()) return split_whole_row();
  panel_groups_ = {{nr_, 0, panels_per_block_}};
  columns_per_block_ = panels_per_block_ * nr_;
}

// Splits the rows of an image into tasks, and those of a task into blocks.
void CpuContract::prepare_image_rows() {
  image_width_ = whole_.atoms[width_].extent;
  image_height_ = whole_.atoms[height_].extent;
  int64_t& tasks = rows_are_pixels() ? row_tasks_ : column_tasks_;
  tasks = std::min(schedule_[rows_are_pixels() ? kRowTasks : kColumnTasks], image_height_);
  image_rows_per_task_ = (image_height_ + tasks - 1) / tasks;
  tasks = (image_height_ + image_rows_per_task_ - 1) / image_rows_per_task_;
  const int64_t nc = schedule_[kNc];
  image_rows_per_block_ =
      nc == 0 ? image_rows_per_task_ : std::clamp<int64_t>(nc / image_width_, 1, image_rows_per_task_);
  if (rows_are_pixels()) outer_rows_per_block_ = image_rows_per_block_;
}

// Splits the `columns` columns of a block into panels whose widths differ by at most one vector, so that no panel has
// an empty vector.
void CpuContract::split_panels(int64_t columns) {
  const int64_t vectors = (columns + lanes_ - 1) / lanes_;
  panels_per_block_ = (columns + nr_ - 1) / nr_;
  const int64_t base = vectors / panels_per_block_, more = vectors % panels_per_block_;
  if (more > 0) panel_groups_.push_back({(base + 1) * lanes_, 0, more});
  panel_groups_.push_back({base * lanes_, more * (base + 1) * lanes_, panels_per_block_ - more});
  nr_ = panel_groups_[0].width;
  columns_per_block_ = vectors * lanes_;
}

// Whether one block has all columns and reads the right operand in place. In that case panels may begin at any vector.
bool CpuContract::splits_whole_row() const {
  return panels_ == panels_per_column_atom_ && panels_ == panels_per_block_ && !merged_ && !tiles_ &&
         (turned_ || !image_) && !packs_right(group_, domain_, dot_, schedule_, lanes_);
}

// Splits all columns evenly into panels. If the last vector is only partly filled, the last panel becomes a group of
// its own, because only this panel needs a check for the end of the columns.
void CpuContract::split_whole_row() {
  split_panels(columns_total_);
  Panels& last = panel_groups_.back();
  if (columns_total_ % lanes_ == 0 || last.count == 1) return;
  --last.count;
  panel_groups_.push_back({last.width, last.first_column + last.count * last.width, 1});
}

// Whether the epilogue takes more than 8 issue slots for each element. Such an epilogue would need registers that the
// accumulators occupy.
bool CpuContract::heavy_epilogue() const {
  int cost = 0;
  for (NodeId id = domain_.contract + 1; id < static_cast<NodeId>(group_.nodes.size()); ++id)
    if (class_of(group_.nodes[id].op) == OpClass::kElementwise && !domain_.operands[id].empty())
      cost += info(group_.nodes[id].op).cost;
  return cost > 8;
}

void CpuContract::place_block() {
  block_place_.assign(domain_.atoms.size(), fixed(0));
  int64_t inside = 1;
  const auto digit = [&](const std::string& name, int64_t extent) {
    const Affine out = extent == 1 ? fixed(0) : affine(out_.derived(name, {affine(kBlockVar)}, inside, extent));
    inside *= extent;
    return out;
  };
  const Affine column_task = digit("column_task", column_tasks_);
  const Affine row_task = digit("row_task", row_tasks_);
  const auto atoms = [&](const std::vector<AtomId>& list, AtomId except) {
    for (size_t i = list.size(); i-- > 0;)
      if (list[i] != except && list[i] != height_ && list[i] != outer_row_atom_)
        block_place_[list[i]] = digit(domain_.atoms[list[i]].name, domain_.atoms[list[i]].extent);
  };
  atoms(domain_.m, row_atom_);
  if (columns_are_pixels()) atoms(domain_.n, column_atom_);
  atoms(domain_.batch, -1);
  out_.kernel().grid = inside;
  (outer_row_atom_ >= 0 ? first_outer_row_ : first_row_) =
      sum(fixed(0), row_task, outer_row_atom_ >= 0 ? outer_rows_per_task_ : rows_per_task_);
  first_panel_ = sum(fixed(0), column_task, panels_per_task_);
  first_image_row_ = sum(fixed(0), rows_are_pixels() ? row_task : column_task, image_rows_per_task_);
}

absl::StatusOr<Kernel> CpuContract::run() {
  if (elements(group_.nodes[domain_.contract].shape) == 0) return unimplemented("a contraction without results");
  const auto scope = out_.values_of(domain_.contract);
  WL_RETURN_IF_ERROR(prepare());
  place_block();
  emit_columns();
  if (!status_.ok()) return status_;
  return out_.finish();
}

absl::StatusOr<Kernel> lower_contract(const Graph& group, const Domain& domain, const Schedule& schedule,
                                      const Machine& machine) {
  return CpuContract(group, domain, schedule, machine).run();
}

}  // namespace wl

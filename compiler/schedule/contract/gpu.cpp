#include "compiler/schedule/contract/gpu.h"

#include <algorithm>
#include <set>

#include "compiler/base/log2.h"
#include "compiler/domain/reads.h"
#include "compiler/kernel/barriers.h"
#include "compiler/kernel/pipeline/pipeline.h"
#include "compiler/kernel/shared_factors.h"
#include "compiler/schedule/contract/gpu_product.h"
#include "compiler/schedule/launch.h"

namespace wl {
namespace {

// Appends to `bits` the n numbers from `first` on, and advances `first` by n.
void take_bits(std::vector<int>& bits, int& first, int n) {
  for (; n > 0; --n) bits.push_back(first++);
}

// The layout with one axis split into an axis for each of `loops`.
Layout split_along(Layout layout, int axis, const std::vector<TileLoop>& loops) {
  for (size_t i = loops.size(); i-- > 1;) layout = split_axis(layout, axis, loops[i].extent);
  return layout;
}

}  // namespace

absl::StatusOr<Kernel> GpuContract::run() {
  if (elements(group_.nodes[domain_.contract].shape) == 0) return unimplemented("a contraction without results");
  const auto scope = out_.values_of(domain_.contract);
  WL_RETURN_IF_ERROR(prepare());
  emit_rounds();
  if (!status_.ok()) return status_;
  Kernel kernel = out_.finish();
  WL_RETURN_IF_ERROR(pipeline_rounds(kernel));
  insert_barriers(kernel);
  const Gpu& gpu = machine_.target->gpu;
  if (kernel.threads > gpu.block_threads || kernel.scratch_bytes() > gpu.block_shared)
    return invalid("a block needs ", kernel.threads, " threads and ", kernel.scratch_bytes(),
                   " bytes of shared memory; ", machine_.target->name, " has ", gpu.block_threads, " and ",
                   gpu.block_shared);
  return kernel;
}

absl::Status GpuContract::prepare() {
  if (resident_) return choose_resident();
  set_launch(out_.kernel(), "contract", schedule_, machine_);
  dtype_ = lanes_dtype(group_, domain_);
  matrix_ = matrix_of(schedule_);
  if (matrix_ && !offers_matrix(*matrix_))
    return invalid("the group's operands do not fit the matrix instruction ", info(*matrix_).name, " of ",
                   machine_.target->name);
  rows_.dtype = matrix_ ? info(*matrix_).left : dtype_;
  columns_.dtype = matrix_ ? info(*matrix_).right : dtype_;
  const int right = domain_.right_operand();
  rows_.position = 1 - right;
  columns_.position = right;
  WL_RETURN_IF_ERROR(choose_loops(rows_, domain_.m, kRowLoops));
  WL_RETURN_IF_ERROR(choose_loops(columns_, domain_.n, kColumnLoops));
  step_ = schedule_[kStepK];
  vector_ = schedule_[kVector];
  rows_each_ = schedule_[kThreadRows];
  columns_each_ = schedule_[kThreadColumns];
  stages_ = schedule_[kStages];
  register_stages_ = schedule_[kRegisterStages];
  unroll_ = schedule_[kUnrollK];
  WL_RETURN_IF_ERROR(matrix_ ? choose_waves() : choose_threads());
  choose_k();
  const int64_t parts = schedule_[kReductionBlocks];
  if (parts > 1 && !divides_k(group_, domain_, schedule_))
    return invalid("the depth K does not divide into ", parts, " parts with equal numbers of steps of ", step_);
  // The pipeline has no more stages than a block's part of K has whole steps.
  stages_ = std::max<int64_t>(1, std::min(stages_, outer_ * whole_ / parts));
  prepare_side(rows_, "a");
  prepare_side(columns_, "b");
  if (parts > 1) last_ = out_.shared("last", DType::u32, {1});
  if (schedule_[kCopyingWaves] > 0) {
    const std::vector<MatrixOp> matrices = matrices_for(group_, domain_, machine_);
    if (schedule_[kCopyingWaves] * machine_.target->gpu.wave > threads() ||
        !gpu_product_of(group_, domain_, machine_, matrices).copies_alongside(schedule_))
      return invalid("copying_waves=", schedule_[kCopyingWaves],
                     " needs at least as many waves that multiply by matrix instructions, and operands that are both "
                     "copied in several whole steps");
    copiers_ = static_cast<int>(schedule_[kCopyingWaves]) * machine_.target->gpu.wave;
    out_.kernel().copiers = copiers_;
    out_.kernel().threads += copiers_;
    for (Side* side : {&rows_, &columns_})
      side->boxes = schedule_[kTma] != 0 && matrix_ && multiplies_in_memory(*matrix_) &&
                    is_matrix_of(group_, domain_, side->position);
  }
  return absl::OkStatus();
}

absl::Status GpuContract::choose_loops(Side& side, const std::vector<AtomId>& atoms,
                                       const std::array<Choice, 3>& choices) {
  if (!atoms.empty()) side.atom = atoms.back();
  for (size_t i = 0; i < choices.size(); ++i) {
    const int64_t extent = schedule_[choices[i]];
    if (i > 0 && extent == 1) continue;
    if (i > 0 && i >= atoms.size())
      return invalid(name_of(choices[i]), "=", extent, " divides a loop that the group does not have; it has ",
                     atoms.size());
    side.loops.insert(side.loops.begin(), {i < atoms.size() ? atoms[atoms.size() - 1 - i] : -1, extent});
    side.tile *= extent;
  }
  return absl::OkStatus();
}

bool GpuContract::offers_matrix(MatrixOp matrix) const {
  const std::vector<MatrixOp> all = matrices_for(group_, domain_, machine_);
  return std::find(all.begin(), all.end(), matrix) != all.end();
}

absl::Status GpuContract::choose_threads() {
  const int64_t down = rows_.tile / rows_each_, across = columns_.tile / columns_each_;
  const int64_t count = down * across;
  if (down == 0 || across == 0 || columns_each_ % vector_ != 0 || count > machine_.target->gpu.block_threads)
    return invalid("a tile of ", rows_.tile, " x ", columns_.tile, " does not divide into threads of ", rows_each_,
                   " x ", columns_each_, " elements and vectors of ", vector_);
  set_threads(count);
  const Kernel& kernel = out_.kernel();
  // The threads of a wave cover an almost square part of the tile, so that a wave reads few elements of both operands.
  const int lanes = log2_floor(std::min<int64_t>(kernel.wave, count)), rows = log2_floor(down),
            columns = log2_floor(across);
  const int wide = std::min(columns, std::max(lanes - rows, 3));
  int bit = 0;
  take_bits(column_bits_, bit, std::min(wide, lanes));
  take_bits(row_bits_, bit, lanes - bit);
  take_bits(column_bits_, bit, columns - static_cast<int>(column_bits_.size()));
  take_bits(row_bits_, bit, rows - static_cast<int>(row_bits_.size()));
  return absl::OkStatus();
}

void GpuContract::set_threads(int64_t count) {
  Kernel& kernel = out_.kernel();
  kernel.team = kernel.threads = kernel_threads_ = static_cast<int>(count);
  kernel.teams = 1;
}

void GpuContract::prepare_side(Side& side, const char* name) {
  analyse_side(group_, domain_, k_atom_, vector_, matrix_, side);
  side.async = schedule_[kAsyncCopies] != 0 && stages_ > 1 && side.copies(side.width());
  // Without a matrix instruction, elements with the same k lie in neighbouring banks. An operand that is read along k
  // is stored across these banks, so its rows are padded to let lanes store to different banks.
  side.pitch = matrix_ ? matrix_pitch(*matrix_, side.k_inner ? step_ : side.tile, side.k_inner)
                       : side.tile + (side.along_k ? vector_ : 0);
  side.name = name;
  give_buffer(side);
}

void GpuContract::give_buffer(Side& side) {
  side.buffer = out_.shared(side.name, side.dtype, {1, side.k_inner ? side.tile : step_, side.pitch});
  if (matrix_ && multiplies_in_memory(*matrix_))
    out_.kernel().buffers[side.buffer].swizzle = shared_factor_swizzle(side.dtype, side.k_inner, side.tile);
}

void GpuContract::guard_around(const Side& side, size_t axis, Instr& access) const {
  for (size_t i = 0; i + 1 < side.loops.size(); ++i) guard_loop(side, i, axis, access);
}

void GpuContract::guard_end(const Side& side, size_t axis, Instr& access) const {
  guard_loop(side, side.loops.size() - 1, axis, access);
  guard_around(side, axis, access);
}

void GpuContract::guard_loop(const Side& side, size_t loop, size_t axis, Instr& access) const {
  const auto [atom, tile] = side.loops[loop];
  const int64_t extent = extent_along(atom);
  if (extent % tile == 0) return;
  std::vector<int64_t> strides(access.slice.strides.size(), 0);
  strides[axis + loop] = 1;
  access.guards.push_back({side.first[loop], std::move(strides), extent});
}

void GpuContract::choose_k() {
  k_atom_ = step_loop(domain_, vector_);
  for (AtomId atom : domain_.reduced)
    if (atom != k_atom_) k_outer_.push_back(atom);
  k_extent_ = k_atom_ < 0 ? 1 : domain_.atoms[k_atom_].extent;
  whole_ = k_extent_ / step_;
  outer_ = extent_of(domain_, k_outer_);
}

Layout GpuContract::grid_layout(bool rows, bool columns, char row_kind) const {
  if (matrix_) return projected(fragments_.c, {rows, columns});
  Deal down, across;
  if (rows) down = {rows_each_ % vector_ == 0 ? vector_ : 1, row_kind, row_bits_};
  if (columns) across = {vector_, 'v', column_bits_};
  return dealt_layout({rows ? rows_.tile : 1, columns ? columns_.tile : 1}, {down, across}, threads(),
                      machine_.target->gpu.wave);
}

Layout GpuContract::result_layout(const std::vector<bool>& moves) const {
  return projected(split_along(split_along(grid_layout(true, true), 1, columns_.loops), 0, rows_.loops), moves);
}

Layout GpuContract::fetch_layout(const Side& side, const std::vector<bool>& moves, bool vectors) const {
  const int64_t extents[] = {side.along_k ? side.tile : step_, side.along_k ? step_ : side.tile};
  const bool wide = vectors && (side.along_k ? step_ : side.width()) >= vector_ && side.aligned;
  const int64_t vector = wide ? vector_ : 1;
  const int fetching = copiers_ > 0 ? copiers_ : threads();
  int lanes = log2_floor(fetching), bit = 0;
  Deal down, across{vector, 'v', {}};
  const int along = std::min(lanes, log2_floor(extents[1] / vector));
  take_bits(across.bits, bit, along);
  take_bits(down.bits, bit, std::min(lanes - along, log2_floor(extents[0])));
  const Layout all = dealt_layout({extents[0], extents[1]}, {down, across}, fetching, machine_.target->gpu.wave);
  return projected(split_along(all, side.along_k ? 0 : 1, side.loops), moves);
}

absl::StatusOr<Kernel> lower_gpu_contract(const Graph& group, const Domain& domain, const Schedule& schedule,
                                          const Machine& machine) {
  return GpuContract(group, domain, schedule, machine).run();
}

}  // namespace wl

// Contractions as stages whose values are resident, that is, stay in registers (compiler/schedule/resident/resident.h):
// how waves divide the rows, and the operand that they hold.
#include <algorithm>
#include <bit>

#include "compiler/base/log2.h"
#include "compiler/domain/reads.h"
#include "compiler/kernel/shared_factors.h"
#include "compiler/schedule/contract/gpu.h"
#include "compiler/schedule/launch.h"

namespace wl {
namespace {

constexpr int64_t kCopyBytes = 16;  // the bytes of one vector of an operand that is copied to shared memory

// Returns how a fragment of `each` elements along an axis is repeated to cover `extent` elements with `waves` waves,
// where every `own` waves share one fragment. Returns nullopt if there are fewer waves than share a fragment, or if the
// number of fragments per wave is no integer power of two.
std::optional<Repeats> repeats_in(int64_t extent, int64_t each, int64_t waves, int64_t own) {
  const int64_t all = each * (waves / own);
  if (waves < own || extent % all != 0 || !std::has_single_bit(static_cast<uint64_t>(extent / all)))
    return std::nullopt;
  Repeats out{log2_floor(extent / all)};
  for (int bit = log2_floor(own); bit < log2_floor(waves); ++bit) out.waves.push_back(bit);
  return out;
}

// Returns the repeats along both axes of a tile of sums; nullopt where the waves do not divide the tile into whole
// fragments.
std::optional<std::array<Repeats, 2>> repeats_of(const GpuResident& resident, int64_t rows, int64_t columns) {
  const Layout& sums = fragments_of(resident.matrix).c;
  const std::optional<Repeats> down = repeats_in(rows, sums.shape[resident.rows_axis], resident.waves, sums.count('u')),
                               across = repeats_in(columns, sums.shape[1 - resident.rows_axis], 1, 1);
  if (!down || !across) return std::nullopt;
  return resident.rows_axis == 0 ? std::array{*down, *across} : std::array{*across, *down};
}

}  // namespace

absl::StatusOr<Layout> resident_tile_layout(const GpuResident& resident, int64_t rows, int64_t columns) {
  const auto repeats = repeats_of(resident, rows, columns);
  if (!repeats)
    return invalid(rows, " rows and ", columns, " columns do not divide into fragments of ", info(resident.matrix).name,
                   " for ", resident.waves, " warps");
  return repeated(fragments_of(resident.matrix).c, *repeats);
}

Layout resident_words(const GpuResident& resident, int64_t rows) {
  const Fragments& one = fragments_of(resident.matrix);
  const auto repeats = repeats_of(resident, rows, one.c.shape[1 - resident.rows_axis]);
  WL_CHECK(repeats, rows, " rows are no whole fragments");
  return repeated(resident.rows_axis == 0 ? one.a : one.b,
                  {(*repeats)[static_cast<size_t>(resident.rows_axis)], Repeats{}});
}

absl::Status GpuContract::choose_resident() {
  const MatrixInfo& row = info(resident_->matrix);
  matrix_ = resident_->matrix;
  const Node& product = group_.nodes[domain_.contract];
  if (group_.nodes[product.operands[0]].dtype != row.left || group_.nodes[product.operands[1]].dtype != row.right)
    return invalid("the product's operands do not fit the matrix instruction ", row.name);
  set_launch(out_.kernel(), "contract", schedule_, machine_);
  dtype_ = lanes_dtype(group_, domain_);
  rows_.dtype = columns_.dtype = row.left;
  vector_ = kCopyBytes / size_of(row.left);
  Side& resident = resident_->rows_axis == 0 ? rows_ : columns_;
  Side& other = resident_->rows_axis == 0 ? columns_ : rows_;
  resident.position = resident_->operand;
  other.position = 1 - resident_->operand;
  for (const std::vector<AtomId>* loops : {&domain_.m, &domain_.n, &domain_.reduced})
    if (loops->empty() || extent_of(domain_, *loops) != domain_.atoms[loops->back()].extent)
      return invalid("the rows, the columns and the depth of a product in registers must be one loop each");
  if (extent_of(domain_, domain_.batch) != 1)
    return invalid("a block may hold one product in registers, and this one has a batch of them");
  for (Side* side : {&resident, &other}) {
    side->atom = (side->position == domain_.right_operand() ? domain_.n : domain_.m).back();
    side->extent = side->tile = domain_.atoms[side->atom].extent;
    side->loops = {{side->atom, side->tile}};
  }
  k_atom_ = domain_.reduced.back();
  k_extent_ = domain_.atoms[k_atom_].extent;
  const bool in_memory = multiplies_in_memory(*matrix_);
  step_ = in_memory ? shared_row_elements(row.left) : k_extent_;
  whole_ = k_extent_ / step_;
  const auto repeats = repeats_of(*resident_, resident.extent, other.extent);
  const bool columns_fit = !in_memory || other.extent == kSharedFactorRows || other.extent == 2 * kSharedFactorRows ||
                           other.extent % kSharedFactorColumns == 0;
  if (!repeats || k_extent_ % step_ != 0 || step_ % row.k != 0 || !columns_fit)
    return invalid(resident.extent, " rows, ", other.extent, " columns and a depth of ", k_extent_,
                   " do not divide into fragments of ", row.name, " for ", resident_->waves, " warps");
  const Fragments& one = fragments_of(*matrix_);
  const Repeats along_k{in_memory ? log2_floor(step_ / row.k) : 0};
  fragments_ = {repeated(one.a, {(*repeats)[0], along_k}), repeated(one.b, {(*repeats)[1], along_k}),
                repeated(one.c, *repeats)};
  set_threads(int64_t{resident_->waves} * machine_.target->gpu.wave);
  for (int64_t part = 0; part < whole_; ++part) {
    prepare_side(other, "turn");
    parts_of_k_.push_back(other.buffer);
  }
  return absl::OkStatus();
}

// Multiplies all of K. An instruction that reads shared memory itself processes K in parts of 128 bytes (64 elements of
// 16 bits), each of which has its own buffer.
void GpuContract::multiply_resident() {
  Side& other = resident_->rows_axis == 0 ? columns_ : rows_;
  for (int64_t part = 0; part < whole_; ++part) {
    other.buffer = parts_of_k_[static_cast<size_t>(part)];
    fill(k_place(fixed(part), whole_, 0), false);
  }
  if (!multiplies_in_memory(*matrix_)) return multiply_matrices(step_);
  std::vector<TileId> left;
  for (int64_t part = 0; part < whole_; ++part) left.push_back(load_factor(rows_, part * step_));
  for (int64_t part = 0; part < whole_; ++part) {
    other.buffer = parts_of_k_[static_cast<size_t>(part)];
    out_.push(mma_instr(accumulator_, *matrix_, left[static_cast<size_t>(part)], load_factor(other, 0)));
  }
  out_.push(mma_wait_instr());
}

void GpuContract::fetch_resident() {
  const Side& side = resident_->rows_axis == 0 ? rows_ : columns_;
  const absl::StatusOr<Layout> layout = resident_tile_layout(*resident_, side.extent, k_extent_);
  if (!layout.ok()) return fail(layout.status());
  TileExpr expr{group_, domain_, out_, block_, {{side.atom, side.extent}, {k_atom_, k_extent_}}};
  if (resident_->rows_axis == 1) std::swap(expr.loops[0], expr.loops[1]);
  expr.layout = [&](const std::vector<bool>& moves) { return projected(*layout, moves); };
  const absl::StatusOr<TileId> value = expr.operand(domain_.contract, side.position);
  if (!value.ok()) return fail(value.status());
  out_.push_all(std::move(expr.code));
  resident_tile_ = *value;
  if (out_.kernel().tiles[resident_tile_].dtype == side.dtype) return;
  resident_tile_ = out_.like(*value, side.dtype);
  out_.push(copy_instr(resident_tile_, *value, side.dtype));
}

NodeId GpuContract::find_total() const {
  NodeId total = -1;
  int readers = 0;
  for (NodeId id = 0; id < static_cast<NodeId>(group_.nodes.size()); ++id)
    for (size_t i = 0; i < domain_.operands[id].size(); ++i) {
      if (domain_.operands[id][i].source != domain_.contract) continue;
      ++readers;
      const Op op = group_.nodes[id].op;
      const bool adds = (op == Op::fma && i == 2) || (op == Op::add && i < 2);
      if (adds && group_.nodes[id].dtype == dtype_) total = id;
    }
  for (const Domain::Store& store : domain_.stores) readers += store.source == domain_.contract ? 1 : 0;
  return readers == 1 && group_.nodes[domain_.contract].dtype == dtype_ ? total : -1;
}

void GpuContract::begin_with_addend() {
  TileExpr expr = result_expr();
  std::vector<TileId> values;
  const Node& node = group_.nodes[total_];
  for (size_t i = 0; i < node.operands.size(); ++i) {
    if (domain_.operands[total_][i].source == domain_.contract) continue;
    const absl::StatusOr<TileId> value = expr.operand(total_, static_cast<int>(i));
    if (!value.ok()) return fail(value.status());
    values.push_back(*value);
  }
  out_.push_all(std::move(expr.code));
  out_.push(values.size() == 2 ? map_instr(accumulator_, Op::mul, dtype_, values)
                               : copy_instr(accumulator_, values[0], dtype_));
}

absl::StatusOr<Kernel> lower_gpu_resident(const Graph& group, const Domain& domain, const Machine& machine,
                                          const GpuResident& resident) {
  return GpuContract(group, domain, Schedule(), machine, resident).run();
}

}  // namespace wl

#include "compiler/schedule/contract/cpu/lowering.h"

#include "compiler/schedule/contract/contract.h"
#include "compiler/schedule/launch.h"

namespace wl {
CpuContract::CpuContract(const Graph& group, const Domain& domain, const Schedule& schedule, const Machine& machine)
    : product_(group, domain, schedule, machine), loops_(product_.loops()), schedule_(schedule), out_(group, machine) {}

absl::Status CpuContract::prepare() {
  set_launch(out_.kernel(), "contract", schedule_, product_.machine);
  WL_RETURN_IF_ERROR(product_.check(schedule_));
  WL_ASSIGN_OR_RETURN(split_, split_of(loops_, schedule_));
  const bool fills = product_.columns % split_.nr == 0;
  if (product_.turned && !fills && !split_.is_whole_row)
    return invalid("turn_tiles: ", product_.columns, " columns in several blocks do not fill the tiles of each");
  if (product_.tiles && !product_.b.packed && !fills)
    return invalid("tiles of ", split_.nr, " columns do not divide ", product_.columns, " columns");
  prepare_counted();
  allocate();
  return absl::OkStatus();
}

// Allocates the scratch for packed and copied operands, partial results and tiles.
void CpuContract::allocate() {
  const CpuSide &a = product_.a, &b = product_.b;
  const bool tiles = product_.tiles.has_value();
  if (product_.image) {
    copy_ = image_copy_of(product_, split_);
    image_buffer() = out_.shared(product_.rows_are_pixels() ? "a_image" : "b_image",
                                 product_.packed_dtype(product_.image_side()), {copy_.elements});
  }
  if (product_.merged) {
    // Rows of the copy whose distance is a multiple of 4096 bytes would share cache sets, so they are padded.
    pitch_ = split_.columns_per_block;
    if (pitch_ * size_of(product_.packed_dtype(b)) % 4096 == 0) pitch_ += product_.lanes;
    b_buffer_ = out_.shared("b_rows", product_.packed_dtype(b), {split_.depth, pitch_});
  } else if (b.packed && b_buffer_ < 0) {
    pitch_ = split_.nr;
    b_buffer_ = out_.shared("b_panels", product_.packed_dtype(b), {split_.panels_per_block, split_.depth, split_.nr});
  }
  if (a.packed && a_buffer_ < 0)
    a_buffer_ = out_.shared("a_tiles", product_.packed_dtype(a),
                            {split_.row_tiles * split_.outer_rows_per_block, tiles ? split_.mr : split_.left_depth,
                             tiles ? split_.depth : split_.mr});
  if (split_.k_blocks > 1)
    partial_ = out_.shared("partial", product_.dtype, {partial_rows(), split_.columns_per_block});
  heavy_ = tiles || product_.has_heavy_epilogue();
  if (heavy_ || product_.turned || (product_.image && product_.columns_are_pixels()))
    spill_ = out_.shared("tile", product_.dtype, {split_.mr, split_.nr});
}

void CpuContract::place_block() {
  block_place_.assign(product_.domain.atoms.size(), fixed(0));
  int64_t inside = 1;
  const auto digit = [&](const std::string& name, int64_t extent) {
    const Affine out = extent == 1 ? fixed(0) : affine(out_.derived(name, {affine(kBlockVar)}, inside, extent));
    inside *= extent;
    return out;
  };
  const Affine column_task = digit("column_task", split_.column_tasks);
  const Affine row_task = digit("row_task", split_.row_tasks);
  const auto atoms = [&](const std::vector<AtomId>& list, AtomId except) {
    for (size_t i = list.size(); i-- > 0;)
      if (list[i] != except && list[i] != product_.height && list[i] != product_.outer_row_atom)
        block_place_[list[i]] = digit(product_.domain.atoms[list[i]].name, product_.domain.atoms[list[i]].extent);
  };
  atoms(product_.domain.m, product_.row_atom);
  if (product_.columns_are_pixels()) atoms(product_.domain.n, product_.column_atom);
  atoms(product_.domain.batch, -1);
  out_.kernel().grid = inside;
  (product_.outer_row_atom >= 0 ? first_outer_row_ : first_row_) =
      sum(fixed(0), row_task, product_.outer_row_atom >= 0 ? split_.outer_rows_per_task : split_.rows_per_task);
  first_panel_ = sum(fixed(0), column_task, split_.panels_per_task);
  first_image_row_ = sum(fixed(0), product_.rows_are_pixels() ? row_task : column_task, split_.image_rows_per_task);
}

absl::StatusOr<Kernel> CpuContract::run() {
  if (elements(product_.group.nodes[product_.domain.contract].shape) == 0)
    return unimplemented("a contraction without results");
  const auto scope = out_.values_of(product_.domain.contract);
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

#include "compiler/kernel/near.h"

#include <bit>

#include "compiler/base/log2.h"
#include "compiler/kernel/verify.h"

namespace wl {
namespace {

constexpr int kPiece = 3, kRows = 3;  // bits: elements of 16 bytes, rows that swap them
constexpr int64_t kAlignment = 1024;  // bytes

bool in_memory(const Instr& instr) {
  return instr.op == InstrOp::kMma && multiplies_in_memory(instr.matrix);
}

bool whole_atoms(const Affine& offset) {
  bool whole = offset.base % kNearAtom == 0;
  for (const auto& [var, coefficient] : offset.terms) whole = whole && coefficient % kNearAtom == 0;
  return whole;
}

// Whether every group of waves has whole rows of 64 for itself.
bool groups_have_rows(MatrixOp matrix, const Layout& layout) {
  int64_t waves = 1, own = fragments_of(matrix).c.count('u');
  bool whole = true;
  for (const Layout::Base& base : layout.bases) {
    if (base.kind != 'u') continue;
    whole = whole && (waves < own || layout.part(base, 0) % kNearRow == 0);
    waves *= 2;
  }
  return whole;
}

// Whether the sums of a group have as many columns as the instruction has a form for: 64, 128, or any number of 256.
bool has_columns(const Instr& mma, const Layout& sums) {
  const MatrixInfo& row = info(mma.matrix);
  const int64_t columns = sums.repeats(1) / fragments_of(mma.matrix).c.repeats(1) * row.n;
  return columns == kNearColumns / 4 || columns == kNearColumns / 2 || columns % kNearColumns == 0;
}

class Sequence {
 public:
  explicit Sequence(const Kernel& kernel) : kernel_(kernel), factors_(near_factors(kernel)) {}

  absl::Status check(const std::vector<Instr>& body) {
    for (const Instr& instr : body) {
      const bool factor = factors_.contains(instr.result);
      const bool may = factor || in_memory(instr) || instr.op == InstrOp::kAsyncLoad || instr.op == InstrOp::kCommit;
      if (instr.op == InstrOp::kMmaWait)
        open_ = nullptr;
      else if (open_ != nullptr && !may)
        return too_early(instr);
      else if (factor)
        open_ = &instr;
      WL_RETURN_IF_ERROR(check(instr.body));
      if (instr.op == InstrOp::kLoop && open_ != nullptr) return too_early(instr);
    }
    return absl::OkStatus();
  }
  absl::Status end() const {
    return open_ == nullptr ? absl::OkStatus()
                            : absl::InternalError(cat("kernel ", kernel_.name, ": no wait for the product of ",
                                                      print(kernel_, *open_)));
  }

 private:
  absl::Status too_early(const Instr& instr) const {
    return absl::InternalError(cat("kernel ", kernel_.name, ": no wait for the product of ", print(kernel_, *open_),
                                   " before ", print(kernel_, instr)));
  }

  const Kernel& kernel_;
  NearFactors factors_;
  const Instr* open_ = nullptr;  // the last factor that has not been waited for
};

}  // namespace

NearFactors near_factors(const Kernel& kernel) {
  NearFactors out;
  each_instr(kernel.body, [&](const Instr& instr) {
    if (!in_memory(instr) || instr.args.size() != 2) return;
    if (!holds_left(instr.matrix)) out.insert({instr.args[0], {instr.matrix, info(instr.matrix).left}});
    out.insert({instr.args[1], {instr.matrix, info(instr.matrix).right}});
  });
  return out;
}

Swizzle near_swizzle(bool along_k, int64_t along) {
  Swizzle out{kRows, kPiece, kPiece};
  if (along_k || along <= kNearRow) return out;
  out.column = out.rows = log2_floor(kNearRow);
  out.panels = log2_floor(along / kNearRow);
  return out;
}

int64_t near_place(bool along_k, int64_t at, int64_t k) {
  return at * kNearRow + (along_k ? k : k * kNearRow);
}

std::string near_problem(const Kernel& kernel, const NearFactors& factors, const Instr& instr) {
  for (const TileId arg : instr.args)
    if (factors.contains(arg) && !in_memory(instr)) return "a factor in memory is multiplied, and nothing else";
  if (in_memory(instr) && !has_columns(instr, kernel.tiles[instr.result].layout))
    return "no instruction multiplies so many columns in memory";
  const auto factor = factors.find(instr.result);
  if (factor == factors.end()) return "";
  const bool along_k = instr.op == InstrOp::kWords;
  if (!along_k && instr.op != InstrOp::kWordsAcross) return "a factor in memory has no other value";
  const KernelBuffer& buffer = kernel.buffers[instr.slice.buffer];
  const Tile& tile = kernel.tiles[instr.result];
  const int64_t n = tile.layout.shape[0], pitch = along_k ? kNearRow : instr.gap;
  if (buffer.level != Level::kShared || buffer.dtype != factor->second.dtype || !tile.bound.empty())
    return "a factor is in shared memory, of the instruction's dtype and without bounds";
  if (buffer.swizzle != near_swizzle(along_k, pitch) ||
      (!along_k && (pitch % kNearRow != 0 || !std::has_single_bit(static_cast<uint64_t>(pitch)) || n > pitch)) ||
      instr.slice.strides != (along_k ? std::vector<int64_t>{kNearRow, 2} : std::vector<int64_t>{1, 2 * pitch}) ||
      2 * tile.layout.shape[1] > kNearRow || !groups_have_rows(factor->second.matrix, tile.layout))
    return "a factor is not in the order in which the instruction reads shared memory";
  if (buffer.byte_offset % kAlignment != 0 || !whole_atoms(instr.slice.offset))
    return "a factor begins at a multiple of 1024 bytes";
  return "";
}

absl::Status check_near_order(const Kernel& kernel) {
  Sequence order(kernel);
  WL_RETURN_IF_ERROR(order.check(kernel.body));
  return order.end();
}

}  // namespace wl

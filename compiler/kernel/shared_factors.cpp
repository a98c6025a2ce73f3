#include "compiler/kernel/shared_factors.h"

#include <algorithm>
#include <bit>

#include "compiler/base/log2.h"
#include "compiler/kernel/verify.h"

namespace wl {
namespace {

// The pieces of a row are permuted by XORing this many bits of the row's number into the piece's number.
constexpr int kRows = 3;
constexpr int64_t kPiece = 16;        // bytes of a piece of a row; pieces are permuted as a whole
constexpr int64_t kAlignment = 1024;  // a factor's address is a multiple of this many bytes
constexpr int64_t kMostBoxRows = 256;

bool in_memory(const Instr& instr) {
  return instr.op == InstrOp::kMma && multiplies_in_memory(instr.matrix);
}

bool whole_atoms(const Affine& offset, DType dtype) {
  const int64_t atom = shared_row_elements(dtype) << kRows;
  bool whole = offset.base % atom == 0;
  for (const auto& [var, coefficient] : offset.terms) whole = whole && coefficient % atom == 0;
  return whole;
}

// Whether each group of waves that multiply together computes whole blocks of 64 rows, which no other group shares.
bool groups_have_rows(MatrixOp matrix, const Layout& layout) {
  int64_t waves = 1, own = fragments_of(matrix).c.count('u');
  bool whole = true;
  for (const Layout::Base& base : layout.bases) {
    if (base.kind != 'u') continue;
    whole = whole && (waves < own || layout.part(base, 0) % kSharedFactorRows == 0);
    waves *= 2;
  }
  return whole;
}

// Whether matrix instructions can compute as many columns of sums as a group of waves has: one instruction computes 64,
// 128 or 256 columns, and several instructions compute a multiple of 256.
bool has_columns(const Instr& mma, const Layout& sums) {
  const MatrixInfo& row = info(mma.matrix);
  const int64_t columns = sums.repeats(1) / fragments_of(mma.matrix).c.repeats(1) * row.n;
  return columns == kSharedFactorColumns / 4 || columns == kSharedFactorColumns / 2 ||
         columns % kSharedFactorColumns == 0;
}

class Sequence {
 public:
  explicit Sequence(const Kernel& kernel) : kernel_(kernel), factors_(shared_factors(kernel)) {}

  absl::Status check(const std::vector<Instr>& body) {
    for (const Instr& instr : body) {
      const bool factor = factors_.contains(instr.result);
      const bool may = factor || in_memory(instr) || info(instr.op).is_async_copy() || instr.op == InstrOp::kCommit;
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
  SharedFactors factors_;
  const Instr* open_ = nullptr;  // the last shared factor whose product has not been waited for
};

}  // namespace

SharedFactors shared_factors(const Kernel& kernel) {
  SharedFactors out;
  each_instr(kernel.body, [&](const Instr& instr) {
    if (!in_memory(instr) || instr.args.size() != 2) return;
    if (!holds_left(instr.matrix)) out.insert({instr.args[0], {instr.matrix, info(instr.matrix).left}});
    out.insert({instr.args[1], {instr.matrix, info(instr.matrix).right}});
  });
  return out;
}

int64_t shared_row_elements(DType dtype) {
  return 128 / size_of(dtype);
}

Swizzle shared_factor_swizzle(DType dtype, bool along_k, int64_t along) {
  // Eight rows permute their pieces in eight different ways, and a row has eight pieces, so `bits` and `shift` are
  // equal.
  Swizzle out{kRows, log2_floor(kPiece / size_of(dtype)), kRows};
  if (along_k || along <= shared_row_elements(dtype)) return out;
  out.column = out.rows = log2_floor(shared_row_elements(dtype));
  out.panels = log2_floor(along / shared_row_elements(dtype));
  return out;
}

int64_t shared_factor_place(DType dtype, bool along_k, int64_t at, int64_t k) {
  return at * shared_row_elements(dtype) + (along_k ? k : k * shared_row_elements(dtype));
}

namespace {

// Splits an offset in a matrix, whose rows are `pitch` elements apart, into a row and a column. Terms that are no
// multiple of `pitch` count as columns.
struct RowAndColumn {
  Affine row, column;
};
RowAndColumn in_matrix(const Affine& offset, int64_t pitch) {
  RowAndColumn out{{offset.base / pitch, {}}, {offset.base % pitch, {}}};
  for (const auto& [var, coefficient] : offset.terms)
    if (coefficient % pitch == 0)
      out.row.add(var, coefficient / pitch);
    else
      out.column.add(var, coefficient);
  return out;
}

bool same(Affine a, const Affine& b) {
  for (const auto& [var, coefficient] : b.terms) a.add(var, -coefficient);
  return a.base == b.base && std::all_of(a.terms.begin(), a.terms.end(), [](const auto& t) { return t.second == 0; });
}

}  // namespace

std::optional<MatrixBox> box_of(const Kernel& kernel, const Instr& copy) {
  const KernelBuffer &from = kernel.buffers[copy.slice.buffer], &to = kernel.buffers[copy.into.buffer];
  const std::vector<int64_t>& shape = kernel.tiles[copy.args[0]].layout.shape;
  const int64_t piece = kPiece / size_of(from.dtype), columns = shared_row_elements(from.dtype);
  if (shape.size() != 2 || copy.slice.strides[1] != 1 || shape[1] % columns != 0 || shape[0] > kMostBoxRows)
    return std::nullopt;
  const bool in_panels = shape[1] > columns;
  const bool in_place = to.dtype == from.dtype && to.swizzle == shared_factor_swizzle(to.dtype, !in_panels, shape[1]) &&
                        copy.into.strides == std::vector<int64_t>{shape[1], 1} &&
                        whole_atoms(copy.into.offset, to.dtype) && shape[0] % (1 << kRows) == 0 &&
                        (!in_panels || shape[0] == int64_t{1} << to.swizzle.rows);
  MatrixBox out;
  out.rows = shape[0];
  out.columns = columns;
  out.boxes = shape[1] / columns;
  out.pitch = copy.slice.strides[0];
  if (!in_place || out.pitch < 1 || out.pitch % piece != 0) return std::nullopt;
  const RowAndColumn first = in_matrix(copy.slice.offset, out.pitch);
  out.row = first.row;
  out.column = first.column;
  out.matrix_rows = elements(from.shape) / out.pitch;
  out.matrix_columns = out.pitch;
  bool ends = false;  // whether a guard limits the columns of the matrix that may be read
  for (const SliceGuard& guard : copy.guards) {
    const bool of_rows = guard.strides == std::vector<int64_t>{1, 0};
    if ((!of_rows && guard.strides != std::vector<int64_t>{0, 1}) || !same(guard.at, of_rows ? out.row : out.column))
      return std::nullopt;
    (of_rows ? out.matrix_rows : out.matrix_columns) = guard.extent;
    ends = ends || !of_rows;
  }
  if (!ends && out.pitch < shape[1]) return std::nullopt;
  if (out.matrix_columns % piece != 0 || out.matrix_columns > out.pitch) return std::nullopt;
  return out;
}

std::string shared_factor_problem(const Kernel& kernel, const SharedFactors& factors, const Instr& instr) {
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
  const DType dtype = factor->second.dtype;
  const int64_t n = tile.layout.shape[0], row = shared_row_elements(dtype), pitch = along_k ? row : instr.gap;
  const int64_t word = elements_of_word(dtype);
  if (buffer.level != Level::kShared || buffer.dtype != dtype || !tile.bound.empty())
    return "a factor is in shared memory, of the instruction's dtype and without bounds";
  if (buffer.swizzle != shared_factor_swizzle(dtype, along_k, pitch) || (!along_k && size_of(dtype) != 2) ||
      (!along_k && (pitch % row != 0 || !std::has_single_bit(static_cast<uint64_t>(pitch)) || n > pitch)) ||
      instr.slice.strides != (along_k ? std::vector<int64_t>{row, word} : std::vector<int64_t>{1, word * pitch}) ||
      word * tile.layout.shape[1] > row || !groups_have_rows(factor->second.matrix, tile.layout))
    return "a factor is not in the order in which the instruction reads shared memory";
  if (buffer.byte_offset % kAlignment != 0 || !whole_atoms(instr.slice.offset, dtype))
    return "a factor begins at a multiple of 1024 bytes";
  return "";
}

absl::Status check_shared_factor_order(const Kernel& kernel) {
  Sequence order(kernel);
  WL_RETURN_IF_ERROR(order.check(kernel.body));
  return order.end();
}

}  // namespace wl

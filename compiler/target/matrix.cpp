#include "compiler/target/matrix.h"

#include <algorithm>

#include "compiler/target/target.h"

namespace wl {
namespace {

template <typename Accept>
std::optional<MatrixOp> first_matrix(Accept accept) {
  const std::span<const MatrixInfo> rows = matrices();
  const auto at = std::find_if(rows.begin(), rows.end(), accept);
  return at == rows.end() ? std::nullopt : std::optional(at->op);
}

}  // namespace

std::span<const MatrixInfo> matrices() {
#define WL_MATRIX(id, name, m, n, k, left, right, sum, feature, a, b, c) \
  {MatrixOp::id, name, m, n, k, left, right, sum, feature, a, b, c},
  static constexpr MatrixInfo kMatrices[] = {
#include "compiler/target/matrix.def"
  };
  return kMatrices;
}

const MatrixInfo& info(MatrixOp op) {
  return matrices()[static_cast<size_t>(op)];
}

std::optional<MatrixOp> matrix_named(std::string_view name) {
  return first_matrix([name](const MatrixInfo& row) { return row.name == name; });
}

std::vector<MatrixOp> matrices_for(DType left, DType right, uint32_t features, bool resident) {
  std::vector<MatrixOp> out;
  for (const MatrixInfo& row : matrices()) {
    if (row.left != left || row.right != right || (row.feature & features) != row.feature) continue;
    // A left factor in registers is made by the kernel instruction `pack`, which cannot make words of one element.
    if (resident && elements_of_word(row.left) == 1) continue;
    if (resident ? holds_left(row.op) || !multiplies_in_memory(row.op) : !holds_left(row.op)) out.push_back(row.op);
  }
  const auto products = [](MatrixOp op) { return info(op).m * info(op).n * info(op).k; };
  std::stable_sort(out.begin(), out.end(), [&](MatrixOp a, MatrixOp b) { return products(a) > products(b); });
  return out;
}

bool multiplies_in_memory(MatrixOp op) {
  return info(op).feature == kWaveGroups;
}

bool holds_left(MatrixOp op) {
  return op == MatrixOp::kWgmma64HeldBf16 || op == MatrixOp::kWgmma64HeldF16;
}

}  // namespace wl

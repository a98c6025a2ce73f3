// Contractions of the oracle: the demanded rows of both operands are gathered into contiguous panels, and panels are
// multiplied a register block at a time. Lane sums are taken in one order on every machine: same arguments, same bytes.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "compiler/ir/evaluator.h"
#include "compiler/ir/ops.h"

namespace wl {
namespace {

typedef double Doubles __attribute__((vector_size(32)));
typedef float Floats __attribute__((vector_size(32)));
constexpr int64_t kPadTerms = 8;

// Rows [0, MR) of a times rows [0, NR) of b over n terms (a multiple of 8): dot products.
template <typename T, typename Vector, int MR, int NR>
[[gnu::always_inline]] inline void dots(const T* a, const T* b, int64_t n, T out[MR][NR]) {
  constexpr int kLanes = sizeof(Vector) / sizeof(T);
  Vector sum[MR][NR] = {};
  for (int64_t k = 0; k < n; k += kLanes) {
    Vector bs[NR];
#pragma GCC unroll 8
    for (int j = 0; j < NR; ++j) __builtin_memcpy(&bs[j], b + j * n + k, sizeof(Vector));
#pragma GCC unroll 8
    for (int i = 0; i < MR; ++i) {
      Vector as;
      __builtin_memcpy(&as, a + i * n + k, sizeof(Vector));
#pragma GCC unroll 8
      for (int j = 0; j < NR; ++j) sum[i][j] += as * bs[j];
    }
  }
  for (int i = 0; i < MR; ++i) {
    for (int j = 0; j < NR; ++j) {
      out[i][j] = 0;
      for (int lane = 0; lane < kLanes; ++lane) out[i][j] += sum[i][j][lane];
    }
  }
}

// `rows` (1 or 2) rows of a against 4 or 1 rows of b.
template <typename T, typename Vector>
[[gnu::always_inline]] inline void block(const T* a, const T* b, int64_t n, int rows, int columns, T out[2][4]) {
  if (rows == 2 && columns == 4) return dots<T, Vector, 2, 4>(a, b, n, out);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      T one[1][1];
      dots<T, Vector, 1, 1>(a + i * n, b + j * n, n, one);
      out[i][j] = one[0][0];
    }
  }
}

using DoubleBlock = void (*)(const double*, const double*, int64_t, int, int, double[2][4]);
using FloatBlock = void (*)(const float*, const float*, int64_t, int, int, float[2][4]);

void double_block(const double* a, const double* b, int64_t n, int rows, int columns, double out[2][4]) {
  block<double, Doubles>(a, b, n, rows, columns, out);
}
void float_block(const float* a, const float* b, int64_t n, int rows, int columns, float out[2][4]) {
  block<float, Floats>(a, b, n, rows, columns, out);
}
#if defined(__x86_64__)
// No fused multiply-add here, so the results are those of the functions above.
[[gnu::target("avx2")]] void double_block_avx2(const double* a, const double* b, int64_t n, int rows, int columns,
                                               double out[2][4]) {
  block<double, Doubles>(a, b, n, rows, columns, out);
}
[[gnu::target("avx2")]] void float_block_avx2(const float* a, const float* b, int64_t n, int rows, int columns,
                                              float out[2][4]) {
  block<float, Floats>(a, b, n, rows, columns, out);
}
#endif

DoubleBlock pick_double_block() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return double_block_avx2;
#endif
  return double_block;
}
FloatBlock pick_float_block() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return float_block_avx2;
#endif
  return float_block;
}

// Rows of one operand: values, and the two factors of the bound. The bound of a dot product is
//   sum |a| (eb + c|b|) + ea (|b| + eb),  c the accumulation factor: `main` and `error` of a meet those of b crosswise.
struct Panel {
  std::vector<double> value;
  std::vector<float> main, error;
  bool exact = true;   // no bounds
  bool finite = true;  // no infinite bound
};

void gather(const Column& from, const ElementSet& positions, const std::vector<int64_t>& bases, size_t begin,
            size_t end, const std::vector<int64_t>& steps, int64_t padded, double factor, bool is_b, Panel& panel) {
  size_t total = (end - begin) * static_cast<size_t>(padded);
  panel.value.assign(total, 0);
  panel.main.assign(total, 0);
  panel.error.assign(total, 0);
  panel.exact = panel.finite = true;
  for (size_t r = begin; r < end; ++r) {
    size_t to = (r - begin) * static_cast<size_t>(padded);
    for (int64_t step : steps) {
      auto p = static_cast<size_t>(positions.position(bases[r] + step));
      double v = from.value[p], magnitude = std::fabs(v);
      float e = from.bound[p];
      panel.value[to] = v;
      panel.main[to] = static_cast<float>(is_b ? e + factor * magnitude : magnitude);
      panel.error[to] = is_b ? static_cast<float>(magnitude + e) : e;
      panel.exact &= e == 0;
      panel.finite &= std::isfinite(e);
      ++to;
    }
  }
}

struct Pair {
  int32_t a, b;      // row numbers
  int64_t position;  // in the output column
};

}  // namespace

void Evaluator::compute_contract(const Node& at, const ElementSet& set, Column& out) {
  const NodeId ids[2] = {at.operands[0], at.operands[1]};
  ContractMaps maps(at, node(ids[0]).shape, node(ids[1]).shape);
  const int64_t terms = maps.terms;
  const Rounding rounding(at.dtype);
  if (terms == 0) return;  // sums of nothing: zeros
  const double factor = accumulation_factor(at.dtype, terms);
  const std::vector<int64_t> steps[2] = {maps.a_step.all(), maps.b_step.all()};
  const int64_t padded = (terms + kPadTerms - 1) / kPadTerms * kPadTerms;

  std::vector<int64_t> bases[2];
  std::vector<Pair> pairs(static_cast<size_t>(set.count()));
  for (int which = 0; which < 2; ++which) {
    const IndexMap& row = which == 0 ? maps.a_row : maps.b_row;
    ElementSet rows(elements(node(ids[which]).shape));
    IndexCursor collect(row);
    set.for_each([&](int64_t i) { rows.insert(collect(i)); });
    rows.freeze();
    rows.for_each([&](int64_t base) { bases[which].push_back(base); });
    IndexCursor cursor(row);
    size_t k = 0;
    set.for_each([&](int64_t i) {
      auto number = static_cast<int32_t>(rows.position(cursor(i)));
      (which == 0 ? pairs[k].a : pairs[k].b) = number;
      pairs[k].position = static_cast<int64_t>(k);
      ++k;
    });
  }

  // Panels of about 4 MB of a and 512 KB of b.
  const auto a_rows = static_cast<int32_t>(std::clamp<int64_t>((int64_t{1} << 19) / padded, 2, 4096));
  const auto b_rows = static_cast<int32_t>(std::clamp<int64_t>((int64_t{1} << 16) / padded, 4, 4096));
  auto order = [&](const Pair& p) { return std::array<int32_t, 4>{p.a / a_rows, p.b / b_rows, p.a, p.b}; };
  std::sort(pairs.begin(), pairs.end(), [&](const Pair& p, const Pair& q) { return order(p) < order(q); });

  const DoubleBlock multiply = pick_double_block();
  const FloatBlock multiply_bounds = pick_float_block();
  Panel a, b;
  int32_t a_panel = -1;
  for (size_t begin = 0; begin < pairs.size();) {
    const int32_t pa = pairs[begin].a / a_rows, pb = pairs[begin].b / b_rows;
    if (pa != a_panel) {
      gather(columns_[ids[0]], *sets_[ids[0]], bases[0], static_cast<size_t>(pa) * a_rows,
             std::min(bases[0].size(), (static_cast<size_t>(pa) + 1) * a_rows), steps[0], padded, factor, false, a);
      a_panel = pa;
    }
    gather(columns_[ids[1]], *sets_[ids[1]], bases[1], static_cast<size_t>(pb) * b_rows,
           std::min(bases[1].size(), (static_cast<size_t>(pb) + 1) * b_rows), steps[1], padded, factor, true, b);
    size_t end = begin;
    while (end < pairs.size() && pairs[end].a / a_rows == pa && pairs[end].b / b_rows == pb) ++end;
    while (begin < end) {
      // Pairs (a, b), (a, b+1), ... as far as they follow; and the same columns of row a+1, if they are wanted too.
      size_t row_end = begin;
      while (row_end < end && pairs[row_end].a == pairs[begin].a) ++row_end;
      size_t width = row_end - begin, next_end = row_end;
      while (next_end < end && pairs[next_end].a == pairs[begin].a + 1) ++next_end;
      bool two = row_end < end && next_end - row_end == width;
      for (size_t j = 0; two && j < width; ++j) two = pairs[begin + j].b == pairs[row_end + j].b;
      for (size_t j = 0; j < width;) {
        int columns = 1;
        if (two && j + 4 <= width && pairs[begin + j + 3].b == pairs[begin + j].b + 3) columns = 4;
        const int64_t a_at = (pairs[begin].a - pa * a_rows) * padded,
                      b_at = (pairs[begin + j].b - pb * b_rows) * padded;
        double value[2][4];
        float grown[2][4], carried[2][4] = {};
        multiply(&a.value[a_at], &b.value[b_at], padded, two ? 2 : 1, columns, value);
        multiply_bounds(&a.main[a_at], &b.main[b_at], padded, two ? 2 : 1, columns, grown);
        if (!a.exact) multiply_bounds(&a.error[a_at], &b.error[b_at], padded, two ? 2 : 1, columns, carried);
        for (int i = 0; i < (two ? 2 : 1); ++i) {
          for (int c = 0; c < columns; ++c) {
            const Pair& pair = pairs[(i == 0 ? begin : row_end) + j + c];
            double v = value[i][c], bound = 0;
            if (!rounding.floating) {
              v = to_integer(at.dtype, DType::i64, v);
            } else if (std::isfinite(v)) {
              bound = (static_cast<double>(grown[i][c]) + carried[i][c]) * (1 + 1e-3) + rounding.unit * std::fabs(v) +
                      rounding.tiny;
            } else if (!a.finite || !b.finite) {
              bound = std::numeric_limits<double>::infinity();
            }
            out.put(pair.position, rounding.stored({v, bound}));
          }
        }
        j += columns;
      }
      begin = two ? next_end : row_end;
    }
  }
}

}  // namespace wl

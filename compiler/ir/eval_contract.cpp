#include <algorithm>
#include <array>
#include <cmath>

#include "compiler/ir/evaluator.h"
#include "compiler/ir/ops.h"
#include "compiler/ir/panel.h"

namespace wl {
namespace {

struct Pair {
  int32_t a, b;      // the numbers of the two rows that are multiplied: a row of operand a and a row of operand b
  int64_t position;  // index, among the demanded elements of the result, of the dot product of these rows
};

// The rows of both operands that a contraction needs. Each element of the result is the dot product of a row of a and a
// row of b; a row is the elements that this sum runs over. `bases` has the index of the first element of each row, for
// a and for b; `pairs` has the two rows of each element of the result.
struct Rows {
  std::vector<int64_t> bases[2];
  std::vector<Pair> pairs;
};

Rows rows_of(const ElementSet& set, const ContractMaps& maps, const int64_t sizes[2]) {
  Rows out;
  out.pairs.resize(static_cast<size_t>(set.count()));
  for (int which = 0; which < 2; ++which) {
    const IndexMap& row = which == 0 ? maps.a_row : maps.b_row;
    ElementSet rows(sizes[which]);
    IndexCursor collect(row);
    set.for_each([&](int64_t i) { rows.insert(collect(i)); });
    rows.freeze();
    rows.for_each([&](int64_t base) { out.bases[which].push_back(base); });
    IndexCursor cursor(row);
    size_t k = 0;
    set.for_each([&](int64_t i) {
      auto number = static_cast<int32_t>(rows.position(cursor(i)));
      (which == 0 ? out.pairs[k].a : out.pairs[k].b) = number;
      out.pairs[k].position = static_cast<int64_t>(k);
      ++k;
    });
  }
  return out;
}

// One panel (a contiguous copy of some rows) of each operand, and the number of the first row in each panel.
struct Panels {
  Panel a, b;
  int32_t a_first = 0, b_first = 0;
};

// Computes the dot products of `pairs`, whose rows lie in the two panels, in blocks of up to 2 x 4 results. `pairs`
// must be sorted by the row of a, then by the row of b.
void put_products(const PanelProduct& multiply, const Panels& panels, std::span<const Pair> pairs, Column& out) {
  for (size_t begin = 0; begin < pairs.size();) {
    // Takes all pairs of one row of a. If the next row of a is paired with the same rows of b, its pairs are taken as
    // well.
    size_t row_end = begin;
    while (row_end < pairs.size() && pairs[row_end].a == pairs[begin].a) ++row_end;
    size_t width = row_end - begin, next_end = row_end;
    while (next_end < pairs.size() && pairs[next_end].a == pairs[begin].a + 1) ++next_end;
    bool two = row_end < pairs.size() && next_end - row_end == width;
    for (size_t j = 0; two && j < width; ++j) two = pairs[begin + j].b == pairs[row_end + j].b;
    for (size_t j = 0; j < width;) {
      int columns = 1;
      if (two && j + 4 <= width && pairs[begin + j + 3].b == pairs[begin + j].b + 3) columns = 4;
      Estimate block[2][4];
      multiply(panels.a, pairs[begin].a - panels.a_first, panels.b, pairs[begin + j].b - panels.b_first, two ? 2 : 1,
               columns, block);
      for (int i = 0; i < (two ? 2 : 1); ++i) {
        for (int c = 0; c < columns; ++c) out.put(pairs[(i == 0 ? begin : row_end) + j + c].position, block[i][c]);
      }
      j += columns;
    }
    begin = two ? next_end : row_end;
  }
}

double largest(const Column& column) {
  double most = 0;
  for (double v : column.value) most = std::max(most, std::fabs(v));
  return most;
}

}  // namespace

void Evaluator::compute_contract(const Node& at, const ElementSet& set, Column& out) {
  const NodeId ids[2] = {at.operands[0], at.operands[1]};
  ContractMaps maps(at, node(ids[0]).shape, node(ids[1]).shape);
  const int64_t terms = maps.terms;
  if (terms == 0) return;  // a sum of no terms is zero, and `out` already holds zeros
  const std::vector<int64_t> steps[2] = {maps.a_step.all(), maps.b_step.all()};
  const int64_t padded = (terms + kPanelAlignment - 1) / kPanelAlignment * kPanelAlignment;

  const int64_t sizes[2] = {elements(node(ids[0]).shape), elements(node(ids[1]).shape)};
  auto [bases, pairs] = rows_of(set, maps, sizes);

  // The values of a panel of a take about 4 MB and those of a panel of b 512 KB, so that both stay in cache.
  const auto a_rows = static_cast<int32_t>(std::clamp<int64_t>((int64_t{1} << 19) / padded, 2, 4096));
  const auto b_rows = static_cast<int32_t>(std::clamp<int64_t>((int64_t{1} << 16) / padded, 4, 4096));
  const auto order = [&](const Pair& p) { return std::array<int32_t, 4>{p.a / a_rows, p.b / b_rows, p.a, p.b}; };
  std::sort(pairs.begin(), pairs.end(), [&](const Pair& p, const Pair& q) { return order(p) < order(q); });

  const double inexact = at.tf32 ? 0x1p-10 : 0;  // tf32 cuts the mantissa off after 10 bits
  const PanelProduct multiply(at.dtype, terms, padded, inexact);
  const auto gather = [&, &starts = bases](int which, int32_t first, int32_t rows, Panel& to) {
    const auto from = static_cast<size_t>(first);
    const size_t count = std::min(starts[which].size() - from, static_cast<size_t>(rows));
    to.gather(columns_[ids[which]], *sets_[ids[which]], std::span(starts[which]).subspan(from, count), steps[which],
              padded, which == 1, multiply.literal_worst(), inexact);
  };
  Panels panels;
  int32_t a_panel = -1;
  for (size_t begin = 0; begin < pairs.size();) {
    const int32_t pa = pairs[begin].a / a_rows, pb = pairs[begin].b / b_rows;
    panels.a_first = pa * a_rows;
    panels.b_first = pb * b_rows;
    if (pa != a_panel) gather(0, panels.a_first, a_rows, panels.a);
    a_panel = pa;
    gather(1, panels.b_first, b_rows, panels.b);
    size_t end = begin;
    while (end < pairs.size() && pairs[end].a / a_rows == pa && pairs[end].b / b_rows == pb) ++end;
    put_products(multiply, panels, std::span(pairs).subspan(begin, end - begin), out);
    begin = end;
  }
  if (is_float(at.dtype) || size_of(at.dtype) < 4) return;
  if (largest(columns_[ids[0]]) * largest(columns_[ids[1]]) * static_cast<double>(terms) < 0x1p53) return;
  // Sums of integers may exceed what a double holds exactly, so they are computed again as integers, modulo 2^64.
  IndexCursor a_base(maps.a_row), b_base(maps.b_row);
  size_t k = 0;
  set.for_each([&](int64_t i) {
    const int64_t row = a_base(i), column = b_base(i);
    uint64_t sum = 0;
    for (size_t t = 0; t < steps[0].size(); ++t)
      sum += static_cast<uint64_t>(bits_of(element(ids[0], row + steps[0][t]))) *
             static_cast<uint64_t>(bits_of(element(ids[1], column + steps[1][t])));
    const Estimate exact = whole_number(at.dtype, wrap(at.dtype, static_cast<int64_t>(sum)));
    out.value[k] = exact.value;
    if (!out.whole.empty()) out.whole[k] = exact.whole;
    ++k;
  });
}

}  // namespace wl

// Ops that sort or select elements. TopK consists of comparisons. If the values of an input decide the shape of a
// result, the input must be constant, and the result is computed while importing.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {
namespace {

// Ops that sort elements treat NaN as larger than all numbers, as NumPy does.
T is_nan(T x) {
  return apply(Op::ne, {x, x});
}

// Returns for each element how many elements of its row (the elements along `axis`) precede it in the sorted order. All
// pairs of elements are compared.
T rank_of(T x, int64_t axis, bool largest) {
  Call& c = x.call();
  const int64_t n = x.extent(axis);
  const T mine = unsqueeze(x, {x.rank()});
  auto perm = axes_from(0, x.rank());
  perm.erase(perm.begin() + axis);
  perm.push_back(axis);
  const T others = unsqueeze(transpose(x, perm), {axis});
  Shape row(x.shape().size() + 1, 1), column = row;
  row[static_cast<size_t>(axis)] = n;
  column.back() = n;
  const T earlier = apply(Op::lt, {c.iota(DType::i64, column, x.rank()), c.iota(DType::i64, row, axis)});
  T better = apply(largest ? Op::gt : Op::lt, {others, mine}), equal = apply(Op::eq, {others, mine});
  if (is_float(x.dtype())) {
    const T above = largest ? others : mine, below = largest ? mine : others;
    better = apply(Op::logical_or,
                   {better, apply(Op::logical_and, {is_nan(above), apply(Op::logical_not, {is_nan(below)})})});
    equal = apply(Op::logical_or, {equal, apply(Op::logical_and, {is_nan(others), is_nan(mine)})});
  }
  const T same = apply(Op::logical_and, {equal, earlier});
  return reduce(Op::reduce_sum, cast(apply(Op::logical_or, {better, same}), DType::i64), {x.rank()}, false);
}

// Returns the indices of the k best elements. They are selected one after another, each by a reduction over the
// elements that are left, which is fast enough for small k.
T choose_in_turn(T x, int64_t axis, int64_t k, bool largest) {
  Call& c = x.call();
  const auto n = static_cast<double>(x.extent(axis));
  T number = c.iota(DType::i64, x.shape(), axis), taken;
  const bool nan_last = is_float(x.dtype()) && !largest;
  // NaN becomes infinity, and the numbers of such elements are increased by n, so that these elements come last.
  if (nan_last) {
    const T nan = is_nan(x);
    number = select(nan, number + n, number);
    x = select(nan, HUGE_VAL, x);
  }
  std::vector<T> chosen;
  for (int64_t i = 0; i < k; ++i) {
    const Op op = largest ? Op::reduce_max : Op::reduce_min;
    const double worst =
        is_float(x.dtype()) ? (largest ? -HUGE_VAL : HUGE_VAL) : round_to(x.dtype(), largest ? -0x1p63 : 0x1p64);
    const T left = taken.valid() ? select(taken, worst, x) : x;
    T hit = is_extreme(left, broadcast_to(reduce(op, left, {axis}, true), x.shape()));
    if (taken.valid()) hit = apply(Op::logical_and, {hit, apply(Op::logical_not, {taken})});
    const T index = reduce(Op::reduce_min, select(hit, number, 2 * n - 1), {axis}, true);
    const T now = apply(Op::eq, {number, index});
    taken = taken.valid() ? apply(Op::logical_or, {taken, now}) : now;
    chosen.push_back(index);
  }
  const T all = concat(chosen, axis);
  if (nan_last) return select(apply(Op::ge, {all, n}), all - n, all);
  return apply(Op::min, {all, n - 1});
}

}  // namespace

T top_k(Call& c) {
  const T x = c.in(0);
  const int64_t axis = c.axis(c.attr("axis", -1), x.rank()), n = x.extent(axis);
  int64_t k = c.attr("k", 0);
  if (c.has(1)) {
    const auto given = c.ints(1);
    if (given.size() != 1) c.fail("k must be one number");
    k = given[0];
  }
  if (k < 0 || k > n) c.fail("k is ", k, ", the axis has ", n, " elements");
  const bool largest = c.attr("largest", 1) != 0;
  Shape shape = x.shape();
  shape[static_cast<size_t>(axis)] = k;
  if (k == 0 || elements(shape) == 0) {
    c.set(1, c.constant(0, DType::i64, shape));
    return c.constant(0, x.dtype(), shape);
  }
  T index;
  if (k <= 16 && n > 64) {
    index = choose_in_turn(x, axis, k, largest);
  } else {
    // Element r of the result is that element of the row which exactly r other elements precede in the sorted order.
    auto perm = axes_from(0, x.rank());
    perm.erase(perm.begin() + axis);
    perm.push_back(axis);
    const T ranks = unsqueeze(transpose(rank_of(x, axis, largest), perm), {axis});
    Shape row(shape.size() + 1, 1), column = row;
    row[static_cast<size_t>(axis)] = k;
    column.back() = n;
    const T hit = apply(Op::eq, {ranks, c.iota(DType::i64, row, axis)});
    index = reduce(Op::reduce_max, select(hit, c.iota(DType::i64, column, x.rank()), 0.0), {x.rank()}, false);
  }
  c.set(1, index);
  return take_along(x, index, axis);
}

T reverse_sequence(Call& c) {
  const T x = c.in(0);
  const int64_t time = c.axis(c.attr("time_axis", 0), x.rank()), batch = c.axis(c.attr("batch_axis", 1), x.rank());
  if (time == batch) c.fail("time_axis and batch_axis are both ", time);
  Shape line(x.shape().size(), 1);
  line[static_cast<size_t>(time)] = x.extent(time);
  const T at = c.iota(DType::i64, line, time), length = along(cast(c.in(1), DType::i64), batch, x.rank());
  const T index = select(apply(Op::lt, {at, length}), length - 1.0 - at, at);
  return take_along(x, broadcast_to(index, x.shape()), time);
}

namespace {

const Literal& known(Call& c, int input) {
  const Literal* x = c.literal(input);
  if (x == nullptr) {
    c.missing("input ", input,
              " decides the shape of the result, so it must be constant; here it is computed from data");
  }
  if (elements(x->shape) > kLiteralBytes) c.missing("input ", input, " has over ", kLiteralBytes, " elements");
  return *x;
}

}  // namespace

T non_zero(Call& c) {
  const Literal& x = known(c, 0);
  const auto strides = row_major_strides(x.shape);
  std::vector<int64_t> hits, values;
  for (int64_t i = 0; i < elements(x.shape); ++i) {
    if (x.at(i) != 0) hits.push_back(i);
  }
  for (size_t axis = 0; axis < x.shape.size(); ++axis) {
    for (const int64_t i : hits) values.push_back(i / strides[axis] % x.shape[axis]);
  }
  const auto rank = static_cast<int64_t>(x.shape.size());
  return c.set_literal(0, int_literal({rank, static_cast<int64_t>(hits.size())}, values));
}

T compress(Call& c) {
  T x = c.in(0);
  const Literal& condition = known(c, 1);
  int64_t axis = 0;
  if (c.has_attr("axis")) {
    axis = c.axis(c.attr("axis", 0), x.rank());
  } else {
    x = reshape(x, {elements(x.shape())});
  }
  std::vector<int64_t> index;
  for (int64_t i = 0; i < std::min(elements(condition.shape), x.extent(axis)); ++i) {
    if (condition.at(i) != 0) index.push_back(i);
  }
  const auto count = static_cast<int64_t>(index.size());
  if (count == 0) return slice_axis(x, axis, 0, 1, 0);
  if (count == 1) return slice_axis(x, axis, index[0], 1, 1);
  return gather_axis(x, c.literal_tensor(int_literal({count}, index), ":index"), axis);
}

T unique(Call& c) {
  // If there is only one slice, it is distinct whatever its values are, so the input need not be constant.
  const T data = c.in(0);
  const int64_t slices =
      c.has_attr("axis") ? data.extent(c.axis(c.attr("axis", 0), data.rank())) : elements(data.shape());
  if (c.literal(0) == nullptr && slices == 1) {
    c.set_literal(1, int_literal({1}, {0}));
    c.set_literal(2, int_literal({1}, {0}));
    c.set_literal(3, int_literal({1}, {1}));
    return c.has_attr("axis") ? data : reshape(data, {1});
  }
  const Literal& x = known(c, 0);
  const int64_t total = elements(x.shape);
  int64_t outer = 1, count = total, inner = 1;
  const auto rank = static_cast<int64_t>(x.shape.size());
  const bool whole = !c.has_attr("axis");
  const int64_t axis = whole ? 0 : c.axis(c.attr("axis", 0), rank);
  if (!whole) {
    count = x.shape[static_cast<size_t>(axis)];
    if (count > kLiteralBytes) c.missing(count, " slices");
    for (int64_t i = 0; i < rank; ++i) (i < axis ? outer : inner) *= i == axis ? 1 : x.shape[static_cast<size_t>(i)];
  }
  const auto element = [&](int64_t slice, int64_t i) { return x.at((i / inner * count + slice) * inner + i % inner); };
  const int64_t size = outer * inner;
  const auto compare = [&](int64_t a, int64_t b) {
    for (int64_t i = 0; i < size; ++i) {
      const double u = element(a, i), v = element(b, i);
      if (u < v || (std::isnan(v) && !std::isnan(u))) return -1;
      if (v < u || (std::isnan(u) && !std::isnan(v))) return 1;
    }
    return 0;
  };
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return compare(a, b) < 0; });
  // Each entry of `groups` lists slices that are equal, beginning with the first occurrence, since the sort is stable.
  std::vector<std::vector<int64_t>> groups;
  for (const int64_t slice : order) {
    if (groups.empty() || compare(groups.back()[0], slice) != 0) groups.emplace_back();
    groups.back().push_back(slice);
  }
  if (c.attr("sorted", 1) == 0) std::sort(groups.begin(), groups.end());
  std::vector<int64_t> first, counts, inverse(static_cast<size_t>(count));
  for (size_t g = 0; g < groups.size(); ++g) {
    first.push_back(groups[g][0]);
    counts.push_back(static_cast<int64_t>(groups[g].size()));
    for (const int64_t slice : groups[g]) inverse[static_cast<size_t>(slice)] = static_cast<int64_t>(g);
  }
  const auto distinct = static_cast<int64_t>(groups.size());
  std::vector<double> values;
  for (int64_t o = 0; o < outer; ++o) {
    for (const int64_t slice : first) {
      for (int64_t i = 0; i < inner; ++i) values.push_back(element(slice, o * inner + i));
    }
  }
  Shape shape = whole ? Shape{distinct} : x.shape;
  shape[static_cast<size_t>(axis)] = distinct;
  c.set_literal(1, int_literal({distinct}, first));
  c.set_literal(2, int_literal({count}, inverse));
  c.set_literal(3, int_literal({distinct}, counts));
  return c.set_literal(0, make_literal(x.dtype, shape, std::move(values)));
}

namespace {

struct Box {
  double left, top, right, bottom;
};

double overlap(const Box& a, const Box& b) {
  const double width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const double height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  if (width <= 0 || height <= 0) return 0;
  const auto area = [](const Box& x) { return (x.right - x.left) * (x.bottom - x.top); };
  return width * height / (area(a) + area(b) - width * height);
}

}  // namespace

T non_max_suppression(Call& c) {
  const Literal& boxes = known(c, 0);
  const Literal& scores = known(c, 1);
  if (boxes.shape.size() != 3 || scores.shape.size() != 3 || boxes.shape[2] != 4 || boxes.shape[0] != scores.shape[0] ||
      boxes.shape[1] != scores.shape[2]) {
    c.fail("boxes ", shape_text(boxes.shape), " and scores ", shape_text(scores.shape), " do not fit");
  }
  const int64_t most = c.has(2) ? static_cast<int64_t>(std::clamp(c.number(2), 0.0, 0x1p40)) : 0;
  const double threshold = c.has(3) ? c.number(3) : 0;
  const bool centred = c.attr("center_point_box", 0) != 0;
  const int64_t count = boxes.shape[1], classes = scores.shape[1];
  std::vector<int64_t> selected;
  if (elements(boxes.shape) == 0 || elements(scores.shape) == 0) return c.set_literal(0, int_literal({0, 3}, selected));
  for (int64_t batch = 0; batch < boxes.shape[0]; ++batch) {
    std::vector<Box> at;
    for (int64_t i = 0; i < count; ++i) {
      const auto v = [&](int64_t k) { return boxes.at((batch * count + i) * 4 + k); };
      if (centred) {
        at.push_back({v(0) - v(2) / 2, v(1) - v(3) / 2, v(0) + v(2) / 2, v(1) + v(3) / 2});
      } else {
        at.push_back({std::min(v(1), v(3)), std::min(v(0), v(2)), std::max(v(1), v(3)), std::max(v(0), v(2))});
      }
    }
    for (int64_t k = 0; k < classes; ++k) {
      const auto score = [&](int64_t i) { return scores.at((batch * classes + k) * count + i); };
      std::vector<int64_t> order;
      for (int64_t i = 0; i < count; ++i) {
        if (!c.has(4) || score(i) > c.number(4)) order.push_back(i);
      }
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return score(a) > score(b); });
      std::vector<int64_t> kept;
      for (const int64_t i : order) {
        if (static_cast<int64_t>(kept.size()) >= most) break;
        const bool free = std::none_of(kept.begin(), kept.end(), [&](int64_t j) {
          return overlap(at[static_cast<size_t>(i)], at[static_cast<size_t>(j)]) > threshold;
        });
        if (!free) continue;
        kept.push_back(i);
        selected.insert(selected.end(), {batch, k, i});
      }
    }
  }
  return c.set_literal(0, int_literal({static_cast<int64_t>(selected.size()) / 3, 3}, selected));
}

}  // namespace wl::onnx_import

// Reductions, and ops along one axis that are decomposed into reductions.
#include <algorithm>
#include <limits>

#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {
namespace {

struct Axes {
  std::vector<int64_t> axes;
  bool keep;
};

Axes axes_of(Call& c, int64_t rank) {
  auto given = c.ints_or_attr(1, "axes");
  const bool keep = c.attr("keepdims", 1) != 0;
  if (!given || given->empty()) {
    if (c.attr("noop_with_empty_axes", 0) != 0) return {{}, keep};
    return {axes_from(0, rank), keep};
  }
  return {c.axes(*std::move(given), rank), keep};
}

// Returns the axes that Softmax and similar ops reduce. Before opset version 13, these are all axes from `axis` on;
// since then, only `axis` is reduced.
std::vector<int64_t> softmax_axes(Call& c, int64_t rank) {
  if (c.opset() >= 13) {
    const int64_t axis = c.axis(c.attr("axis", -1), rank);
    return {axis};
  }
  const int64_t axis = c.attr("axis", 1);
  return axes_from(axis == rank ? rank : c.axis(axis, rank), rank);
}

struct Softmax {
  T shifted, exps, sum;  // x less its maximum; exp(shifted); the sum of `exps`, without the reduced axes
  std::vector<int64_t> axes;
};

Softmax softmax_parts(Call& c) {
  const T x = c.in(0);
  Softmax parts;
  parts.axes = softmax_axes(c, x.rank());
  const T max = reduce(Op::reduce_max, x, parts.axes, false);
  parts.shifted = x - stretch(max, parts.axes, x.shape());
  parts.exps = apply(Op::exp, {parts.shifted});
  parts.sum = reduce(Op::reduce_sum, parts.exps, parts.axes, false);
  return parts;
}

// Returns the index along `axis` of the largest or smallest element; the result has extent 1 along `axis`. The index
// lies within the axis whatever the elements are, NaN included.
T arg_index(T x, Op op, int64_t axis, bool last) {
  const T best = stretch(reduce(op, x, {axis}, false), {axis}, x.shape());
  const T index = x.call().iota(DType::i64, x.shape(), axis), hit = is_extreme(x, best);
  const auto end = static_cast<double>(x.extent(axis) - 1);
  return last ? reduce(Op::reduce_max, select(hit, index, 0.0), {axis}, true)
              : reduce(Op::reduce_min, select(hit, index, end), {axis}, true);
}

}  // namespace

T is_extreme(T x, T extreme) {
  const T equal = apply(Op::eq, {x, extreme});
  return is_float(x.dtype()) ? apply(Op::logical_or, {equal, apply(Op::ne, {x, x})}) : equal;
}

T reduced(Call& c, Op op, T x) {
  const auto [axes, keep] = axes_of(c, x.rank());
  return reduce(op, x, axes, keep);
}

T reduce_mean(Call& c) {
  const auto [axes, keep] = axes_of(c, c.in(0).rank());
  return mean(c.in(0), axes, keep);
}

T in_floats(Call& c, T (*f)(Call& c, T x)) {
  const T x = c.in(0);
  return is_float(x.dtype()) ? f(c, x) : cast(f(c, cast(x, DType::f64)), x.dtype());
}

T reduce_log_sum_exp(Call& c, T x) {
  const auto [axes, keep] = axes_of(c, x.rank());
  if (axes.empty()) return x;
  const T max = reduce(Op::reduce_max, x, axes, false);
  // If all elements are -inf, or one is inf, the maximum is not subtracted, since inf - inf is NaN.
  const T infinite = apply(Op::eq, {apply(Op::abs, {max}), std::numeric_limits<double>::infinity()});
  const T shift = select(infinite, 0.0, max);
  const T exps = apply(Op::exp, {x - stretch(shift, axes, x.shape())});
  const T result = apply(Op::log, {reduce(Op::reduce_sum, exps, axes, false)}) + shift;
  if (!keep) return result;
  Shape kept = x.shape();
  for (const int64_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
  return reshape(result, std::move(kept));
}

T arg_extreme(Call& c, Op op) {
  const T x = c.in(0);
  const int64_t axis = c.axis(c.attr("axis", 0), x.rank());
  if (x.extent(axis) == 0) c.fail("axis ", axis, " has no elements to choose from");
  const T index = arg_index(x, op, axis, c.attr("select_last_index", 0) != 0);
  if (c.attr("keepdims", 1) != 0) return index;
  Shape shape = x.shape();
  shape.erase(shape.begin() + axis);
  return reshape(index, std::move(shape));
}

T softmax(Call& c) {
  const Softmax parts = softmax_parts(c);
  return parts.exps / stretch(parts.sum, parts.axes, parts.exps.shape());
}

T log_softmax(Call& c) {
  const Softmax parts = softmax_parts(c);
  return parts.shifted - stretch(apply(Op::log, {parts.sum}), parts.axes, parts.exps.shape());
}

T hardmax(Call& c) {
  T x = c.in(0);
  const Shape shape = x.shape();
  const auto axes = softmax_axes(c, x.rank());
  if (axes.empty()) return c.constant(1, x.dtype(), shape);
  int64_t rows = 1, row = 1;
  for (int64_t i = 0; i < x.rank(); ++i) (std::count(axes.begin(), axes.end(), i) != 0 ? row : rows) *= x.extent(i);
  // Before opset version 13 several axes may be reduced. They are always the last axes, and are merged into one. A
  // single axis stays in its place.
  int64_t axis = axes[0];
  if (axes.size() > 1) {
    x = reshape(x, {rows, row});
    axis = 1;
  }
  const T hit = apply(Op::eq, {c.iota(DType::i64, x.shape(), axis), arg_index(x, Op::reduce_max, axis, false)});
  return reshape(cast(hit, x.dtype()), shape);
}

}  // namespace wl::onnx_import

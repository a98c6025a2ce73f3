// Scatters become gathers: each element of the output looks for the update that writes it. For this, the element's
// position is compared with the index of every update of its row, and the updates that match are reduced. For ScatterND
// with small constant indices and without a reduction, positions and indices are compared while importing.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {
namespace {

double extreme(DType dtype, bool low) {
  if (is_float(dtype)) return low ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  return round_to(dtype, low ? -0x1p63 : 0x1p64);
}

// Scatters `updates` into `data` along axis 1. If `reduction` is "none" and several updates write one element, the last
// of them counts. data and result: [before, n, after]; index: i64 [before, m, after or 1]; updates: [before, m, after].
T scatter_rows(T data, T index, T updates, const std::string& reduction) {
  Call& c = data.call();
  const Shape shape = data.shape();
  const int64_t m = index.extent(1), n = shape[1];
  if (m == 0) return data;
  // `hit` says for each position and update whether they match: [before, n, after or 1, m].
  const T asked = transpose(index, {0, 2, 1});
  const T hit = apply(Op::eq, {c.iota(DType::i64, {1, n, 1, 1}, 1), unsqueeze(asked, {1})});
  if (reduction == "none") {
    const T number = c.iota(DType::i64, {1, 1, 1, m}, 3);
    const T last = reduce(Op::reduce_max, select(hit, number, -1.0), {3}, false);
    const T update = take_along(updates, broadcast_to(apply(Op::max, {last, 0.0}), shape), 1);
    return select(apply(Op::ge, {last, 0.0}), update, data);
  }
  const T values = unsqueeze(transpose(updates, {0, 2, 1}), {1});
  if (reduction == "add") return data + reduce(Op::reduce_sum, select(hit, values, 0.0), {3}, false);
  if (reduction == "mul") return data * reduce(Op::reduce_prod, select(hit, values, 1.0), {3}, false);
  if (reduction != "max" && reduction != "min") {
    c.fail("reduction '", reduction, "', expected none, add, mul, max or min");
  }
  const bool max = reduction == "max";
  const T best =
      reduce(max ? Op::reduce_max : Op::reduce_min, select(hit, values, extreme(data.dtype(), max)), {3}, false);
  return apply(max ? Op::max : Op::min, {data, best});
}

// Does the same as scatter_rows() for constant indices without a reduction. `last` has, for each element along axis 1,
// the number of the last update that writes it, which is the one that counts; -1: no update writes it. `last` is
// reshaped to `shape`, which must broadcast to the shape of `data`.
T scatter_known(T data, T updates, const std::vector<int64_t>& last, const Shape& shape, std::string_view name) {
  Call& c = data.call();
  std::vector<int64_t> index = last;
  std::vector<double> hit;
  for (int64_t& i : index) {
    hit.push_back(i >= 0);
    i = std::max<int64_t>(i, 0);
  }
  const T from = c.literal_tensor(int_literal(shape, index), cat(name, ":index"));
  const T update = take_along(updates, broadcast_to(from, data.shape()), 1);
  return select(c.literal_tensor(make_literal(DType::b1, shape, hit), cat(name, ":hit")), update, data);
}

constexpr int64_t kKnown = kLiteralBytes / 8;

// Returns scatter(data, updates). Arithmetic needs another dtype than bool, so bools are cast to u8 and the result is
// cast back.
template <typename Scatter>
T numeric(T data, T updates, Scatter scatter) {
  if (data.dtype() != DType::b1) return scatter(data, updates);
  return cast(scatter(cast(data, DType::u8), cast(updates, DType::u8)), DType::b1);
}

// Like place_in(), but a negative index is an error instead of counting from the end. If indices are not known,
// negative ones are moved below the range that place_in() accepts.
T place_from_front(T index, int64_t extent, const Literal* known) {
  check_places(index.call(), known, 0, extent);
  if (known != nullptr) return index;
  const T beyond = index - static_cast<double>(extent);
  return place_in(select(apply(Op::lt, {index, 0.0}), beyond, index), extent, nullptr);
}

}  // namespace

T scatter_elements(Call& c) {
  const T data = c.in(0);
  T index = c.in(1), updates = c.in(2);
  if (data.rank() < 1 || index.rank() != data.rank() || updates.shape() != index.shape()) {
    c.fail("data ", shape_text(data.shape()), ", indices ", shape_text(index.shape()), " and updates ",
           shape_text(updates.shape()), " do not fit");
  }
  const int64_t axis = c.axis(c.attr("axis", 0), data.rank()), n = data.extent(axis), m = index.extent(axis);
  index = place_in(index, n, c.literal(1));
  // Along axes other than `axis`, the indices may be shorter than the data, whose remaining elements get no update.
  std::vector<int64_t> low(data.shape().size(), 0), high = low;
  int64_t before = 1, after = 1;
  for (int64_t i = 0; i < data.rank(); ++i) {
    if (i == axis) continue;
    const int64_t less = data.extent(i) - index.extent(i);
    if (less < 0) c.fail("indices of shape ", shape_text(index.shape()), " reach beyond ", shape_text(data.shape()));
    high[static_cast<size_t>(i)] = less;
    (i < axis ? before : after) *= data.extent(i);
  }
  index = pad(index, low, high, -1);
  updates = pad(updates, low, high, 0);
  const T result = numeric(reshape(data, {before, n, after}), reshape(updates, {before, m, after}), [&](T d, T u) {
    return scatter_rows(d, reshape(index, {before, m, after}), u, c.attr_text("reduction", "none"));
  });
  return reshape(result, data.shape());
}

T scatter_nd(Call& c) {
  const T data = c.in(0), given = c.in(1), updates = c.in(2);
  const int64_t width = given.rank() < 1 ? 0 : given.extent(given.rank() - 1);
  Shape tuples = given.shape();
  if (width < 1 || width > data.rank()) {
    c.fail("indices of shape ", shape_text(given.shape()), " do not fit data of shape ", shape_text(data.shape()));
  }
  tuples.pop_back();
  const Shape whole = data.shape();
  int64_t n = 1, after = 1;
  for (size_t i = 0; i < whole.size(); ++i) (static_cast<int64_t>(i) < width ? n : after) *= whole[i];
  const int64_t m = elements(tuples);
  Shape expected = tuples;
  expected.insert(expected.end(), whole.begin() + width, whole.end());
  if (updates.shape() != expected) {
    c.fail("updates have shape ", shape_text(updates.shape()), ", expected ", shape_text(expected));
  }
  const std::string reduction = c.attr_text("reduction", "none");
  if (m == 0 || n == 0) return data;
  const Literal* known = c.literal(1);
  if (known != nullptr && reduction == "none" && n <= kKnown && elements(known->shape) <= kKnown) {
    std::vector<int64_t> last(static_cast<size_t>(n), -1);
    for (int64_t t = 0; t < m; ++t) {
      int64_t row = 0;
      for (int64_t i = 0; i < width; ++i) {
        const int64_t extent = whole[static_cast<size_t>(i)], at = known->int_at(t * width + i);
        if (at < -extent || at >= extent) c.fail("index ", at, " is out of range for extent ", extent);
        row = row * extent + (at < 0 ? at + extent : at);
      }
      last[static_cast<size_t>(row)] = t;
    }
    return reshape(scatter_known(reshape(data, {1, n, after}), reshape(updates, {1, m, after}), last, {1, n, 1}, ""),
                   whole);
  }
  T flat = c.constant(0, DType::i64, {m});
  for (int64_t i = 0; i < width; ++i) {
    const int64_t extent = whole[static_cast<size_t>(i)];
    const T part = reshape(slice_axis(given, given.rank() - 1, i, 1, 1), {m});
    flat = flat * static_cast<double>(extent) + place_in(part, extent, known, i, width);
  }
  const T result = numeric(reshape(data, {1, n, after}), reshape(updates, {1, m, after}), [&](T d, T u) {
    return scatter_rows(d, reshape(flat, {1, m, 1}), u, reduction);
  });
  return reshape(result, whole);
}

// Writes the update into a cache along one axis. Each batch element has a start position of its own on this axis.
T tensor_scatter(Call& c) {
  const T cache = c.in(0), update = c.in(1);
  const int64_t axis = c.axis(c.attr("axis", -2), cache.rank()), n = cache.extent(axis);
  Shape expected = update.shape();
  if (expected.size() != cache.shape().size()) c.fail("cache and update must have one rank");
  const int64_t length = expected[static_cast<size_t>(axis)];
  expected[static_cast<size_t>(axis)] = n;
  if (expected != cache.shape() || length > n || axis == 0) {
    c.fail("an update of shape ", shape_text(update.shape()), " does not fit a cache of shape ",
           shape_text(cache.shape()));
  }
  if (length == 0) return cache;
  Shape line(cache.shape().size(), 1);
  line[static_cast<size_t>(axis)] = n;
  const bool circular = c.attr_text("mode", "linear") == "circular";
  T offset = c.iota(DType::i64, line, axis);
  if (c.has(2)) {
    const T begin = cast(c.in(2), DType::i64);
    offset = offset - along(circular ? begin : place_from_front(begin, n - length + 1, c.literal(2)), 0, cache.rank());
  }
  if (circular) offset = apply(Op::mod, {offset, static_cast<double>(n)});
  const T inside =
      apply(Op::logical_and, {apply(Op::ge, {offset, 0.0}), apply(Op::lt, {offset, static_cast<double>(length)})});
  const T index = broadcast_to(select(inside, offset, 0.0), cache.shape());
  return select(inside, take_along(update, index, axis), cache);
}

T max_unpool(Call& c) {
  const T x = c.in(0), index = cast(c.in(1), DType::i64);
  const int64_t spatial = x.rank() - 2;
  const auto kernel = c.attr_ints("kernel_shape");
  const auto strides = c.attr_ints("strides", std::vector<int64_t>(kernel.size(), 1));
  const auto pads = c.attr_ints("pads", std::vector<int64_t>(2 * kernel.size(), 0));
  if (spatial < 1 || static_cast<int64_t>(kernel.size()) != spatial || strides.size() != kernel.size() ||
      pads.size() != 2 * kernel.size() || index.shape() != x.shape()) {
    c.fail("input ", shape_text(x.shape()), ", indices ", shape_text(index.shape()), " and kernel_shape ",
           shape_text(kernel), " do not fit");
  }
  Shape shape = x.shape();
  int64_t area = 1, points = 1;
  for (size_t i = 0; i < kernel.size(); ++i) {
    points *= shape[i + 2];
    for (const int64_t v : {strides[i], kernel[i], pads[i], pads[i + kernel.size()]}) {
      if (v < -kMaxElements || v > kMaxElements || shape[i + 2] > (int64_t{1} << 20)) {
        c.fail("kernel_shape, strides or pads: ", v, " is out of range");
      }
    }
    shape[i + 2] = (shape[i + 2] - 1) * strides[i] - pads[i] - pads[i + kernel.size()] + kernel[i];
    c.check_shape(shape);
    area *= shape[i + 2];
  }
  const int64_t planes = shape[0] * shape[1];
  // An index refers to an element of the whole tensor. The indices of a plane (one channel of one batch element) must
  // lie in that plane.
  T local = reshape(index, {planes, points, 1}) - c.iota(DType::i64, {planes, 1, 1}, 0) * static_cast<double>(area);
  if (const Literal* known = c.literal(1); known == nullptr) {
    local = place_from_front(local, area, nullptr);
  } else {
    for (int64_t i = 0; i < planes * points; ++i) {
      const int64_t at = known->int_at(i), begin = i / points * area;
      if (at < begin || at >= begin + area) c.fail("index ", at, " is outside of its plane, which begins at ", begin);
    }
  }
  T y = reshape(
      scatter_rows(c.constant(0, x.dtype(), {planes, area, 1}), local, reshape(x, {planes, points, 1}), "none"), shape);
  if (!c.has(2)) return y;
  const auto asked = c.ints(2);
  if (asked.size() != shape.size()) c.fail("output_shape ", shape_text(asked), " has another rank than the input");
  std::vector<int64_t> low(shape.size(), 0), high = low;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (asked[i] < shape[i] || asked[i] > kMaxElements)
      c.fail("output_shape ", shape_text(asked), " does not hold ", shape_text(shape));
    high[i] = asked[i] - shape[i];
  }
  return pad(y, low, high, 0);
}

}  // namespace wl::onnx_import

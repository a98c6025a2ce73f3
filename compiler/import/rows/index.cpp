// Ops that make constants and shapes, or select elements by index.
#include <algorithm>
#include <cmath>

#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {

T constant_value(Call& c) {
  if (auto tensor = c.attr_literal("value")) return c.set_literal(0, *std::move(tensor));
  if (c.has_attr("value_float")) {
    return c.set_literal(0, make_literal(DType::f32, {}, {c.attr_number("value_float", 0)}));
  }
  if (c.has_attr("value_int")) return c.set_literal(0, int_literal({}, {c.attr("value_int", 0)}));
  if (c.has_attr("value_ints")) {
    const auto values = c.attr_ints("value_ints");
    return c.set_literal(0, int_literal({static_cast<int64_t>(values.size())}, values));
  }
  if (c.has_attr("value_floats")) {
    const auto values = c.attr_numbers("value_floats");
    return c.set_literal(0, make_literal(DType::f32, {static_cast<int64_t>(values.size())}, values));
  }
  c.missing("a constant of another kind than value, value_int(s) or value_float(s)");
}

T constant_of_shape(Call& c) {
  const auto value = c.attr_literal("value");
  if (value && elements(value->shape) != 1) c.fail("attribute value must have one element");
  return c.set_literal(0, make_literal(value ? value->dtype : DType::f32, c.ints(0), {value ? value->at(0) : 0}));
}

T shape_of(Call& c) {
  const Shape& shape = c.shape(0);
  const auto rank = static_cast<int64_t>(shape.size());
  const auto bound = [&](std::string_view name, int64_t otherwise) {
    const int64_t given = c.attr(name, otherwise);
    return std::clamp<int64_t>(given < 0 ? std::max(given, -rank) + rank : given, 0, rank);
  };
  const int64_t start = bound("start", 0), end = std::max(bound("end", rank), start);
  const std::vector<int64_t> part(shape.begin() + start, shape.begin() + end);
  return c.set_literal(0, int_literal({end - start}, part));
}

T size_of_tensor(Call& c) {
  return c.set_literal(0, int_literal({}, {elements(c.shape(0))}));
}

T range(Call& c) {
  const double start = c.number(0), limit = c.number(1), delta = c.number(2);
  const double count = std::max(std::ceil((limit - start) / delta), 0.0);
  if (!(count <= 0x1p40)) c.fail("a range of ", count, " elements is out of range");
  const Shape shape = {static_cast<int64_t>(count)};
  const DType dtype = c.dtype(0);
  return c.iota(dtype, shape, 0) * delta + start;
}

T eye_like(Call& c) {
  const Shape& shape = c.shape(0);
  if (shape.size() != 2) c.fail("a matrix was expected, found shape ", shape_text(shape));
  DType dtype = c.dtype(0);
  if (c.has_attr("dtype")) {
    const auto named = dtype_of(static_cast<int>(c.attr("dtype", 0) & 0xffff), "the result");
    if (!named.ok()) throw Rejected{named.status()};
    dtype = *named;
  }
  const T column = c.iota(DType::i64, shape, 1), row = c.iota(DType::i64, shape, 0);
  return cast(apply(Op::eq, {column - row, static_cast<double>(c.attr("k", 0))}), dtype);
}

T trilu(Call& c) {
  const T x = c.in(0);
  if (x.rank() < 2) c.fail("a matrix was expected, found shape ", shape_text(x.shape()));
  const double k = c.has(1) ? c.number(1) : 0;
  const Shape whole = x.shape(), matrix(whole.end() - 2, whole.end());
  const T diagonal = c.iota(DType::i64, matrix, 1) - c.iota(DType::i64, matrix, 0);
  const T inside = apply(c.attr("upper", 1) != 0 ? Op::ge : Op::le, {diagonal, k});
  return select(inside, x, 0.0);
}

T columns_first(T index, const Shape& shape) {
  // After each iteration of this loop, `before` is the row-major index over the axes before `axis`, and `number` is the
  // column-major index over the spatial axes from `axis` to the last one.
  T before = index, number;
  double area = 1;
  for (size_t axis = shape.size(); axis-- > 2;) {
    const auto extent = static_cast<double>(shape[axis]);
    const T at = apply(Op::mod, {before, extent});
    number = number.valid() ? number * extent + at : at;
    before = before / extent;
    area *= extent;
  }
  return before * area + number;
}

T one_hot(Call& c) {
  const T index = cast(c.in(0), DType::i64);
  const double depth = c.number(1);
  if (!(depth >= 0 && depth <= 0x1p40)) c.fail("depth is ", depth);
  const T values = c.in(2);
  if (values.shape() != Shape{2}) c.fail("values must be [off, on], they have shape ", shape_text(values.shape()));
  const int64_t axis = c.axis(c.attr("axis", -1), index.rank() + 1);
  Shape shape = index.shape();
  shape.insert(shape.begin() + axis, static_cast<int64_t>(depth));
  c.check_shape(shape);
  const T from_front = select(apply(Op::lt, {index, 0.0}), index + depth, index);
  const T hit = apply(Op::eq, {c.iota(DType::i64, shape, axis), unsqueeze(from_front, {axis})});
  const auto value = [&](int64_t at) { return reshape(slice_axis(values, 0, at, 1, 1), {}); };
  return select(hit, value(1), value(0));
}

void check_places(Call& c, const Literal* known, int64_t least, int64_t extent, int64_t from, int64_t step) {
  for (int64_t i = from; known != nullptr && i < elements(known->shape); i += step) {
    const int64_t at = known->int_at(i);
    if (at < least || at >= extent) c.fail("index ", at, " is out of range for extent ", extent);
  }
}

T place_in(T index, int64_t extent, const Literal* known, int64_t from, int64_t step) {
  Call& c = index.call();
  const int64_t count = elements(index.shape());
  index = cast(index, DType::i64);
  check_places(c, known, -extent, extent, from, step);
  if (known != nullptr || count == 0)
    return select(apply(Op::lt, {index, 0.0}), index + static_cast<double>(extent), index);
  // Of all ops only take_along reports an index that is out of range while a kernel runs. So take_along looks the
  // indices up in the list 0, 1, 2, ..., which also turns negative indices into positions counted from the front.
  return reshape(take_along(c.iota(DType::i64, {extent}, 0), reshape(index, {count}), 0), index.shape());
}

// Returns x[.., index, ..], in which the axes of `index` replace `axis`.
T gather_axis(T x, T index, int64_t axis) {
  Call& c = x.call();
  x.extent(axis);
  const Shape from = x.shape(), rows = index.shape();
  Shape flat(from.begin(), from.begin() + axis), result = flat;
  flat.push_back(elements(rows));
  result.insert(result.end(), rows.begin(), rows.end());
  flat.insert(flat.end(), from.begin() + axis + 1, from.end());
  result.insert(result.end(), from.begin() + axis + 1, from.end());
  c.check_shape(result);
  const T list = along(reshape(index, {elements(rows)}), axis, x.rank());
  return reshape(take_along(x, broadcast_to(list, flat), axis), std::move(result));
}

T gather(Call& c) {
  const T x = c.in(0);
  const int64_t axis = c.axis(c.attr("axis", 0), x.rank()), n = x.extent(axis);
  if (const Literal* known = c.literal(1); known != nullptr && elements(known->shape) == 1) {
    const int64_t at = known->int_at(0);
    if (at < -n || at >= n) c.fail("index ", at, " is out of range for extent ", n);
    Shape shape = x.shape();
    shape.erase(shape.begin() + axis);
    shape.insert(shape.begin() + axis, known->shape.begin(), known->shape.end());
    return reshape(slice_axis(x, axis, at < 0 ? at + n : at, 1, 1), std::move(shape));
  }
  check_places(c, c.literal(1), -n, n);
  return gather_axis(x, c.in(1), axis);
}

T gather_elements(Call& c) {
  T x = c.in(0);
  const T index = c.in(1);
  if (x.rank() != index.rank()) {
    c.fail("data of shape ", shape_text(x.shape()), " and indices of shape ", shape_text(index.shape()),
           " must have one rank");
  }
  const int64_t axis = c.axis(c.attr("axis", 0), x.rank());
  for (int64_t i = 0; i < x.rank(); ++i) {
    // Along axes other than `axis`, the indices may be shorter than the data, whose remaining elements are never
    // read.
    if (i == axis) continue;
    if (index.extent(i) > x.extent(i)) {
      c.fail("indices of shape ", shape_text(index.shape()), " reach beyond data of shape ", shape_text(x.shape()));
    }
    x = slice_axis(x, i, 0, 1, index.extent(i));
  }
  check_places(c, c.literal(1), -x.extent(axis), x.extent(axis));
  return take_along(x, index, axis);
}

// Each tuple of indices becomes one index into the leading axes of the data, which are flattened.
T gather_nd(Call& c) {
  const T x = c.in(0);
  const T index = c.in(1);
  const int64_t shared = c.attr("batch_dims", 0);
  const int64_t width = index.rank() < 1 ? 0 : index.extent(index.rank() - 1);
  if (width < 1 || shared < 0 || shared >= index.rank() || width > x.rank() - shared) {
    c.fail("indices of shape ", shape_text(index.shape()), " do not fit data of shape ", shape_text(x.shape()));
  }
  Shape tuples = index.shape(), rest = x.shape();
  tuples.pop_back();
  int64_t rows = 1;
  T flat = c.constant(0, DType::i64, tuples);
  // Batch axes count as leading axes of the data: the coordinates along them are the first parts of an index.
  for (int64_t i = 0; i < shared; ++i) {
    if (tuples[static_cast<size_t>(i)] != x.extent(i)) c.fail("batch axis ", i, " has two extents");
    flat = flat * static_cast<double>(x.extent(i)) + c.iota(DType::i64, tuples, i);
    rows *= x.extent(i);
  }
  for (int64_t axis = 0; axis < width; ++axis) {
    const int64_t i = axis + shared;
    const T part = reshape(slice_axis(index, index.rank() - 1, axis, 1, 1), tuples);
    // A tuple of one index, without batch axes, needs no check here, since the gather of rows below reports an index
    // that is out of range.
    const T place = width + shared > 1 || c.literal(1) != nullptr
                        ? place_in(part, x.extent(i), c.literal(1), axis, width)
                        : cast(part, DType::i64);
    flat = flat * static_cast<double>(x.extent(i)) + place;
    rows *= x.extent(i);
  }
  rest.erase(rest.begin(), rest.begin() + shared + width);
  rest.insert(rest.begin(), rows);
  return gather_axis(reshape(x, std::move(rest)), flat, 0);
}

}  // namespace wl::onnx_import

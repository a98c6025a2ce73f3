// Ops that move elements and compute nothing.
#include <algorithm>

#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {
namespace {

// A slice start:end:step along one axis, whose bounds are clamped as in NumPy.
struct Range {
  int64_t start, step, count;
};

Range clamp_range(Call& c, int64_t start, int64_t end, int64_t step, int64_t n) {
  if (step == 0) c.fail("a step of 0");
  step = std::clamp(step, -kMaxElements, kMaxElements);
  const int64_t last = step > 0 ? n : n - 1, least = step > 0 ? 0 : -1;
  if (start < 0) start = std::max(start, -kMaxElements) + n;
  if (end < 0) end = std::max(end, -2 * kMaxElements) + n;
  start = std::clamp(start, std::min<int64_t>(0, last), last);
  end = std::clamp(end, least, last);
  const int64_t distance = step > 0 ? end - start : start - end, stride = step > 0 ? step : -step;
  return {start, step, distance <= 0 ? 0 : (distance - 1) / stride + 1};
}

}  // namespace

T reshape_to(Call& c) {
  const T x = c.in(0);
  Shape shape = c.ints(1);
  const bool keep_zero = c.attr("allowzero", 0) != 0;
  int64_t known = 1;
  int guess = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !keep_zero) {
      if (static_cast<int64_t>(i) >= x.rank())
        c.fail("shape ", shape_text(shape), " copies axis ", i, ", which input 0 has not");
      shape[i] = x.extent(static_cast<int64_t>(i));
    }
    if (shape[i] == -1) {
      if (guess >= 0) c.fail("shape ", shape_text(shape), " has -1 twice");
      guess = static_cast<int>(i);
      continue;
    }
    if (shape[i] < 0 || shape[i] > kMaxElements) c.fail("shape ", shape_text(shape), " is out of range");
    if (shape[i] != 0 && known > kMaxElements / shape[i]) c.fail("shape ", shape_text(shape), " is out of range");
    known *= shape[i];
  }
  if (guess >= 0) {
    const int64_t count = elements(x.shape());
    if (known == 0 ? count != 0 : count % known != 0) {
      c.fail("shape ", shape_text(x.shape()), " cannot become ", shape_text(shape));
    }
    shape[static_cast<size_t>(guess)] = known == 0 ? 0 : count / known;
  }
  return reshape(x, std::move(shape));
}

T flatten(Call& c) {
  const T x = c.in(0);
  const int64_t given = c.attr("axis", 1),
                axis = given == x.rank() ? given : c.axis(given, std::max<int64_t>(x.rank(), 1));
  int64_t rows = 1, columns = 1;
  for (int64_t i = 0; i < x.rank(); ++i) (i < axis ? rows : columns) *= x.extent(i);
  return reshape(x, {rows, columns});
}

T squeeze(Call& c) {
  const T x = c.in(0);
  const auto given = c.ints_or_attr(1, "axes");
  const auto axes = given ? c.axes(*given, x.rank()) : std::vector<int64_t>{};
  Shape shape;
  for (int64_t i = 0; i < x.rank(); ++i) {
    const bool named = std::binary_search(axes.begin(), axes.end(), i);
    if (named && x.extent(i) != 1) c.fail("axis ", i, " has extent ", x.extent(i), ", only 1 can go");
    if (!(given ? named : x.extent(i) == 1)) shape.push_back(x.extent(i));
  }
  return reshape(x, std::move(shape));
}

T unsqueeze_at(Call& c) {
  const T x = c.in(0);
  const auto given = c.ints_or_attr(1, "axes");
  if (!given) c.fail("axes are needed");
  return unsqueeze(x, c.axes(*given, x.rank() + static_cast<int64_t>(given->size())));
}

T transpose_by(Call& c) {
  const T x = c.in(0);
  auto perm = axes_from(0, x.rank());
  std::reverse(perm.begin(), perm.end());
  perm = c.attr_ints("perm", perm);
  if (static_cast<int64_t>(perm.size()) != x.rank()) {
    c.fail("perm ", shape_text(perm), " does not fit shape ", shape_text(x.shape()));
  }
  c.axes(perm, x.rank());
  for (int64_t& axis : perm) axis = c.axis(axis, x.rank());
  return transpose(x, std::move(perm));
}

T expand(Call& c) {
  const T x = c.in(0);
  const Shape asked = c.ints(1);
  c.check_shape(asked);
  return broadcast_to(x, broadcast_shape(c, {x.shape(), asked}));
}

T tile(Call& c) {
  T x = c.in(0);
  const auto repeats = c.ints(1);
  if (static_cast<int64_t>(repeats.size()) != x.rank()) {
    c.fail("repeats ", shape_text(repeats), " does not fit shape ", shape_text(x.shape()));
  }
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const int64_t times = repeats[static_cast<size_t>(axis)], n = x.extent(axis);
    if (times < 0 || times > kMaxElements) c.fail("repeats ", shape_text(repeats), " is out of range");
    if (times == 1) continue;
    Shape apart = x.shape(), tiled = x.shape();
    apart.insert(apart.begin() + axis, 1);
    const T single = reshape(x, apart);
    apart[static_cast<size_t>(axis)] = times;
    c.check_shape(apart);
    tiled[static_cast<size_t>(axis)] = n * times;
    x = reshape(broadcast_to(single, apart), std::move(tiled));
  }
  return x;
}

T split(Call& c) {
  const T x = c.in(0);
  const int64_t axis = c.axis(c.attr("axis", 0), x.rank()), n = x.extent(axis);
  auto sizes = c.ints_or_attr(1, "split");
  const int64_t count = c.outputs();
  if (count < 1) c.fail("the node has no outputs, expected one for every part");
  if (!sizes) {
    // All parts of a split have the same extent, except that the last one may be smaller, which is allowed since opset
    // version 18.
    if (c.attr("num_outputs", count) != count)
      c.fail("num_outputs is ", c.attr("num_outputs", 0), ", outputs are ", count);
    if (c.opset() < 18 && n % count != 0) c.fail("extent ", n, " does not split into ", count, " equal parts");
    const int64_t part = (n + count - 1) / count;
    sizes.emplace();
    for (int64_t i = 0; i < count; ++i) sizes->push_back(std::clamp<int64_t>(n - i * part, 0, part));
  }
  if (static_cast<int64_t>(sizes->size()) != count) {
    c.fail("split ", shape_text(*sizes), " has ", sizes->size(), " parts, the node ", count, " outputs");
  }
  int64_t start = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t part = (*sizes)[static_cast<size_t>(i)];
    if (part < 0 || part > n - start) c.fail("split ", shape_text(*sizes), " does not fit extent ", n);
    c.set(static_cast<int>(i), slice_axis(x, axis, start, 1, part));
    start += part;
  }
  if (start != n) c.fail("split ", shape_text(*sizes), " does not fit extent ", n);
  return {};
}

T slice(Call& c) {
  T x = c.in(0);
  const bool old = c.opset() < 10;
  const auto starts = old ? c.attr_ints("starts") : c.ints(1), ends = old ? c.attr_ints("ends") : c.ints(2);
  const auto count = static_cast<int64_t>(starts.size());
  if (ends.size() != starts.size() || count > x.rank()) {
    c.fail("starts ", shape_text(starts), " and ends ", shape_text(ends), " do not fit shape ", shape_text(x.shape()));
  }
  const auto all = axes_from(0, count);
  auto axes = old ? c.attr_ints("axes", all) : c.has(3) ? c.ints(3) : all;
  const auto steps = !old && c.has(4) ? c.ints(4) : std::vector<int64_t>(starts.size(), 1);
  if (axes.size() != starts.size() || steps.size() != starts.size()) {
    c.fail("axes ", shape_text(axes), " and steps ", shape_text(steps), " do not fit starts ", shape_text(starts));
  }
  c.axes(axes, x.rank());
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t axis = c.axis(axes[i], x.rank());
    const Range range = clamp_range(c, starts[i], ends[i], steps[i], x.extent(axis));
    x = slice_axis(x, axis, range.start, range.step, range.count);
  }
  return x;
}

namespace {

// Adds `low` elements before x and `high` elements after x along `axis`. They are copies of elements of x, chosen by
// `mode`: reflect, wrap or edge.
T pad_copies(T x, int64_t axis, int64_t low, int64_t high, std::string_view mode) {
  Call& c = x.call();
  const int64_t n = x.extent(axis);
  if (n < 1) c.fail("mode ", mode, " needs elements along axis ", axis);
  const int64_t most = mode == "reflect" ? n - 1 : mode == "wrap" ? n : kMaxElements;
  if (low > most || high > most)
    c.missing("padding by ", low, " and ", high, ": mode ", mode, " has ", most, " to copy");
  std::vector<T> parts;
  const auto edge = [&](int64_t at, int64_t count) {
    Shape shape = x.shape();
    shape[static_cast<size_t>(axis)] = count;
    c.check_shape(shape);
    return broadcast_to(slice_axis(x, axis, at, 1, 1), shape);
  };
  if (low > 0) {
    parts.push_back(mode == "reflect" ? slice_axis(x, axis, low, -1, low)
                    : mode == "wrap"  ? slice_axis(x, axis, n - low, 1, low)
                                      : edge(0, low));
  }
  parts.push_back(x);
  if (high > 0) {
    parts.push_back(mode == "reflect" ? slice_axis(x, axis, n - 2, -1, high)
                    : mode == "wrap"  ? slice_axis(x, axis, 0, 1, high)
                                      : edge(n - 1, high));
  }
  return concat(parts, axis);
}

}  // namespace

T pad_by(Call& c) {
  T x = c.in(0);
  const bool old = c.opset() < 11;
  const auto pads = old ? c.attr_ints("pads") : c.ints(1);
  const auto axes = c.has(3) ? c.ints(3) : axes_from(0, x.rank());
  c.axes(axes, x.rank());
  if (pads.size() != 2 * axes.size()) {
    c.fail("pads ", shape_text(pads), " does not fit ", axes.size(), " axes");
  }
  const bool computed = !old && c.has(2) && c.literal(2) == nullptr;
  const double value = old ? c.attr_number("value", 0) : c.has(2) && !computed ? c.number(2) : 0;
  const std::string mode = c.attr_text("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap") {
    c.fail("mode '", mode, "', expected constant, reflect, edge or wrap");
  }
  std::vector<int64_t> low(x.shape().size(), 0), high = low;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = c.axis(axes[i], x.rank());
    const int64_t before = pads[i], after = pads[i + axes.size()], n = x.extent(axis);
    if (before < -n || after < -n || before > kMaxElements || after > kMaxElements) {
      c.fail("pads ", shape_text(pads), " are out of range");
    }
    // Negative padding removes elements.
    const int64_t cut_low = std::max<int64_t>(-before, 0), cut_high = std::max<int64_t>(-after, 0);
    if (cut_low + cut_high > n) c.fail("pads ", shape_text(pads), " remove more elements than there are");
    x = slice_axis(x, axis, cut_low, 1, n - cut_low - cut_high);
    low[static_cast<size_t>(axis)] = std::max<int64_t>(before, 0);
    high[static_cast<size_t>(axis)] = std::max<int64_t>(after, 0);
  }
  if (mode == "constant" && computed) {
    const T inside = pad(c.constant(1, DType::b1, x.shape()), low, high, 0);
    return select(inside, pad(x, low, high, 0), reshape(c.in(2), {}));
  }
  if (mode == "constant") return pad(x, std::move(low), std::move(high), value);
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    const auto i = static_cast<size_t>(axis);
    if (low[i] > 0 || high[i] > 0) x = pad_copies(x, axis, low[i], high[i], mode);
  }
  return x;
}

T concat_all(Call& c) {
  const auto parts = c.all();
  const int64_t axis = c.axis(c.attr("axis", 1), parts[0].rank());
  for (const T& part : parts) {
    Shape shape = part.shape();
    if (part.rank() == parts[0].rank()) shape[static_cast<size_t>(axis)] = parts[0].extent(axis);
    if (shape != parts[0].shape()) {
      c.fail("shapes ", shape_text(parts[0].shape()), " and ", shape_text(part.shape()), " do not join along axis ",
             axis);
    }
  }
  return concat(parts, axis);
}

namespace {

int64_t block_of(Call& c, T x) {
  if (x.rank() != 4) c.fail("[batch, channels, height, width] was expected, found ", shape_text(x.shape()));
  const int64_t block = c.attr("blocksize", 0);
  if (block < 1 || block > kMaxElements) c.fail("blocksize is ", block, ", it must be at least 1");
  return block;
}

}  // namespace

T depth_to_space(Call& c) {
  const T x = c.in(0);
  const int64_t b = block_of(c, x);
  const int64_t n = x.extent(0), channels = x.extent(1), h = x.extent(2), w = x.extent(3);
  if (channels / b % b != 0 || channels % b != 0) c.fail(channels, " channels do not split into blocks of ", b, "x", b);
  const int64_t left = channels / b / b;
  const bool column_row = c.attr_text("mode", "DCR") == "CRD";
  const T apart = column_row ? transpose(reshape(x, {n, left, b, b, h, w}), {0, 1, 4, 2, 5, 3})
                             : transpose(reshape(x, {n, b, b, left, h, w}), {0, 3, 4, 1, 5, 2});
  return reshape(apart, {n, left, h * b, w * b});
}

T space_to_depth(Call& c) {
  const T x = c.in(0);
  const int64_t b = block_of(c, x);
  const int64_t n = x.extent(0), channels = x.extent(1), h = x.extent(2), w = x.extent(3);
  if (h % b != 0 || w % b != 0) c.fail("height ", h, " and width ", w, " do not split into blocks of ", b);
  const bool column_row = c.attr_text("mode", "DCR") == "CRD";
  const T apart =
      transpose(reshape(x, {n, channels, h / b, b, w / b, b}),
                column_row ? std::vector<int64_t>{0, 1, 3, 5, 2, 4} : std::vector<int64_t>{0, 3, 5, 1, 2, 4});
  // If the tensor is empty, the checks above do not limit the block size b, and b * b could overflow. So the extents
  // are checked before the multiplication.
  c.check_shape({std::max<int64_t>(channels, 1), b, b});
  return reshape(apart, {n, channels * b * b, h / b, w / b});
}

}  // namespace wl::onnx_import

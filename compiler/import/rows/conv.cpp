// Convolutions and pools pad the input, make windows, then contract or reduce them. Tensors are [batch, channels,
// spatial...]. Op window puts the taps (the elements of a window) last, in the order of the spatial axes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {
namespace {

// How a node's window moves over the spatial axes. Each list has one entry per spatial axis.
struct Sliding {
  std::vector<int64_t> size, stride, dilation, low, high;
  std::vector<int64_t> extra;  // the elements of padding that ceil_mode needs in addition to `high`
  size_t rank() const { return size.size(); }
};

std::vector<int64_t> list_of(Call& c, std::string_view name, size_t count, int64_t otherwise) {
  auto list = c.attr_ints(name, std::vector<int64_t>(count, otherwise));
  if (list.size() != count) c.fail("attribute ", name, " has ", list.size(), " entries, expected ", count);
  for (const int64_t entry : list) {
    if (entry < 0 || entry > kMaxElements) c.fail("attribute ", name, ": ", entry, " is out of range");
  }
  return list;
}

Sliding sliding_of(Call& c, const Shape& shape, std::vector<int64_t> kernel) {
  Sliding s;
  if (shape.size() < 3) {
    c.fail("input 0 must be [batch, channels, spatial...], it has shape ", shape_text(shape));
  }
  const size_t rank = shape.size() - 2;
  s.size = std::move(kernel);
  if (s.size.size() != rank) c.fail("the kernel has ", s.size.size(), " axes, the input ", rank, " spatial ones");
  s.stride = list_of(c, "strides", rank, 1);
  s.dilation = list_of(c, "dilations", rank, 1);
  const auto pads = list_of(c, "pads", 2 * rank, 0);
  s.low.assign(pads.begin(), pads.begin() + static_cast<int64_t>(rank));
  s.high.assign(pads.begin() + static_cast<int64_t>(rank), pads.end());
  s.extra.assign(rank, 0);
  const std::string automatic = c.attr_text("auto_pad", "NOTSET");
  for (size_t i = 0; i < rank; ++i) {
    if (s.size[i] < 1 || s.stride[i] < 1 || s.dilation[i] < 1 ||
        s.size[i] > kMaxElements / std::max<int64_t>(s.dilation[i], 1)) {
      c.fail("kernel ", s.size[i], ", stride ", s.stride[i], ", dilation ", s.dilation[i], " on spatial axis ", i,
             ": must be at least 1, and fit");
    }
    const int64_t n = shape[i + 2], reach = (s.size[i] - 1) * s.dilation[i] + 1;
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      const int64_t positions = (n + s.stride[i] - 1) / s.stride[i];
      const int64_t total = std::max<int64_t>((positions - 1) * s.stride[i] + reach - n, 0);
      s.low[i] = automatic == "SAME_UPPER" ? total / 2 : total - total / 2;
      s.high[i] = total - s.low[i];
    } else if (automatic == "VALID") {
      s.low[i] = s.high[i] = 0;
    } else if (automatic != "NOTSET") {
      c.fail("attribute auto_pad is '", automatic, "', expected NOTSET, SAME_UPPER, SAME_LOWER or VALID");
    }
    const int64_t padded = n + s.low[i] + s.high[i];
    if (c.attr("ceil_mode", 0) != 0 && padded >= reach) {
      int64_t positions = (padded - reach + s.stride[i] - 1) / s.stride[i] + 1;
      // With ceil_mode, a window that would start in the padding behind the data is left out.
      if ((positions - 1) * s.stride[i] >= n + s.low[i]) --positions;
      s.extra[i] = std::max<int64_t>((positions - 1) * s.stride[i] + reach - padded, 0);
    }
  }
  return s;
}

// Makes windows over the spatial axes: [batch, channels, spatial...] -> [batch, channels, positions..., taps...].
T slide(T x, const Sliding& s, double padding) {
  std::vector<int64_t> low(2, 0), high(2, 0), axes, params;
  for (size_t i = 0; i < s.rank(); ++i) {
    low.push_back(s.low[i]);
    high.push_back(s.high[i] + s.extra[i]);
    axes.push_back(static_cast<int64_t>(i) + 2);
    params.insert(params.end(), {s.size[i], s.stride[i], s.dilation[i]});
  }
  return window(pad(x, std::move(low), std::move(high), padding), std::move(axes), std::move(params));
}

bool pointwise(const Sliding& s) {
  const auto one = [](int64_t v) { return v == 1; };
  return std::all_of(s.size.begin(), s.size.end(), one);
}

// Returns what a 1x1 convolution multiplies its weights with: a strided slice of the padded input, without windows.
T stride_only(T x, const Sliding& s) {
  std::vector<int64_t> low(2, 0), high(2, 0);
  low.insert(low.end(), s.low.begin(), s.low.end());
  high.insert(high.end(), s.high.begin(), s.high.end());
  T result = pad(x, std::move(low), std::move(high), 0);
  for (size_t i = 0; i < s.rank(); ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    const int64_t n = result.extent(axis);
    if (n < 1) x.call().fail("spatial axis ", i, " is empty");
    result = slice_axis(result, axis, 0, s.stride[i], (n - 1) / s.stride[i] + 1);
  }
  return result;
}

std::string letters(char first, size_t count) {
  std::string result;
  for (size_t i = 0; i < count; ++i) result += static_cast<char>(first + static_cast<char>(i));
  return result;
}

// Returns the convolution of x, [batch, channels, spatial...], with w, [outputs, channels / groups, taps...].
T convolve(T x, T w, const Sliding& s, int64_t groups) {
  Call& c = x.call();
  if (s.rank() > 6) c.missing("convolutions over ", s.rank(), " spatial axes are not supported");
  const int64_t channels = x.extent(1), outputs = w.extent(0);
  if (groups < 1 || channels % groups != 0 || outputs % groups != 0 || w.extent(1) != channels / groups) {
    c.fail("weights of shape ", shape_text(w.shape()), " and group = ", groups, " do not fit an input of shape ",
           shape_text(x.shape()));
  }
  const bool point = pointwise(s);
  T windows = point ? stride_only(x, s) : slide(x, s, 0);
  if (point) w = reshape(w, {outputs, w.extent(1)});
  const std::string positions = letters('p', s.rank()), taps = point ? "" : letters('h', s.rank());
  Shape result = windows.shape();
  result.resize(s.rank() + 2);
  result[1] = outputs;
  if (groups == 1) return contract(windows, w, "ac" + positions + taps + ",oc" + taps + "->ao" + positions);
  Shape split = windows.shape();
  split[1] = channels / groups;
  split.insert(split.begin() + 1, groups);
  Shape split_weights = w.shape();
  split_weights[0] = outputs / groups;
  split_weights.insert(split_weights.begin(), groups);
  const T product = contract(reshape(windows, std::move(split)), reshape(w, std::move(split_weights)),
                             "agc" + positions + taps + ",goc" + taps + "->ago" + positions);
  return reshape(product, std::move(result));
}

std::vector<int64_t> kernel_of(Call& c, T w) {
  if (w.rank() < 3) c.fail("weights must be [outputs, channels, taps...], they have shape ", shape_text(w.shape()));
  const Shape shape = w.shape();
  std::vector<int64_t> kernel(shape.begin() + 2, shape.end());
  if (c.has_attr("kernel_shape") && c.attr_ints("kernel_shape") != kernel) {
    c.fail("kernel_shape ", shape_text(c.attr_ints("kernel_shape")), " does not fit weights of shape ",
           shape_text(shape));
  }
  return kernel;
}

T pool_windows(Call& c, T x, const Sliding& s, double padding) {
  if (s.rank() > 6) c.missing("pools over ", s.rank(), " spatial axes are not supported");
  for (size_t i = 0; i < s.rank(); ++i) {
    const int64_t reach = (s.size[i] - 1) * s.dilation[i] + 1;
    if (s.low[i] >= reach || s.high[i] >= reach) c.fail("padding on spatial axis ", i, " is as wide as the kernel");
  }
  return slide(x, s, padding);
}

Sliding pool_of(Call& c, T x) {
  if (!c.has_attr("kernel_shape")) c.fail("attribute kernel_shape is needed");
  return sliding_of(c, x.shape(), c.attr_ints("kernel_shape"));
}

T over_taps(Op op, T windows, const Sliding& s) {
  return reduce(op, windows, axes_from(windows.rank() - static_cast<int64_t>(s.rank()), windows.rank()), false);
}

// Returns the padding value for a maximum: a number that is at most as large as any element.
double lowest(DType dtype) {
  if (is_float(dtype)) return -std::numeric_limits<double>::infinity();
  const bool is_signed = dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
  return is_signed ? -std::ldexp(1, 8 * size_of(dtype) - 1) : 0;
}

// Which part of its full result a transposed convolution keeps. There is one entry per spatial axis.
struct Kept {
  std::vector<int64_t> first, size;
};

Kept kept_of(Call& c, const Shape& shape, const Sliding& s) {
  const size_t rank = s.rank();
  const auto more = list_of(c, "output_padding", rank, 0);
  std::vector<int64_t> asked = c.attr_ints("output_shape");
  if (asked.size() == rank + 2) asked.erase(asked.begin(), asked.begin() + 2);
  if (!asked.empty() && asked.size() != rank) c.fail("output_shape has ", asked.size(), " entries, expected ", rank);
  const std::string automatic = c.attr_text("auto_pad", "NOTSET");
  Kept kept{s.low, std::vector<int64_t>(rank)};
  for (size_t i = 0; i < rank; ++i) {
    const int64_t n = shape[i + 2];
    if (n < 1) c.fail("spatial axis ", i, " is empty");
    if (s.stride[i] > kMaxElements / n) c.fail("stride ", s.stride[i], " is out of range");
    const int64_t full = (n - 1) * s.stride[i] + (s.size[i] - 1) * s.dilation[i] + 1 + more[i];
    if (!asked.empty() || automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      kept.size[i] = asked.empty() ? n * s.stride[i] : asked[i];
      if (kept.size[i] < 0 || kept.size[i] > full + (int64_t{1} << 20))
        c.fail("output_shape ", kept.size[i], " is out of range");
      const int64_t cut = std::max(full, kept.size[i]) - kept.size[i];
      kept.first[i] = automatic == "SAME_UPPER" ? cut / 2 : cut - cut / 2;
    } else {
      kept.size[i] = full - s.low[i] - s.high[i];
    }
    if (kept.size[i] < 1) c.fail("the result has no elements on spatial axis ", i);
  }
  return kept;
}

// Inserts stride - 1 zeros between neighbouring elements along `axis`: each element is padded along a new axis.
T spaced(T x, int64_t axis, int64_t stride) {
  const int64_t n = x.extent(axis);
  Shape apart = x.shape(), merged = x.shape();
  apart.insert(apart.begin() + axis + 1, 1);
  std::vector<int64_t> low(apart.size(), 0), high = low;
  high[static_cast<size_t>(axis) + 1] = stride - 1;
  merged[static_cast<size_t>(axis)] = n * stride;
  const T padded = pad(reshape(x, std::move(apart)), low, high, 0);
  return slice_axis(reshape(padded, std::move(merged)), axis, 0, 1, (n - 1) * stride + 1);
}

// Divides weights [channels, outputs / groups, taps...] among the phases of conv_transpose(): [outputs * phases,
// channels / groups, taps of a phase...], last tap first. Phase r of p has taps r, r + p, ...; a missing tap is 0.
T weights_by_phase(T w, const std::vector<int64_t>& phases, int64_t groups) {
  const size_t rank = phases.size();
  const int64_t channels = w.extent(0), outputs = w.extent(1);
  std::vector<int64_t> none(rank + 2, 0), missing = none;
  Shape split = {groups, channels / groups, outputs}, joined = {groups * outputs, channels / groups};
  std::vector<int64_t> order = {0, 2}, taps;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t tap_count = (w.extent(static_cast<int64_t>(i) + 2) + phases[i] - 1) / phases[i];
    missing[i + 2] = tap_count * phases[i] - w.extent(static_cast<int64_t>(i) + 2);
    taps.push_back(static_cast<int64_t>(split.size()));
    order.push_back(taps.back() + 1);
    split.insert(split.end(), {tap_count, phases[i]});
    joined[0] *= phases[i];
    joined.push_back(tap_count);
  }
  order.push_back(1);
  order.insert(order.end(), taps.begin(), taps.end());
  w = reshape(pad(w, none, missing, 0), split);
  for (const int64_t axis : taps) w = slice_axis(w, axis, w.extent(axis) - 1, -1, w.extent(axis));
  return reshape(transpose(w, std::move(order)), std::move(joined));
}

}  // namespace

T convolution(Call& c, T x, T w) {
  return convolve(x, w, sliding_of(c, x.shape(), kernel_of(c, w)), c.attr("group", 1));
}

T conv(Call& c) {
  const T y = convolution(c, c.in(0), c.in(1));
  return with_bias(c, y);
}

// A transposed convolution is the gradient of a convolution. Outputs whose positions along an axis differ by multiples
// of its stride p use the same taps. They form one of p phases, which is a convolution without stride. One convolution
// with p times the output channels computes all phases, which are then interleaved. With dilation, the taps of a phase
// are not neighbours; stride - 1 zeros are then inserted between the inputs instead.
T conv_transpose(Call& c) {
  T x = c.in(0);
  const T w = c.in(1);
  const Sliding s = sliding_of(c, x.shape(), kernel_of(c, w));
  const size_t rank = s.rank();
  const int64_t groups = c.attr("group", 1), channels = x.extent(1);
  if (groups < 1 || channels % groups != 0 || w.extent(0) != channels) {
    c.fail("weights of shape ", shape_text(w.shape()), " and group = ", groups, " do not fit an input of shape ",
           shape_text(x.shape()));
  }
  const Kept kept = kept_of(c, x.shape(), s);
  const std::vector<int64_t> one(rank, 1), none(rank, 0);
  std::vector<int64_t> phases;
  Sliding inner{.size = {}, .stride = one, .dilation = s.dilation, .low = {}, .high = {}, .extra = none};
  for (size_t i = 0; i < rank; ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    const bool dilated = s.dilation[i] > 1;
    if (dilated && s.stride[i] > 1) x = spaced(x, axis, s.stride[i]);
    const int64_t p = dilated ? 1 : s.stride[i];
    phases.push_back(p);
    inner.size.push_back((s.size[i] + p - 1) / p);
    const int64_t reach = (inner.size[i] - 1) * s.dilation[i], made = x.extent(axis) + reach;
    inner.low.push_back(reach);
    inner.high.push_back(reach + std::max<int64_t>((kept.first[i] + kept.size[i] + p - 1) / p - made, 0));
  }
  T y = convolve(x, weights_by_phase(w, phases, groups), inner, groups);
  Shape apart = {x.extent(0), groups * w.extent(1)}, joined = apart;
  std::vector<int64_t> order = {0, 1};
  apart.insert(apart.end(), phases.begin(), phases.end());
  for (size_t i = 0; i < rank; ++i) {
    const int64_t positions = y.extent(static_cast<int64_t>(i) + 2);
    apart.push_back(positions);
    joined.push_back(positions * phases[i]);
    order.insert(order.end(), {static_cast<int64_t>(2 + rank + i), static_cast<int64_t>(2 + i)});
  }
  y = reshape(transpose(reshape(y, std::move(apart)), std::move(order)), std::move(joined));
  for (size_t i = 0; i < rank; ++i) y = slice_axis(y, static_cast<int64_t>(i) + 2, kept.first[i], 1, kept.size[i]);
  return with_bias(c, y);
}

// Returns the first element of each window, skipping padding. `result` is the shape of the pool's result.
T first_of_windows(T x, const Sliding& s, const Shape& result) {
  for (size_t i = 0; i < s.rank(); ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    const int64_t count = result[i + 2], last = x.extent(axis) - 1;
    std::vector<T> parts;
    // The first elements of windows that begin in the padding are sliced one by one, those of all others by one slice.
    int64_t p = 0;
    for (; p < count && p * s.stride[i] < s.low[i]; ++p) {
      const int64_t before = s.low[i] - p * s.stride[i], step = s.dilation[i];
      parts.push_back(slice_axis(x, axis, std::min((before + step - 1) / step * step - before, last), 1, 1));
    }
    if (p < count) parts.push_back(slice_axis(x, axis, p * s.stride[i] - s.low[i], s.stride[i], count - p));
    x = parts.size() == 1 ? parts[0] : concat(parts, axis);
  }
  return x;
}

// As in the reference code of ONNX, the maximum is NaN if a window begins with NaN; any other NaN is ignored.
T max_pool(Call& c) {
  const T x = c.in(0);
  const Sliding s = pool_of(c, x);
  const bool floating = is_float(x.dtype());
  const T numbers_only = floating ? select(apply(Op::ne, {x, x}), lowest(x.dtype()), x) : x;
  const T windows = pool_windows(c, numbers_only, s, lowest(x.dtype()));
  const T most = over_taps(Op::reduce_max, windows, s);
  T y = most, first;
  if (floating) {
    const T begins = first_of_windows(x, s, most.shape());
    first = apply(Op::ne, {begins, begins});
    y = select(first, begins, most);
  }
  if (!c.wants(1)) return y;
  // Output 1 is the position of the first maximum of each window, as an index into the whole tensor.
  T number = c.constant(0, DType::i64, x.shape());
  for (const int64_t axis : axes_from(0, x.rank()))
    number = number * static_cast<double>(x.extent(axis)) + c.iota(DType::i64, x.shape(), axis);
  const auto none = static_cast<double>(elements(x.shape()));
  const T numbers = slide(number, s, none);
  const T hit = apply(Op::eq, {windows, stretch(most, axes_from(y.rank(), windows.rank()), windows.shape())});
  T index = over_taps(Op::reduce_min, select(hit, numbers, none), s);
  if (floating) index = select(first, first_of_windows(number, s, y.shape()), index);
  index = apply(Op::min, {index, none - 1});
  c.set(1, c.attr("storage_order", 0) != 0 ? columns_first(index, x.shape()) : index);
  return y;
}

T average_pool(Call& c) {
  const T x = c.in(0);
  const Sliding s = pool_of(c, x);
  const bool count_padding = c.attr("count_include_pad", 0) != 0;
  T y = over_taps(Op::reduce_sum, pool_windows(c, x, s, 0), s);
  // The number of elements averaged in a window is the product of the numbers of elements along each spatial axis.
  for (size_t i = 0; i < s.rank(); ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    const int64_t begin = count_padding ? -s.low[i] : 0;
    const int64_t end = x.extent(axis) + (count_padding ? s.high[i] : 0);
    std::vector<double> counts;
    if (y.extent(axis) > kLiteralBytes) c.missing("a pool to ", y.extent(axis), " positions is not supported");
    for (int64_t p = 0; p < y.extent(axis); ++p) {
      const int64_t start = p * s.stride[i] - s.low[i], step = s.dilation[i];
      const int64_t first = start >= begin ? 0 : (begin - start + step - 1) / step;
      const int64_t past = end <= start ? 0 : (end - start + step - 1) / step;
      counts.push_back(static_cast<double>(std::max<int64_t>(std::min(past, s.size[i]) - first, 1)));
    }
    const Literal literal = make_literal(x.dtype(), {y.extent(axis)}, std::move(counts));
    y = literal.is_splat() ? y * (1.0 / literal.values[0])
                           : y / along(c.literal_tensor(literal, cat(":count", i)), axis, y.rank());
  }
  return y;
}

namespace {

// Returns the p-norm (sum |x|^p)^(1/p). The function `sum` adds up elements.
template <typename Sum>
T lp(Call& c, T x, Sum sum) {
  const auto p = static_cast<double>(c.attr("p", 2));
  if (p == 2) return apply(Op::sqrt, {sum(x * x)});
  const T magnitude = apply(Op::abs, {x});
  if (p == 1) return sum(magnitude);
  if (p < 1) c.fail("attribute p is ", p, ", it must be at least 1");
  return apply(Op::pow, {sum(apply(Op::pow, {magnitude, p})), 1.0 / p});
}

}  // namespace

T lp_pool(Call& c) {
  const T x = c.in(0);
  const Sliding s = pool_of(c, x);
  return lp(c, x, [&](T powers) { return over_taps(Op::reduce_sum, pool_windows(c, powers, s, 0), s); });
}

T global_pool(Call& c, Op op) {
  const T x = c.in(0);
  const auto axes = axes_from(2, x.rank());
  return op == Op::reduce_sum ? mean(x, axes, true) : reduce(op, x, axes, true);
}

T global_lp_pool(Call& c) {
  const T x = c.in(0);
  return lp(c, x, [&](T powers) { return reduce(Op::reduce_sum, powers, axes_from(2, powers.rank()), true); });
}

}  // namespace wl::onnx_import

// Resizes one axis at a time. Each output element is a weighted sum of a few input elements; the weights are
// constants. If the positions of the input elements are evenly spaced, views read them; otherwise a gather with
// constant indices does.
#include <algorithm>
#include <cmath>

#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {
namespace {

struct Axis {
  // `scale` is the ratio of the output's size to the input's. `low` and `high` are the ends of the region of
  // tf_crop_and_resize, as fractions of the input axis. `size` is the output's extent.
  double scale = 1, low = 0, high = 1;
  int64_t size = 0;
};

struct Manner {
  std::string mode, coordinates, nearest;
  bool antialias = false, exclude_outside = false;
  double cubic = -0.75, outside = 0;
};

// How an output axis is computed from an input axis. Output element n is the sum over all t of weight[t][n] times input
// element index[t][n]. If outside[n] is not 0, output element n is the constant Manner::outside instead.
struct Taps {
  std::vector<std::vector<int64_t>> index;
  std::vector<std::vector<double>> weight;
  std::vector<double> outside;
};

double keys(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

// Returns the weights of the input elements around a point. The point lies at `ratio` (above 0, at most 1) times the
// distance between neighbouring elements behind the nearest element before it.
std::vector<double> weights_of(const Manner& how, double ratio, double scale) {
  if (how.mode == "nearest") {
    const bool next = ratio == 1 || how.nearest == "ceil" || (how.nearest == "round_prefer_floor" && ratio > 0.5) ||
                      (how.nearest == "round_prefer_ceil" && ratio >= 0.5);
    return next ? std::vector<double>{0, 1} : std::vector<double>{1, 0};
  }
  const double reach = how.mode == "cubic" ? 2 : 1, squeeze = how.antialias ? std::min(scale, 1.0) : 1;
  const auto first = static_cast<int64_t>(std::floor(-reach / squeeze)) + 1;
  std::vector<double> weights;
  double sum = 0;
  const int64_t count = how.mode == "cubic" && !how.antialias ? 4 : how.antialias ? 2 - 2 * first : 2;
  for (int64_t i = 0; i < count; ++i) {
    const double x = squeeze * (static_cast<double>(first + i) - ratio);
    weights.push_back(how.mode == "cubic" ? keys(x, how.cubic) : std::clamp(1 - std::fabs(x), 0.0, 1.0));
    sum += weights.back();
  }
  for (double& w : weights) w /= how.antialias && sum != 0 ? sum : 1;
  return weights;
}

double source_of(Call& c, const Manner& how, const Axis& axis, int64_t input, double x) {
  const auto n = static_cast<double>(input);
  const double output = axis.scale * n;
  const double half = (x + 0.5) / axis.scale - 0.5;
  if (how.coordinates == "half_pixel") return half;
  if (how.coordinates == "asymmetric") return x / axis.scale;
  if (how.coordinates == "align_corners") return output == 1 ? 0 : x * (n - 1) / (output - 1);
  if (how.coordinates == "pytorch_half_pixel") return axis.size == 1 ? -0.5 : half;
  if (how.coordinates == "half_pixel_symmetric") return n / 2 * (1 - static_cast<double>(axis.size) / output) + half;
  if (how.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  if (how.coordinates == "tf_crop_and_resize") {
    if (output == 1) return axis.low * (n - 1) + (axis.high - axis.low) * (n - 1) / 2;
    return axis.low * (n - 1) + x * (axis.high - axis.low) * (n - 1) / (output - 1);
  }
  c.fail("coordinate_transformation_mode '", how.coordinates, "' is unknown");
}

Taps taps_of(Call& c, const Manner& how, const Axis& axis, int64_t input) {
  Taps taps;
  if (how.antialias && axis.scale < 1.0 / 128) c.missing("a scale of ", axis.scale, " with antialias");
  if (axis.size > kLiteralBytes) c.missing("resizing an axis to ", axis.size, " elements");
  for (int64_t o = 0; o < axis.size; ++o) {
    const double x = source_of(c, how, axis, input, static_cast<double>(o));
    if (!(std::fabs(x) < 0x1p40)) c.fail("the scale ", axis.scale, " is out of range");
    const double whole = std::floor(x);
    auto weights = weights_of(how, x == whole ? 1 : x - whole, axis.scale);
    const auto n = static_cast<int64_t>(weights.size());
    const int64_t even = x == whole ? -(n / 2) : 1 - n / 2, odd = -((n - 1) / 2) + (x - whole > 0.5 ? 1 : 0);
    const int64_t first = static_cast<int64_t>(whole) + (n % 2 == 0 ? even : odd);
    double sum = 0;
    for (int64_t t = 0; t < n; ++t) {
      const bool inside = first + t >= 0 && first + t < input;
      if (how.exclude_outside && !inside) weights[static_cast<size_t>(t)] = 0;
      sum += weights[static_cast<size_t>(t)];
    }
    taps.index.resize(std::max(taps.index.size(), weights.size()), {});
    taps.weight.resize(taps.index.size());
    for (size_t t = 0; t < taps.index.size(); ++t) {
      const int64_t at = first + static_cast<int64_t>(t);
      const double w = t < weights.size() ? weights[t] : 0;
      taps.index[t].resize(static_cast<size_t>(axis.size));
      taps.weight[t].resize(static_cast<size_t>(axis.size));
      taps.index[t][static_cast<size_t>(o)] = std::clamp<int64_t>(at, 0, input - 1);
      taps.weight[t][static_cast<size_t>(o)] = how.exclude_outside && sum != 0 ? w / sum : w;
    }
    taps.outside.push_back(how.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(input) - 1));
  }
  return taps;
}

// Returns x[.., index[n], ..] for all n, where the index is along `axis`.
T pick(T x, int64_t axis, const std::vector<int64_t>& index, std::string_view name) {
  const auto n = static_cast<int64_t>(index.size());
  const int64_t step = n > 1 ? index[1] - index[0] : 1;
  bool regular = step != 0 || n == 1;
  for (int64_t i = 1; i < n && regular; ++i) regular = index[static_cast<size_t>(i)] == index[0] + i * step;
  if (regular) return slice_axis(x, axis, index[0], step, n);
  const int64_t input = x.extent(axis);
  if (n % input == 0) {
    const int64_t times = n / input;
    bool repeats = true;
    for (int64_t i = 0; i < n && repeats; ++i) repeats = index[static_cast<size_t>(i)] == i / times;
    if (repeats) {
      Shape apart = x.shape(), joined = x.shape();
      apart.insert(apart.begin() + axis + 1, 1);
      const T single = reshape(x, apart);
      apart[static_cast<size_t>(axis) + 1] = times;
      joined[static_cast<size_t>(axis)] = n;
      return reshape(broadcast_to(single, apart), joined);
    }
  }
  return gather_axis(x, x.call().literal_tensor(int_literal({n}, index), name), axis);
}

T resize_axis(T x, int64_t number, const Axis& axis, const Manner& how) {
  Call& c = x.call();
  const int64_t input = x.extent(number), rank = x.rank();
  if (input < 1) c.fail("axis ", number, " has no elements to resize");
  Shape empty = x.shape();
  empty[static_cast<size_t>(number)] = 0;
  if (axis.size == 0) return c.constant(0, x.dtype(), empty);
  Taps taps = taps_of(c, how, axis, input);
  T sum;
  if (how.mode == "nearest") {
    for (size_t o = 0; o < taps.index[0].size(); ++o) {
      if (taps.weight[0][o] == 0) taps.index[0][o] = taps.index[1][o];
    }
    sum = pick(x, number, taps.index[0], cat(":index", number));
  } else {
    for (size_t t = 0; t < taps.index.size(); ++t) {
      const Literal weight = make_literal(x.dtype(), {axis.size}, taps.weight[t]);
      if (weight.is_splat() && weight.values[0] == 0) continue;
      const T part = pick(x, number, taps.index[t], cat(":index", number, ".", t));
      const T term = weight.is_splat()
                         ? (weight.values[0] == 1 ? part : part * weight.values[0])
                         : part * along(c.literal_tensor(weight, cat(":weight", number, ".", t)), number, rank);
      sum = sum.valid() ? sum + term : term;
    }
    if (!sum.valid()) sum = broadcast_to(c.constant(0, x.dtype(), {}), empty);
  }
  const Literal outside = make_literal(DType::b1, {axis.size}, taps.outside);
  if (outside.is_splat() && outside.values[0] == 0) return sum;
  const T mask =
      outside.is_splat() ? c.constant(1, DType::b1, {axis.size}) : c.literal_tensor(outside, cat(":outside", number));
  return select(along(mask, number, rank), how.outside, sum);
}

T resized(Call& c, T x, const std::vector<Axis>& axes, const Manner& how) {
  if (how.mode != "nearest" && how.mode != "linear" && how.mode != "cubic") {
    c.fail("mode '", how.mode, "', expected nearest, linear or cubic");
  }
  const DType dtype = x.dtype();
  const bool whole = !is_float(dtype) && how.mode != "nearest";
  if (whole) x = cast(x, size_of(dtype) < 4 ? DType::f32 : DType::f64);
  Shape shape;
  for (const Axis& axis : axes) {
    if (axis.size < 0 || axis.size > kMaxElements) c.fail("a size of ", axis.size, " is out of range");
    shape.push_back(axis.size);
  }
  c.check_shape(shape);
  for (size_t i = 0; i < axes.size(); ++i) {
    const bool same = axes[i].size == x.extent(static_cast<int64_t>(i)) && std::fabs(axes[i].scale - 1) < 1e-9;
    if (same && axes[i].low == 0 && axes[i].high == 1) continue;
    x = resize_axis(x, static_cast<int64_t>(i), axes[i], how);
  }
  // Results of integer dtypes are rounded, since a weighted sum that should be a whole number may be slightly less.
  return whole ? cast(apply(Op::round, {x}), dtype) : x;
}

double positive(Call& c, double scale) {
  if (!(scale > 0 && scale < 0x1p30)) c.fail("a scale of ", scale, " is out of range");
  return scale;
}

int64_t scaled(Call& c, double scale, int64_t extent) {
  const double size = std::floor(positive(c, scale) * static_cast<double>(extent));
  if (!(size <= 0x1p40)) c.fail("a scale of ", scale, " is out of range");
  return static_cast<int64_t>(size);
}

}  // namespace

T resize(Call& c) {
  const T x = c.in(0);
  const bool old = c.opset() < 11;
  const int roi_input = old ? 9 : 1, scale_input = old ? 1 : 2, size_input = 3;
  Manner how;
  how.mode = c.attr_text("mode", "nearest");
  how.coordinates = c.attr_text("coordinate_transformation_mode", old ? "asymmetric" : "half_pixel");
  how.nearest = c.attr_text("nearest_mode", old ? "floor" : "round_prefer_floor");
  how.antialias = c.attr("antialias", 0) != 0;
  how.exclude_outside = c.attr("exclude_outside", 0) != 0;
  how.cubic = c.attr_number("cubic_coeff_a", -0.75);
  how.outside = c.attr_number("extrapolation_value", 0);
  std::vector<int64_t> listed = c.attr_ints("axes", axes_from(0, x.rank()));
  for (int64_t& axis : listed) axis = c.axis(axis, x.rank());
  c.axes(listed, x.rank());
  const auto list = [&](int input) {
    auto values = c.has(input) ? c.numbers(input) : std::vector<double>{};
    if (!values.empty() && values.size() != listed.size() * (input == roi_input ? 2 : 1)) {
      c.fail("input ", input, " has ", values.size(), " numbers for ", listed.size(), " axes");
    }
    return values;
  };
  const auto scales = list(scale_input), sizes = list(size_input);
  const auto roi = how.coordinates == "tf_crop_and_resize" ? list(roi_input) : std::vector<double>{};
  if (scales.empty() == sizes.empty()) c.fail("either scales or sizes are needed");
  const std::string policy = c.attr_text("keep_aspect_ratio_policy", "stretch");
  std::vector<Axis> axes(x.shape().size());
  for (int64_t i = 0; i < x.rank(); ++i) axes[static_cast<size_t>(i)].size = x.extent(i);
  double common = 0;
  for (size_t i = 0; i < listed.size(); ++i) {
    Axis& axis = axes[static_cast<size_t>(listed[i])];
    const int64_t input = x.extent(listed[i]);
    if (!roi.empty()) {
      axis.low = roi[i];
      axis.high = roi[i + listed.size()];
    }
    if (!scales.empty()) {
      axis.scale = positive(c, scales[i]);
      axis.size = scaled(c, scales[i], input);
    } else {
      if (input < 1 || !(sizes[i] >= 0 && sizes[i] < 0x1p40)) c.fail("a size of ", sizes[i], " is out of range");
      axis.size = static_cast<int64_t>(sizes[i]);
      axis.scale = sizes[i] / static_cast<double>(input);
      common = i == 0                    ? axis.scale
               : policy == "not_smaller" ? std::max(common, axis.scale)
                                         : std::min(common, axis.scale);
    }
  }
  if (!sizes.empty() && policy != "stretch") {
    if (policy != "not_larger" && policy != "not_smaller") c.fail("keep_aspect_ratio_policy '", policy, "' is unknown");
    for (const int64_t i : listed) {
      Axis& axis = axes[static_cast<size_t>(i)];
      axis.scale = common;
      const double size = common * static_cast<double>(x.extent(i)) + 0.5;
      if (!(size < 0x1p40)) c.fail("a size of ", size, " is out of range");
      axis.size = static_cast<int64_t>(size);
    }
  }
  return resized(c, x, axes, how);
}

T upsample(Call& c) {
  const T x = c.in(0);
  const auto scales = c.has(1) ? c.numbers(1) : c.attr_numbers("scales");
  if (static_cast<int64_t>(scales.size()) != x.rank()) c.fail(scales.size(), " scales for rank ", x.rank());
  std::vector<Axis> axes(scales.size());
  for (size_t i = 0; i < scales.size(); ++i) {
    axes[i].scale = positive(c, scales[i]);
    axes[i].size = scaled(c, scales[i], x.extent(static_cast<int64_t>(i)));
  }
  Manner how;
  how.mode = c.attr_text("mode", "nearest");
  how.coordinates = "asymmetric";
  how.nearest = "floor";
  return resized(c, x, axes, how);
}

}  // namespace wl::onnx_import

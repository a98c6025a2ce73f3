// Samples images at computed positions: grids, regions, deformed convolutions. A sample is a weighted sum of elements
// that gathers read.
#include <algorithm>
#include <cmath>

#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {
namespace {

T floor_of(T x) {
  return apply(Op::floor, {x});
}
T clamp(T x, double low, double high) {
  return apply(Op::min, {apply(Op::max, {x, low}), high});
}
T both(T a, T b) {
  return apply(Op::logical_and, {a, b});
}

// Reflects positions at `low` and `high` until they lie between these borders.
T reflect(T x, double low, double high) {
  const double range = high - low;
  if (!(range > 0)) return x * 0.0 + low;
  const T distance = apply(Op::abs, {x - low}), turns = floor_of(distance / range);
  const T rest = distance - turns * range;
  return select(apply(Op::eq, {apply(Op::mod, {cast(turns, DType::i64), 2.0}), 0.0}), low + rest, high - rest);
}

struct Sampler {
  std::string mode, padding;  // mode: linear, cubic or nearest; padding: zeros, border or reflection
  bool align = false;

  // For every sample, one of the input elements around it: the element's index along one axis or along several joined
  // axes, its weight, and whether it lies inside the image. An empty `weight` stands for 1, and an empty `inside` for
  // elements that all lie inside.
  struct Tap {
    T index, weight, inside;
  };

  std::vector<Tap> taps(T x, int64_t extent) const {
    const auto n = static_cast<double>(extent);
    const double low = align ? 0 : -0.5, high = align ? n - 1 : n - 0.5;
    if (mode == "nearest") x = apply(Op::round, {x});
    if (padding == "border") x = clamp(x, 0, n - 1);
    if (padding == "reflection") x = reflect(x, low, high);
    std::vector<Tap> result;
    const T first = mode == "nearest" ? x : floor_of(x);
    // Indices of elements are computed as integers, since floats may not hold them exactly.
    const auto add = [&](double offset, T weight) {
      Tap tap{cast(first, DType::i64), weight, {}};
      if (offset != 0) tap.index = tap.index + offset;
      if (padding == "zeros") {
        tap.inside = both(apply(Op::ge, {tap.index, 0.0}), apply(Op::le, {tap.index, n - 1}));
      } else if (padding == "reflection") {
        tap.index = cast(apply(Op::round, {reflect(cast(tap.index, x.dtype()), low, high)}), DType::i64);
      }
      tap.index = clamp(tap.index, 0, n - 1);
      result.push_back(tap);
    };
    if (mode == "nearest") {
      add(0, {});
      return result;
    }
    const T t = x - first;
    if (mode == "linear") {
      add(0, 1.0 - t);
      add(1, t);
      return result;
    }
    const double a = -0.75;
    const auto outer = [&](T d) { return ((d * a - 5 * a) * d + 8 * a) * d - 4 * a; };
    const auto inner = [&](T d) { return (d * (a + 2) - (a + 3)) * d * d + 1.0; };
    add(-1, outer(t + 1.0));
    add(0, inner(t));
    add(1, inner(1.0 - t));
    add(2, outer(2.0 - t));
    return result;
  }

  // Samples x, [batch, channels, extents...], and returns [batch, channels, points]. places[i], [batch, points], has
  // the positions of the points along spatial axis i, in units of elements.
  T operator()(T x, const std::vector<T>& places) const {
    Call& c = x.call();
    const Shape shape = x.shape();
    const int64_t batch = shape[0], channels = shape[1], points = places[0].extent(1);
    int64_t area = 1;
    std::vector<Tap> all = {{}};
    for (size_t i = 0; i < places.size(); ++i) {
      const int64_t extent = shape[i + 2];
      if (extent < 1) c.fail("spatial axis ", i, " is empty");
      area *= extent;
      std::vector<Tap> next;
      for (const Tap& tap : taps(places[i], extent)) {
        for (const Tap& before : all) {
          Tap joined = tap;
          if (before.index.valid()) joined.index = before.index * static_cast<double>(extent) + tap.index;
          if (before.weight.valid()) joined.weight = before.weight * tap.weight;
          if (before.inside.valid()) joined.inside = both(before.inside, tap.inside);
          next.push_back(joined);
        }
      }
      all = std::move(next);
    }
    const T flat = reshape(x, {batch, channels, area});
    T sum;
    for (const Tap& tap : all) {
      const T index = broadcast_to(unsqueeze(tap.index, {1}), {batch, channels, points});
      T value = take_along(flat, index, 2);
      if (tap.weight.valid()) value = value * cast(unsqueeze(tap.weight, {1}), value.dtype());
      if (tap.inside.valid()) value = select(unsqueeze(tap.inside, {1}), value, 0.0);
      sum = sum.valid() ? sum + value : value;
    }
    return sum;
  }
};

}  // namespace

T grid_sample(Call& c) {
  const T x = c.in(0), grid = c.in(1);
  const int64_t spatial = x.rank() - 2;
  if (spatial < 1 || spatial > 3 || grid.rank() != x.rank() || grid.extent(grid.rank() - 1) != spatial ||
      grid.extent(0) != x.extent(0)) {
    c.fail("an image of shape ", shape_text(x.shape()), " and a grid of shape ", shape_text(grid.shape()),
           " do not fit");
  }
  Sampler sampler;
  sampler.mode = c.attr_text("mode", "linear");
  if (sampler.mode == "bilinear") sampler.mode = "linear";
  if (sampler.mode == "bicubic") sampler.mode = "cubic";
  sampler.padding = c.attr_text("padding_mode", "zeros");
  sampler.align = c.attr("align_corners", 0) != 0;
  const auto& mode = sampler.mode;
  const auto& padding = sampler.padding;
  if ((mode != "linear" && mode != "cubic" && mode != "nearest") ||
      (padding != "zeros" && padding != "border" && padding != "reflection")) {
    c.fail("mode '", mode, "' with padding_mode '", padding, "' is unknown");
  }
  Shape result = grid.shape();
  result.pop_back();
  const int64_t points = x.extent(0) == 0 ? 0 : elements(result) / x.extent(0);
  std::vector<T> places;
  for (int64_t i = 0; i < spatial; ++i) {
    // The grid has the coordinates of a point in reverse order: the one along the last spatial axis comes first.
    const T at = reshape(slice_axis(grid, grid.rank() - 1, spatial - 1 - i, 1, 1), {x.extent(0), points});
    const auto n = static_cast<double>(x.extent(i + 2));
    places.push_back(sampler.align ? (at + 1.0) * ((n - 1) / 2) : ((at + 1.0) * n - 1.0) * 0.5);
  }
  result.insert(result.begin() + 1, x.extent(1));
  return reshape(sampler(x, places), result);
}

T affine_grid(Call& c) {
  const T theta = c.in(0);
  const auto size = c.ints(1);
  const auto spatial = static_cast<int64_t>(size.size()) - 2;
  if (spatial < 2 || spatial > 3 || theta.shape() != Shape{size[0], spatial, spatial + 1}) {
    c.fail("theta of shape ", shape_text(theta.shape()), " does not fit size ", shape_text(size));
  }
  Shape shape(static_cast<size_t>(spatial) + 2, 1), whole = shape;
  whole[0] = size[0];
  whole.back() = spatial;
  for (int64_t i = 0; i < spatial; ++i) whole[static_cast<size_t>(i) + 1] = size[static_cast<size_t>(i) + 2];
  c.check_shape(whole);
  const auto column = [&](int64_t at) {
    Shape wide(static_cast<size_t>(spatial) + 2, 1);
    wide[0] = size[0];
    wide.back() = spatial;
    return reshape(slice_axis(theta, 2, at, 1, 1), wide);
  };
  T sum = broadcast_to(column(spatial), whole);
  for (int64_t i = 0; i < spatial; ++i) {
    Shape line = shape;
    const int64_t n = line[static_cast<size_t>(i) + 1] = size[static_cast<size_t>(i) + 2];
    const bool align = c.attr("align_corners", 0) != 0;
    const double step = align ? (n > 1 ? 2.0 / static_cast<double>(n - 1) : 0) : 2.0 / static_cast<double>(n);
    const T at = c.iota(theta.dtype(), line, i + 1) * step + (align ? -1.0 : step / 2 - 1);
    sum = sum + column(spatial - 1 - i) * at;
  }
  return sum;
}

namespace {

struct Regions {
  T x;      // the image: [batch, channels, height, width]
  T rois;   // the regions: [regions, 4]; columns: left, top, right, bottom
  T batch;  // for each region, the number of its image in the batch: i64 [regions]
  int64_t height, width;
  double scale;
  bool half;
  bool max;
};

// Divides every region into `height` x `width` bins and returns the mean or maximum of the `rows` x `columns` samples
// of each bin: [regions, channels, height, width].
T align(const Regions& r, int64_t rows, int64_t columns) {
  Call& c = r.x.call();
  const int64_t regions = r.rois.extent(0), channels = r.x.extent(1), h = r.x.extent(2), w = r.x.extent(3);
  struct Line {
    T low, high, fraction, inside;
  };
  // Returns the sampling positions along one axis. Each is given by the elements before and after it, and by its
  // distance from the first, as a fraction of the distance between the two. Shapes: [regions, bins * samples].
  const auto line = [&](int64_t begin, int64_t bins, int64_t samples, int64_t extent) {
    const auto edge = [&](int64_t column) {
      return reshape(slice_axis(r.rois, 1, column, 1, 1), {regions, 1}) * r.scale - (r.half ? 0.5 : 0.0);
    };
    const T start = edge(begin);
    T length = edge(begin + 2) - start;
    if (!r.half) length = apply(Op::max, {length, 1.0});
    const T number = c.iota(r.rois.dtype(), {1, bins * samples}, 1);
    T at = start + (number + 0.5) * (length / static_cast<double>(bins * samples));
    const auto n = static_cast<double>(extent);
    const T inside = both(apply(Op::ge, {at, -1.0}), apply(Op::le, {at, n}));
    at = clamp(at, 0, n - 1);
    const T first = floor_of(at), low = cast(first, DType::i64);
    return Line{low, apply(Op::min, {low + 1.0, n - 1}), at - first, inside};
  };
  const Line y = line(1, r.height, rows, h), x = line(0, r.width, columns, w);
  const Shape plane = {regions, r.height * rows, r.width * columns};
  const int64_t points = elements(plane);
  const T image =
      reshape(transpose(reshape(r.x, {r.x.extent(0), channels, h * w}), {1, 0, 2}), {channels, r.x.extent(0) * h * w});
  const auto corner = [&](bool down, bool right) {
    const T row = unsqueeze(down ? y.high : y.low, {2}), column = unsqueeze(right ? x.high : x.low, {1});
    const T index =
        row * static_cast<double>(w) + column + reshape(r.batch, {regions, 1, 1}) * static_cast<double>(h * w);
    const T flat = broadcast_to(reshape(broadcast_to(index, plane), {1, points}), {channels, points});
    const T weight =
        unsqueeze(down ? y.fraction : 1.0 - y.fraction, {2}) * unsqueeze(right ? x.fraction : 1.0 - x.fraction, {1});
    const T counted = select(both(unsqueeze(y.inside, {2}), unsqueeze(x.inside, {1})), weight, 0.0);
    return reshape(take_along(image, flat, 1), {channels, plane[0], plane[1], plane[2]}) *
           cast(unsqueeze(counted, {0}), r.x.dtype());
  };
  const T a = corner(false, false), b = corner(false, true), d = corner(true, false), e = corner(true, true);
  const T all = r.max ? apply(Op::max, {apply(Op::max, {a, b}), apply(Op::max, {d, e})}) : a + b + d + e;
  const T bins = reshape(all, {channels, regions, r.height, rows, r.width, columns});
  const T result = r.max ? reduce(Op::reduce_max, bins, {3, 5}, false) : mean(bins, {3, 5}, false);
  return transpose(result, {1, 0, 2, 3});
}

}  // namespace

T roi_align(Call& c) {
  Regions r{c.in(0),
            c.in(1),
            cast(c.in(2), DType::i64),
            c.attr("output_height", 1),
            c.attr("output_width", 1),
            c.attr_number("spatial_scale", 1),
            false,
            c.attr_text("mode", "avg") == "max"};
  r.half = c.opset() >= 16 && c.attr_text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const int64_t regions = r.batch.rank() == 1 ? r.batch.extent(0) : -1;
  if (r.x.rank() != 4 || r.rois.shape() != Shape{regions, 4} || elements(r.x.shape()) < 1) {
    c.fail("[batch, channels, height, width], [regions, 4] and [regions] were expected, found ",
           shape_text(r.x.shape()), ", ", shape_text(r.rois.shape()), " and ", shape_text(r.batch.shape()));
  }
  const int64_t samples = c.attr("sampling_ratio", 0);
  if (r.height < 1 || r.width < 1 || samples < 0 || r.height > 65536 || r.width > 65536 || samples > 65536) {
    c.fail("output_height, output_width or sampling_ratio is out of range");
  }
  c.check_shape({regions, r.x.extent(1), r.height, samples + 1, r.width, samples + 1});
  if (samples > 0) return align(r, samples, samples);
  const Literal* known = c.literal(1);
  if (known == nullptr) c.missing("sampling_ratio 0 counts samples by region, so input 1 must be constant");
  if (regions > 4096) c.missing(regions, " regions whose samples are counted one by one");
  std::vector<T> parts;
  const T rois = r.rois, batch = r.batch;
  for (int64_t i = 0; i < regions; ++i) {
    const auto count = [&](int64_t begin, int64_t bins) {
      double length = (known->at(i * 4 + begin + 2) - known->at(i * 4 + begin)) * r.scale;
      if (!r.half) length = std::max(length, 1.0);
      const double samples_here = std::ceil(length / static_cast<double>(bins));
      if (!(samples_here <= 65536)) c.fail("region ", i, " is out of range");
      return static_cast<int64_t>(std::max(samples_here, 1.0));
    };
    r.rois = slice_axis(rois, 0, i, 1, 1);
    r.batch = slice_axis(batch, 0, i, 1, 1);
    parts.push_back(align(r, count(1, r.height), count(0, r.width)));
  }
  if (parts.empty()) return c.constant(0, r.x.dtype(), {0, r.x.extent(1), r.height, r.width});
  return concat(parts, 0);
}

T deform_conv(Call& c) {
  const T x = c.in(0), w = c.in(1);
  if (x.rank() != 4 || w.rank() != 4)
    c.missing("images of shape ", shape_text(x.shape()), "; two spatial axes are supported");
  const int64_t groups = c.attr("group", 1), parts = c.attr("offset_group", 1);
  const Shape in = x.shape(), kernel = w.shape();
  const auto strides = c.attr_ints("strides", {1, 1}), dilations = c.attr_ints("dilations", {1, 1});
  const auto pads = c.attr_ints("pads", {0, 0, 0, 0});
  const T offset = c.in(2);
  const int64_t taps = kernel[2] * kernel[3];
  if (groups < 1 || parts < 1 || parts > 65536 || in[1] % groups != 0 || in[1] % parts != 0 ||
      kernel[0] % groups != 0 || kernel[1] != in[1] / groups || strides.size() != 2 || dilations.size() != 2 ||
      pads.size() != 4 || offset.rank() != 4 || offset.extent(0) != in[0] || offset.extent(1) != parts * taps * 2) {
    c.fail("input ", shape_text(in), ", weights ", shape_text(kernel), " and offsets ", shape_text(offset.shape()),
           " do not fit");
  }
  const int64_t rows = offset.extent(2), columns = offset.extent(3), batch = in[0] * parts;
  const T moved = reshape(offset, {batch, kernel[2], kernel[3], 2, rows, columns});
  const Shape grid = {batch, kernel[2], kernel[3], rows, columns};
  const int64_t points = taps * rows * columns;
  c.check_shape({batch, in[1], points});
  const auto place = [&](int64_t axis) {
    const auto i = static_cast<size_t>(axis);
    Shape tap_line(5, 1), out_line(5, 1);
    tap_line[i + 1] = kernel[i + 2];
    out_line[i + 3] = axis == 0 ? rows : columns;
    const T base = c.iota(offset.dtype(), tap_line, axis + 1) * static_cast<double>(dilations[i]) +
                   c.iota(offset.dtype(), out_line, axis + 3) * static_cast<double>(strides[i]) -
                   static_cast<double>(pads[i]);
    return reshape(reshape(slice_axis(moved, 3, axis, 1, 1), grid) + base, {batch, points});
  };
  Sampler sampler{"linear", "zeros", true};
  T samples = sampler(reshape(x, {batch, in[1] / parts, in[2], in[3]}), {place(0), place(1)});
  if (c.has(4)) {
    const T mask = c.in(4);
    samples = samples * reshape(mask, {batch, 1, points});
  }
  samples = reshape(samples, {in[0], groups, in[1] / groups, taps, rows * columns});
  const T weights = reshape(w, {groups, kernel[0] / groups, kernel[1], taps});
  const T y = reshape(contract(samples, weights, "ngctp,goct->ngop"), {in[0], kernel[0], rows, columns});
  return c.has(3) ? y + along(c.in(3), 1, 4) : y;
}

}  // namespace wl::onnx_import

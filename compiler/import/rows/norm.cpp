// Normalisations: statistics are computed over some axes, then the input is scaled and shifted.
#include <algorithm>

#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {
namespace {

// Returns x in the dtype in which statistics are computed: at least f32, unless the node's stash_type is not FLOAT.
T stash(Call& c, T x) {
  const int64_t type = c.attr("stash_type", 1);
  if (x.dtype() == DType::f64 || type != 1) return x;
  return cast(x, DType::f32);
}

struct Centred {
  T mean, inverse;  // mean and 1 / standard deviation, without the reduced axes
  T normal;         // the normalised input, (x - mean) * inverse
};

Centred centre(T x, const std::vector<int64_t>& axes, double epsilon) {
  Centred result;
  result.mean = mean(x, axes, false);
  const T centred = x - stretch(result.mean, axes, x.shape());
  const T variance = mean(centred * centred, axes, false);
  result.inverse = apply(Op::rsqrt, {variance + epsilon});
  result.normal = centred * stretch(result.inverse, axes, x.shape());
  return result;
}

T kept(T reduced, const std::vector<int64_t>& axes, Shape shape) {
  for (const int64_t axis : axes) shape[static_cast<size_t>(axis)] = 1;
  return reshape(reduced, std::move(shape));
}

T layer_norm_of(Call& c, T x, int scale, int bias, double epsilon) {
  const auto axes = axes_from(c.axis(c.attr("axis", -1), x.rank()), x.rank());
  const Centred parts = centre(stash(c, x), axes, epsilon);
  T y = cast(parts.normal, x.dtype());
  if (c.has(scale)) y = y * c.in(scale);
  if (c.has(bias)) y = y + c.in(bias);
  // Output statistics have the dtype that attribute stash_type says, even if they were computed in another dtype.
  const auto statistic = [&](T of) { return cast(kept(of, axes, x.shape()), c.dtype_attr("stash_type", DType::f32)); };
  if (c.wants(1)) c.set(1, statistic(parts.mean));
  if (c.wants(2)) c.set(2, statistic(parts.inverse));
  return y;
}

T rms_norm_of(Call& c, T x, int scale, double epsilon) {
  const auto axes = axes_from(c.axis(c.attr("axis", -1), x.rank()), x.rank());
  const T wide = stash(c, x);
  const T inverse = apply(Op::rsqrt, {mean(wide * wide, axes, false) + epsilon});
  // The result has the dtype of the scale, which may differ from that of the input.
  const T y = cast(wide * stretch(inverse, axes, x.shape()), c.has(scale) ? c.dtype(scale) : x.dtype());
  return c.has(scale) ? y * c.in(scale) : y;
}

void need_rank(Call& c, T x, int64_t least) {
  if (x.rank() < least) {
    c.fail("input 0 must have rank ", least, " or more (batch, channels, ...), it has shape ", shape_text(x.shape()));
  }
}

}  // namespace

T layer_norm(Call& c) {
  return layer_norm_of(c, c.in(0), 1, 2, c.attr_number("epsilon", 1e-5));
}

T rms_norm(Call& c) {
  if (c.wants(1)) c.missing("output 1: the inverse deviation is not supported");
  return rms_norm_of(c, c.in(0), 1, c.attr_number("epsilon", 1e-5));
}

T batch_norm(Call& c) {
  if (c.attr("spatial", 1) != 1) c.missing("attribute spatial = 0 is not supported");
  const T x = c.in(0);
  need_rank(c, x, 2);
  const int64_t rank = x.rank();
  if (c.attr("training_mode", 0) != 0 || (c.opset() < 7 && c.attr("is_test", 0) == 0)) {
    auto axes = axes_from(0, rank);
    axes.erase(axes.begin() + 1);
    const T average = mean(x, axes, false);
    const T centred = x - stretch(average, axes, x.shape());
    const T variance = mean(centred * centred, axes, false);
    const double momentum = c.attr_number("momentum", 0.9);
    c.set(1, c.in(3) * momentum + cast(average, c.dtype(3)) * (1 - momentum));
    c.set(2, c.in(4) * momentum + cast(variance, c.dtype(4)) * (1 - momentum));
    const T inverse = apply(Op::rsqrt, {variance + c.attr_number("epsilon", 1e-5)});
    return centred * stretch(inverse, axes, x.shape()) * along(c.in(1), 1, rank) + along(c.in(2), 1, rank);
  }
  for (int i = 1; i < c.outputs(); ++i) {
    if (c.wants(i)) c.missing("output ", i, ": statistics of training are not supported");
  }
  // The scale of a channel is first multiplied with 1 / standard deviation, so that each element needs only one
  // subtraction, one multiplication and one addition. Scale and shift, and mean and variance, may have other dtypes
  // than the input.
  DType wide = x.dtype();
  for (int i = 1; i < 5; ++i)
    if (c.dtype(i) != wide) wide = wide == DType::f64 || c.dtype(i) == DType::f64 ? DType::f64 : DType::f32;
  const auto in = [&](int i) { return cast(c.in(i), wide); };
  const T factor = in(1) * apply(Op::rsqrt, {in(4) + c.attr_number("epsilon", 1e-5)});
  return cast((in(0) - along(in(3), 1, rank)) * along(factor, 1, rank) + along(in(2), 1, rank), x.dtype());
}

T group_norm(Call& c) {
  const T x = c.in(0);
  need_rank(c, x, 3);
  const int64_t groups = c.attr("num_groups", 0), channels = x.extent(1);
  if (groups < 1 || channels % groups != 0) {
    c.fail("num_groups is ", groups, "; it must divide the ", channels, " channels");
  }
  Shape split = x.shape();
  split[1] = groups;
  split.insert(split.begin() + 2, channels / groups);
  const T grouped = reshape(stash(c, x), split);
  const auto axes = axes_from(2, grouped.rank());
  T y = cast(centre(grouped, axes, c.attr_number("epsilon", 1e-5)).normal, x.dtype());
  // Up to opset version 20, scale and bias have one number per group; since version 21, one per channel.
  if (c.opset() < 21) {
    y = y * along(c.in(1), 1, y.rank()) + along(c.in(2), 1, y.rank());
    return reshape(y, x.shape());
  }
  y = reshape(y, x.shape());
  return y * along(c.in(1), 1, x.rank()) + along(c.in(2), 1, x.rank());
}

T instance_norm(Call& c) {
  const T x = c.in(0);
  need_rank(c, x, 3);
  const T y = centre(x, axes_from(2, x.rank()), c.attr_number("epsilon", 1e-5)).normal;
  return y * along(c.in(1), 1, x.rank()) + along(c.in(2), 1, x.rank());
}

T mean_variance_norm(Call& c) {
  const T x = c.in(0);
  const auto axes = c.axes(c.attr_ints("axes", {0, 2, 3}), x.rank());
  const T centred = x - stretch(mean(x, axes, false), axes, x.shape());
  const T deviation =
      // The epsilon is added after the square root, as in the function body that the ONNX standard gives for the op.
      apply(Op::sqrt, {mean(centred * centred, axes, false)}) + 1e-9;
  return centred / stretch(deviation, axes, x.shape());
}

T lp_norm(Call& c) {
  const T x = c.in(0);
  const int64_t axis = c.axis(c.attr("axis", -1), x.rank()), p = c.attr("p", 2);
  if (p != 1 && p != 2) c.missing("attribute p = ", p, "; supported are 1 and 2");
  T norm = reduce(Op::reduce_sum, p == 1 ? apply(Op::abs, {x}) : x * x, {axis}, false);
  if (p == 2) norm = apply(Op::sqrt, {norm});
  const T divisor = select(apply(Op::eq, {norm, 0.0}), 1.0, norm);  // in a row of zeros, a divisor of 1 leaves zeros
  return x / stretch(divisor, {axis}, x.shape());
}

T local_response_norm(Call& c) {
  const T x = c.in(0);
  need_rank(c, x, 2);
  const int64_t size = c.attr("size", 0);
  if (size < 1 || size > kMaxElements) c.fail("size is ", size, ", it must be at least 1");
  std::vector<int64_t> low(x.shape().size(), 0), high = low;
  low[1] = (size - 1) / 2;
  high[1] = size - 1 - low[1];
  const T squares = window(pad(x * x, low, high, 0), {1}, {size, 1, 1});
  const T sum = reduce(Op::reduce_sum, squares, {x.rank()}, false);
  const T base = sum * (c.attr_number("alpha", 1e-4) / static_cast<double>(size)) + c.attr_number("bias", 1);
  return x * apply(Op::pow, {base, -c.attr_number("beta", 0.75)});
}

// Normalises the sum of the node's inputs. Output 3 is this sum. Outputs 1 and 2, the statistics, are not supported;
// onnxruntime never fills them.
T skip_layer_norm(Call& c) {
  T x = c.in(0) + c.in(1);
  if (c.has(4)) x = x + c.in(4);
  if (c.wants(1) || c.wants(2)) c.missing("outputs 1 and 2: the statistics are not supported");
  c.set(3, x);
  return layer_norm_of(c, x, 2, 3, c.attr_number("epsilon", 1e-12));
}

T skip_rms_norm(Call& c) {
  T x = c.in(0) + c.in(1);
  if (c.has(3)) x = x + c.in(3);
  if (c.wants(1) || c.wants(2)) c.missing("outputs 1 and 2: the statistics are not supported");
  c.set(3, x);
  return rms_norm_of(c, x, 2, c.attr_number("epsilon", 1e-12));
}

}  // namespace wl::onnx_import

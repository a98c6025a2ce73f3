// Elementwise ops whose decomposition takes more than one formula.
#include <cmath>
#include <limits>

#include "compiler/import/rows/rows.h"
#include "compiler/ir/ops.h"

namespace wl::onnx_import {

namespace {

// Returns operand 1 of a binary op in a shape that broadcasts with operand 0. Up to opset version 6, attribute `axis`
// may say at which axis of operand 0 the axes of operand 1 begin.
T second(Call& c) {
  const T x = c.in(0), y = c.in(1);
  if (c.opset() >= 7 || c.attr("broadcast", 0) == 0 || !c.has_attr("axis")) return y;
  const int64_t axis = c.axis(c.attr("axis", 0), x.rank()), after = x.rank() - axis - y.rank();
  if (after < 0) c.fail("axis ", axis, " leaves no room for shape ", shape_text(y.shape()));
  Shape shape = y.shape();
  shape.insert(shape.end(), static_cast<size_t>(after), 1);
  return reshape(y, std::move(shape));
}

}  // namespace

T unary(Call& c, Op op) {
  return apply(op, {c.in(0)});
}
T binary(Call& c, Op op) {
  return apply(op, {c.in(0), second(c)});
}

T variadic(Call& c, Op op) {
  const auto all = c.all();
  T result = all[0];
  for (size_t i = 1; i < all.size(); ++i) result = apply(op, {result, all[i]});
  return result;
}

namespace {

bool is_unsigned(DType dtype) {
  return !is_float(dtype) && identity_of(Op::max, dtype) == 0;
}

// Returns the dtype in which a power is computed. The ONNX standard says that the power is then rounded, once, to the
// dtype of the base.
DType dtype_of_power(DType base, DType exponent) {
  if (base == exponent) return base;
  if (is_float(exponent)) {
    if (!is_float(base)) return DType::f64;
    return base == DType::f64 || exponent == DType::f64 ? DType::f64 : DType::f32;
  }
  // If the base is negative, the sign of the power depends on whether the exponent is even. So the exponent must be
  // exact, and the power is computed in f64 for integer exponents of four bytes or more.
  if (is_float(base)) return base == DType::f64 || size_of(exponent) >= 4 ? DType::f64 : DType::f32;
  // Powers of integers wrap. If the exponent may not fit the dtype of the base, a 64-bit dtype is used, in which the
  // low bits of the power are the same.
  if (size_of(exponent) <= size_of(base) && is_unsigned(base) == is_unsigned(exponent)) return base;
  return exponent == DType::u64 ? DType::u64 : DType::i64;
}

}  // namespace

T power(Call& c) {
  const T x = c.in(0);
  // Powers with exponents 1, 2 and 3 are computed by products, as in every runtime: op pow costs 24 issue slots and may
  // be wrong by 8 units in the last place.
  if (const Literal* exponent = c.literal(1); exponent != nullptr && exponent->is_splat()) {
    const Shape shape = broadcast_shape(c, {x.shape(), exponent->shape});
    const T wide = broadcast_to(x, shape);
    const double value = exponent->values[0];
    if (value == 1) return wide;
    if (value == 2) return wide * wide;
    if (value == 3) return wide * wide * wide;
    if (round_to(x.dtype(), value) == value) return apply(Op::pow, {wide, value});
  }
  const T y = second(c);
  const DType within = dtype_of_power(x.dtype(), y.dtype());
  return cast(apply(Op::pow, {cast(x, within), cast(y, within)}), x.dtype());
}

T modulo(Call& c) {
  return binary(c, c.attr("fmod", 0) != 0 ? Op::fmod : Op::mod);
}

T clip(Call& c) {
  T x = c.in(0);
  if (c.opset() < 11) {
    x = apply(Op::max, {x, c.attr_number("min", std::numeric_limits<float>::lowest())});
    return apply(Op::min, {x, c.attr_number("max", std::numeric_limits<float>::max())});
  }
  if (c.has(1)) x = apply(Op::max, {x, c.in(1)});
  return c.has(2) ? apply(Op::min, {x, c.in(2)}) : x;
}

T prelu(Call& c) {
  T slope = c.in(1);
  // Up to opset version 6, a slope of rank 1 has one number per channel.
  if (c.opset() < 7 && slope.rank() == 1 && slope.extent(0) != 1) slope = along(slope, 1, c.in(0).rank());
  return select(apply(Op::lt, {c.in(0), 0.0}), c.in(0) * slope, c.in(0));
}

// Casts to eight-bit floats as attribute `saturate` says, and to other dtypes as cast() does. The op cast saturates
// finite numbers but keeps infinities if the dtype has them; any other behaviour needs a clamp or a selection before
// it.
T cast_saturating(Call& c, T x, DType dtype) {
  if (!saturates(dtype) || !is_float(x.dtype()) || x.dtype() == dtype) return cast(x, dtype);
  const double largest = info(dtype).largest;
  if (x.dtype() == DType::f8e4m3fn || x.dtype() == DType::f8e5m2) x = cast(x, DType::f32);
  if (c.attr("saturate", 1) != 0) return cast(apply(Op::min, {apply(Op::max, {x, -largest}), largest}), dtype);
  // A number overflows if it exceeds the largest finite number of `dtype` by more than half the distance between that
  // number and the one before it. A tie is rounded to the even neighbour. For f8e4m3fn that is the largest finite
  // number, so ties overflow only for f8e5m2.
  const bool infinite = dtype == DType::f8e5m2;
  const double first = infinite ? 61440 : 464;
  const T over = apply(infinite ? Op::ge : Op::gt, {apply(Op::abs, {x}), first});
  const double infinity = std::numeric_limits<double>::infinity();
  return cast(select(over, infinite ? x * infinity : x * std::numeric_limits<double>::quiet_NaN(), x), dtype);
}

T cast_to(Call& c) {
  if (!c.has_attr("to")) c.fail("attribute to is needed");
  const int64_t to = c.attr("to", 0);
  const auto dtype = dtype_of(to < 0 || to > 1000 ? -1 : static_cast<int>(to), "the result");
  if (!dtype.ok()) throw Rejected{dtype.status()};
  return cast_saturating(c, c.in(0), *dtype);
}

T cast_like(Call& c) {
  // If the values of input 0 are known, the result is computed now. Input 1 gives only the dtype, so its values need
  // not be known.
  const Literal* known = c.literal(0);
  const DType to = c.dtype(1);
  if (known != nullptr && to != DType::b1 && !saturates(to) && !saturates(known->dtype)) {
    std::vector<double> values = known->values;
    for (double& v : values) v = is_float(to) ? round_to(to, v) : to_integer(to, known->dtype, v);
    return c.set_literal(0, make_literal(to, known->shape, std::move(values)));
  }
  return cast_saturating(c, c.in(0), c.dtype(1));
}

T is_inf(Call& c) {
  const T x = c.in(0);
  const double infinity = std::numeric_limits<double>::infinity();
  const bool positive = c.attr("detect_positive", 1) != 0, negative = c.attr("detect_negative", 1) != 0;
  if (positive && negative) return apply(Op::eq, {apply(Op::abs, {x}), infinity});
  if (positive || negative) return apply(Op::eq, {x, positive ? infinity : -infinity});
  return c.constant(0, DType::b1, x.shape());
}

T dropout(Call& c) {
  const Literal* training = c.has(2) ? c.literal(2) : nullptr;
  if (c.has(2) && training == nullptr) c.missing("input 2, training_mode, must be constant");
  // With a ratio of 0, dropout drops nothing, even in training.
  const bool drops = training != nullptr && training->at(0) != 0 && (!c.has(1) || c.number(1) != 0);
  if (drops) c.missing("training_mode: only inference is supported");
  const T x = c.in(0);
  if (c.wants(1)) c.set(1, c.constant(1, c.opset() < 10 ? x.dtype() : DType::b1, x.shape()));
  return x;
}

namespace {

// Returns a scale or zero point in a shape that broadcasts with x. `value` has one number, or one for each slice along
// attribute `axis`, or, if attribute `block_size` is given, one for each block along this axis.
T per_axis(Call& c, T value, T x) {
  if (const int64_t block = c.attr("block_size", 0); block != 0) {
    const int64_t axis = c.axis(c.attr("axis", 1), x.rank()), n = x.extent(axis);
    Shape expected = x.shape();
    expected[static_cast<size_t>(axis)] = block < 1 ? -1 : (n + block - 1) / block;
    if (value.shape() != expected || block > kMaxElements) {
      c.fail("scales of shape ", shape_text(value.shape()), " do not fit blocks of ", block, " along axis ", axis);
    }
    Shape apart = expected, joined = expected;
    apart.insert(apart.begin() + axis + 1, 1);
    const T single = reshape(value, apart);
    apart[static_cast<size_t>(axis) + 1] = block;
    joined[static_cast<size_t>(axis)] *= block;
    return slice_axis(reshape(broadcast_to(single, apart), joined), axis, 0, 1, n);
  }
  if (value.rank() != 1 || value.extent(0) == 1) return reshape(value, {});
  return along(value, c.axis(c.attr("axis", 1), x.rank()), x.rank());
}

}  // namespace

T with_bias(Call& c, T y) {
  if (!c.has(2)) return y;
  if (c.in(2).shape() != Shape{y.extent(1)}) {
    c.fail("a bias of shape ", shape_text(c.in(2).shape()), " does not fit ", y.extent(1), " output channels");
  }
  return y + along(c.in(2), 1, y.rank());
}

T dequantize(Call& c) {
  const T x = c.in(0), scale = c.in(1);
  // Differences of integers of 16 bits may not be values of a scale's type of 16 bits, so f32 has them. Integers of 32
  // bits may be beyond the largest value of f16.
  const bool widens = size_of(x.dtype()) > 1 && size_of(scale.dtype()) < 4;
  const DType inner = widens ? DType::f32 : scale.dtype();
  T centred = cast(x, inner);
  if (c.has(2)) {
    // The difference of two integers of at most eight bits is exact in every float type, so no integer arithmetic is
    // needed; that of two integers of 16 bits is exact in f32.
    centred = centred - cast(per_axis(c, c.in(2), x), inner);
  }
  const T y = centred * cast(per_axis(c, scale, x), inner);
  const DType result = c.dtype_attr("output_dtype", scale.dtype());
  if (!is_float(result)) c.fail("output_dtype is ", name_of(result), "; what is dequantised is a float");
  return cast(y, result);
}

T quantize(Call& c) {
  const T x = c.in(0);
  DType dtype = DType::u8;
  if (c.has(2)) {
    dtype = c.dtype(2);
  } else if (c.attr("output_dtype", 0) != 0) {
    const auto named = dtype_of(static_cast<int>(c.attr("output_dtype", 0) & 0xffff), "the result");
    if (!named.ok()) throw Rejected{named.status()};
    dtype = *named;
  }
  if (saturates(dtype)) {
    T scaled = x / cast(per_axis(c, c.in(1), x), x.dtype());
    if (c.has(2)) scaled = scaled + cast(per_axis(c, c.in(2), x), x.dtype());
    return cast_saturating(c, scaled, dtype);
  }
  if (is_float(dtype)) c.missing("quantising to ", name_of(dtype), " is not supported");
  const int bits = 8 * size_of(dtype);
  const bool is_signed = dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32;
  if (!is_signed && dtype != DType::u8 && dtype != DType::u16) {
    c.missing("quantising to ", name_of(dtype), " is not supported");
  }
  const double low = is_signed ? -std::ldexp(1, bits - 1) : 0;
  const double high = std::ldexp(1, is_signed ? bits - 1 : bits) - 1;
  T scaled = apply(Op::round, {x / cast(per_axis(c, c.in(1), x), x.dtype())});
  // Results of 16 bits and their zero points may not be values of a type of 16 bits, so f32 has their sums.
  if (bits > 8 && size_of(x.dtype()) < 4) scaled = cast(scaled, DType::f32);
  if (c.has(2)) scaled = scaled + cast(per_axis(c, c.in(2), x), scaled.dtype());
  return cast_whole(apply(Op::min, {apply(Op::max, {scaled, low}), high}), dtype);
}

}  // namespace wl::onnx_import

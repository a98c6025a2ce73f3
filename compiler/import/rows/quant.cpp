// Quantised arithmetic. Zero points are subtracted from integers, ops compute in 32 bits or in floats, and results are
// scaled, rounded and saturated.
#include <algorithm>
#include <cmath>

#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {
namespace {

bool is_signed(DType dtype) {
  return dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
}

// Reshapes a scale or zero point so that it broadcasts with a tensor of rank `rank`. The scale or zero point has one
// number, or one for each slice along `axis`.
T on_axis(T value, int64_t axis, int64_t rank) {
  if (value.rank() == 1 && value.extent(0) != 1) return along(value, axis, rank);
  return value.rank() <= 1 ? reshape(value, {}) : value;
}

// Reshapes a scale or zero point of a matrix product so that it broadcasts. The scale or zero point has one number, or
// one for each row of A (`axis` -2) or column of B (`axis` -1).
T on_matrix(T value, int64_t axis, int64_t rank) {
  return rank >= 2 ? on_axis(value, rank + axis, rank) : on_axis(value, 0, rank);
}

struct Quantised {
  T scale, zero;  // `zero` is absent (an empty T) if the node has no zero point
};

Quantised quantised(Call& c, int scale, int zero) {
  return {c.in(scale), zero >= 0 && c.has(zero) ? c.in(zero) : T()};
}

// Returns round(x / scale) + zero, saturated to `dtype`.
T store(T x, T scale, T zero, DType dtype) {
  const int bits = 8 * size_of(dtype);
  if (bits > 16 || is_float(dtype)) x.call().missing("quantising to ", name_of(dtype), " is not supported");
  const double low = is_signed(dtype) ? -std::ldexp(1, bits - 1) : 0;
  const double high = std::ldexp(1, is_signed(dtype) ? bits - 1 : bits) - 1;
  // After rounding to whole numbers, arithmetic in i32 is exact. Clamping to twice the range of `dtype` first makes
  // every value fit an i32 and does not change the result.
  const double most = 2 * (high - low);
  T y = apply(Op::round, {x / cast(scale, x.dtype())});
  y = cast_whole(apply(Op::min, {apply(Op::max, {y, -most}), most}), DType::i32);
  if (zero.valid()) y = y + cast(zero, DType::i32);
  return cast(apply(Op::min, {apply(Op::max, {y, low}), high}), dtype);
}

T zero_point(T low, T scale) {
  return cast_whole(apply(Op::min, {apply(Op::max, {apply(Op::round, {-low / scale}), 0.0}), 255.0}), DType::u8);
}

T real(T x, const Quantised& q, DType dtype) {
  T y = cast(x, dtype);
  if (q.zero.valid()) y = y - cast(on_axis(q.zero, 0, 0), dtype);
  return y * cast(on_axis(q.scale, 0, 0), dtype);
}

T centred(T x, T zero) {
  const T wide = cast(x, DType::i32);
  return zero.valid() ? wide - cast(zero, DType::i32) : wide;
}

bool is_zero(Call& c, int input) {
  const Literal* literal = c.literal(input);
  return literal != nullptr && literal->is_splat() && literal->at(0) == 0;
}

// Returns the zero point of an operand of a matrix product, reshaped by on_matrix(). If the zero point is absent or 0,
// returns an empty T (no tensor).
T matrix_zero(Call& c, int input, int64_t axis, int64_t rank) {
  return c.has(input) && !is_zero(c, input) ? on_matrix(c.in(input), axis, rank) : T();
}

// Returns the matrix product of a - a_zero and b - b_zero in i32. Zero points must have shapes that broadcast; an empty
// T (no tensor) stands for 0. Matrices of eight-bit integers are multiplied as they are, and the contribution of the
// zero points is then subtracted.
T integer_matmul(T a, T a_zero, T b, T b_zero) {
  const auto wide = [](T x) { return cast(x, DType::i32); };
  if (!is_byte(a.dtype()) || !is_byte(b.dtype()) || a.rank() < 2 || b.rank() < 2)
    return matmul(centred(a, a_zero), centred(b, b_zero));
  if (a_zero.valid()) a_zero = wide(a_zero);
  if (b_zero.valid()) b_zero = wide(b_zero);
  if (a.dtype() == b.dtype()) {
    // Machine instructions multiply u8 by i8. If both operands have the same dtype, one operand is converted to the
    // other dtype: 128 is added to or subtracted from its elements and its zero point.
    const double by = a.dtype() == DType::u8 ? -128 : 128;
    T &moved = by < 0 ? b : a, &zero = by < 0 ? b_zero : a_zero;
    moved = cast(wide(moved) + by, by < 0 ? DType::i8 : DType::u8);
    zero = zero.valid() ? zero + by : a.call().constant(by, DType::i32, {});
  }
  const auto sums = [&](T x, int64_t axis) { return reduce(Op::reduce_sum, wide(x), {axis}, true); };
  const auto depth = static_cast<double>(a.extent(a.rank() - 1));
  T y = matmul(a, b);
  if (a_zero.valid()) y = y - a_zero * sums(b, b.rank() - 2);
  if (!b_zero.valid()) return y;
  const T rows = sums(a, a.rank() - 1);
  return y - b_zero * (a_zero.valid() ? rows - a_zero * depth : rows);
}

DType wide_of(T scale) {
  return scale.dtype() == DType::f64 ? DType::f64 : DType::f32;
}

}  // namespace

T mat_mul_integer(Call& c) {
  // The zero point of an operand has one number, or one for each row of A or for each column of B.
  const auto zero = [&](int operand, int index) {
    if (!c.has(index) || is_zero(c, index)) return T();
    T point = c.in(index);
    if (operand == 0 && point.rank() == 1 && c.rank(0) >= 2 && point.extent(0) != 1) point = unsqueeze(point, {1});
    return point;
  };
  return integer_matmul(c.in(0), zero(0, 2), c.in(1), zero(1, 3));
}

T qlinear_mat_mul(Call& c) {
  const T a = c.in(0), b = c.in(3);
  const Quantised qa = quantised(c, 1, 2), qb = quantised(c, 4, 5), qy = quantised(c, 6, 7);
  const int64_t rank = std::max(a.rank(), b.rank());
  const DType wide = wide_of(qa.scale);
  const T product = integer_matmul(a, matrix_zero(c, 2, -2, a.rank()), b, matrix_zero(c, 5, -1, b.rank()));
  const T scale = cast(on_matrix(qa.scale, -2, rank), wide) * cast(on_matrix(qb.scale, -1, rank), wide);
  return store(cast(product, wide) * scale, on_matrix(qy.scale, -2, rank), on_matrix(qy.zero, -2, rank),
               qy.zero.dtype());
}

T conv_integer(Call& c) {
  const T x = c.in(0), w = c.in(1);
  const T x_zero = c.has(2) ? reshape(c.in(2), {}) : T();
  const T w_zero = c.has(3) ? on_axis(c.in(3), 0, w.rank()) : T();
  return convolution(c, centred(x, x_zero), centred(w, w_zero));
}

T qlinear_conv(Call& c) {
  const T x = c.in(0), w = c.in(3);
  const Quantised qx = quantised(c, 1, 2), qw = quantised(c, 4, 5), qy = quantised(c, 6, 7);
  const DType wide = wide_of(qx.scale);
  T y = convolution(c, centred(x, reshape(qx.zero, {})), centred(w, on_axis(qw.zero, 0, w.rank())));
  if (c.has(8)) y = y + along(c.in(8), 1, y.rank());
  const T scale = cast(reshape(qx.scale, {}), wide) * cast(on_axis(qw.scale, 1, y.rank()), wide);
  return store(cast(y, wide) * scale, reshape(qy.scale, {}), reshape(qy.zero, {}), qy.zero.dtype());
}

T dynamic_quantize(Call& c) {
  const T x = c.in(0);
  const auto axes = axes_from(0, x.rank());
  const T high = apply(Op::max, {reduce(Op::reduce_max, x, axes, false), 0.0});
  const T low = apply(Op::min, {reduce(Op::reduce_min, x, axes, false), 0.0});
  const T scale = (high - low) / 255.0;
  const T safe = select(apply(Op::eq, {scale, 0.0}), 1.0, scale);
  const T zero = zero_point(low, safe);
  c.set(1, scale);
  c.set(2, zero);
  return store(x, safe, zero, DType::u8);
}

// A quantised binary op of com.microsoft. The inputs of a node are: a, its scale and zero point; b, its scale and zero
// point; scale and zero point of the result.
T qlinear_binary(Call& c, Op op) {
  const Quantised qa = quantised(c, 1, 2), qb = quantised(c, 4, 5), qy = quantised(c, 6, 7);
  const DType wide = wide_of(qa.scale);
  const T y = apply(op, {real(c.in(0), qa, wide), real(c.in(3), qb, wide)});
  return store(y, on_axis(qy.scale, 0, 0), qy.zero.valid() ? on_axis(qy.zero, 0, 0) : T(), c.dtype(0));
}

// A quantised unary op of com.microsoft. The inputs of a node are: x, its scale and zero point; scale and zero point of
// the result.
T qlinear_unary(Call& c, T (*f)(Call&, T)) {
  const Quantised qx = quantised(c, 1, 2), qy = quantised(c, 3, 4);
  const T y = f(c, real(c.in(0), qx, wide_of(qx.scale)));
  return store(y, on_axis(qy.scale, 0, 0), qy.zero.valid() ? on_axis(qy.zero, 0, 0) : T(), c.dtype(0));
}

T qlinear_concat(Call& c) {
  const Quantised qy = quantised(c, 0, 1);
  if (c.inputs() < 5 || c.inputs() % 3 != 2) c.fail("scale, zero point and three inputs for each part were expected");
  std::vector<T> parts;
  for (int i = 2; i < c.inputs(); i += 3) parts.push_back(real(c.in(i), quantised(c, i + 1, i + 2), wide_of(qy.scale)));
  const T all = concat(parts, c.axis(c.attr("axis", 0), parts[0].rank()));
  return store(all, on_axis(qy.scale, 0, 0), on_axis(qy.zero, 0, 0), qy.zero.dtype());
}

T mat_mul_integer_to_float(Call& c) {
  const T a = c.in(0), b = c.in(1);
  const T product = integer_matmul(a, matrix_zero(c, 4, -2, a.rank()), b, matrix_zero(c, 5, -1, b.rank()));
  const DType wide = c.dtype(2);
  const T y = cast(product, wide) * (on_matrix(c.in(2), -2, product.rank()) * on_matrix(c.in(3), -1, product.rank()));
  return c.has(6) ? y + c.in(6) : y;
}

T dynamic_quantize_mat_mul(Call& c) {
  const T x = c.in(0), b = c.in(1);
  const auto axes = axes_from(0, x.rank());
  const T high = apply(Op::max, {reduce(Op::reduce_max, x, axes, false), 0.0});
  const T low = apply(Op::min, {reduce(Op::reduce_min, x, axes, false), 0.0});
  const T scale = (high - low) / 255.0, safe = select(apply(Op::eq, {scale, 0.0}), 1.0, scale);
  const T zero = zero_point(low, safe);
  const T product = integer_matmul(store(x, safe, zero, DType::u8), zero, b, matrix_zero(c, 3, -1, b.rank()));
  const T y = cast(product, x.dtype()) * (scale * on_matrix(c.in(2), -1, product.rank()));
  return c.has(4) ? y + c.in(4) : y;
}

}  // namespace wl::onnx_import

// Ops on signals: Fourier transforms, as products with a matrix of cosines or sines, windows, filter banks, cumulative
// sums and products, and determinants.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "compiler/import/rows/rows.h"

namespace wl::onnx_import {
namespace {

// Returns a matrix of cos or sin of 2 pi i j / n for i < rows, j < columns. The product i j is reduced modulo n while
// it is still an integer, which is exact.
T angles(Call& c, DType dtype, int64_t rows, int64_t columns, int64_t n, Op op) {
  c.check_shape({rows, columns});
  if (rows * columns <= kLiteralBytes / 8) {
    std::vector<double> values;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        // At multiples of 90 degrees the values are exactly 0, 1 or -1.
        const int64_t turns = i * j % n;
        const double at = 2 * std::numbers::pi * static_cast<double>(turns) / static_cast<double>(n);
        const bool quarter = turns * 4 % n == 0;
        const double value = op == Op::cos ? std::cos(at) : std::sin(at);
        values.push_back(round_to(dtype, quarter ? std::round(value) : value));
      }
    }
    return c.literal_tensor(make_literal(dtype, {rows, columns}, std::move(values)), op == Op::cos ? ":cos" : ":sin");
  }
  const T product = c.iota(DType::i64, {rows, columns}, 0) * c.iota(DType::i64, {rows, columns}, 1);
  const T turns = apply(Op::mod, {product, static_cast<double>(n)});
  return cast(apply(op, {cast(turns, DType::f64) * (2 * std::numbers::pi / static_cast<double>(n))}), dtype);
}

int64_t integer(Call& c, int input) {
  c.number(input);
  return c.literal(input)->int_at(0);
}

T resize_last(T x, int64_t n) {
  const int64_t last = x.rank() - 1, has = x.extent(last);
  if (has > n) return slice_axis(x, last, 0, 1, n);
  std::vector<int64_t> low(x.shape().size(), 0), high = low;
  high.back() = n - has;
  return pad(x, low, high, 0);
}

struct Complex {
  T real, imaginary;  // `imaginary` is absent (an empty T) if the numbers are real
};

T multiply(T x, T matrix) {
  const int64_t rows = x.rank() - 1;
  Shape shape = x.shape();
  int64_t batch = 1;
  for (int64_t i = 0; i < rows; ++i) batch *= shape[static_cast<size_t>(i)];
  const int64_t n = shape.back();
  shape.back() = matrix.extent(1);
  return reshape(contract(reshape(x, {batch, n}), matrix, "bn,nk->bk"), shape);
}

// Returns the first `bins` elements of the Fourier transform of x along its last axis. `sign` is -1 for the forward
// transform and 1 for the inverse one, which must still be multiplied by 1 / n.
Complex transform(Complex x, int64_t n, int64_t bins, int sign) {
  Call& c = x.real.call();
  const T cosine = angles(c, x.real.dtype(), n, bins, n, Op::cos),
          sine = angles(c, x.real.dtype(), n, bins, n, Op::sin);
  const auto s = static_cast<double>(sign);
  if (!x.imaginary.valid()) return {multiply(x.real, cosine), multiply(x.real, sine) * s};
  return {multiply(x.real, cosine) - multiply(x.imaginary, sine) * s,
          multiply(x.imaginary, cosine) + multiply(x.real, sine) * s};
}

Complex parts_of(Call& c, T x) {
  const int64_t last = x.rank() - 1, parts = x.rank() < 1 ? 0 : x.extent(last);
  if (parts != 1 && parts != 2) {
    c.fail("the last axis must have 1 (real) or 2 (complex) elements, the shape is ", shape_text(x.shape()));
  }
  Shape shape = x.shape();
  shape.pop_back();
  Complex result{reshape(slice_axis(x, last, 0, 1, 1), shape), {}};
  if (parts == 2) result.imaginary = reshape(slice_axis(x, last, 1, 1, 1), shape);
  return result;
}

T joined(const Complex& x) {
  const int64_t rank = x.real.rank();
  return concat({unsqueeze(x.real, {rank}), unsqueeze(x.imaginary, {rank})}, rank);
}

}  // namespace

T dft(Call& c) {
  const T x = c.in(0);
  if (x.rank() < 2) c.fail("[..., 1 or 2] was expected, found shape ", shape_text(x.shape()));
  int64_t axis = c.opset() < 20 ? c.attr("axis", 1) : c.has(2) ? integer(c, 2) : -2;
  axis = c.axis(axis, x.rank());
  if (axis == x.rank() - 1) c.fail("axis ", axis, " holds the parts of the numbers");
  const bool inverse = c.attr("inverse", 0) != 0, onesided = c.attr("onesided", 0) != 0;
  int64_t n = inverse && onesided ? 2 * (x.extent(axis) - 1) : x.extent(axis);
  if (c.has(1)) n = integer(c, 1);
  if (n < 1 || n > (int64_t{1} << 24)) c.fail("a transform of length ", n, " is out of range");
  Complex parts = parts_of(c, x);
  auto perm = axes_from(0, x.rank() - 1);
  perm.erase(perm.begin() + axis);
  perm.push_back(axis);
  auto back = axes_from(0, x.rank() - 2);
  back.insert(back.begin() + axis, x.rank() - 2);
  const int64_t bins = n / 2 + 1;
  const auto prepare = [&](T part) {
    return part.valid() ? resize_last(transpose(part, perm), inverse && onesided ? bins : n) : part;
  };
  parts = {prepare(parts.real), prepare(parts.imaginary)};
  const auto restore = [&](T part) { return transpose(part, back); };
  if (!inverse) {
    const Complex y = transform(parts, n, onesided ? bins : n, -1);
    return joined({restore(y.real), restore(y.imaginary)});
  }
  const double factor = 1.0 / static_cast<double>(n);
  if (!onesided) {
    const Complex y = transform(parts, n, n, 1);
    return joined({restore(y.real) * factor, restore(y.imaginary) * factor});
  }
  // In a one-sided spectrum a bin also stands for its mirror image, so it counts twice. The first bin and, if n is
  // even, the last one have no mirror image.
  const T bin = c.iota(x.dtype(), {bins}, 0);
  T single = apply(Op::eq, {bin, 0.0});
  if (n % 2 == 0) single = apply(Op::logical_or, {single, apply(Op::eq, {bin, static_cast<double>(n / 2)})});
  const T weight = select(single, c.constant(1, x.dtype(), {bins}), 2.0) * factor;
  T y = multiply(parts.real * weight, angles(c, x.dtype(), bins, n, n, Op::cos));
  if (parts.imaginary.valid()) {
    y = y - multiply(parts.imaginary * weight, angles(c, x.dtype(), bins, n, n, Op::sin));
  }
  return unsqueeze(restore(y), {x.rank() - 1});
}

T stft(Call& c) {
  const T x = c.in(0);
  const int64_t step = integer(c, 1);
  if (x.rank() != 3 && x.rank() != 2) c.fail("[batch, length, 1 or 2] was expected, found ", shape_text(x.shape()));
  const T signal = x.rank() == 2 ? unsqueeze(x, {2}) : x;
  int64_t length = c.has(2) ? c.in(2).extent(0) : signal.extent(1);
  if (c.has(3)) length = integer(c, 3);
  if (length < 1 || step < 1 || step > kMaxElements || length > signal.extent(1)) {
    c.fail("frames of ", length, " every ", step, " do not fit a signal of shape ", shape_text(x.shape()));
  }
  const bool onesided = c.attr("onesided", 1) != 0;
  const Complex parts = parts_of(c, signal);
  const auto frames = [&](T part) {
    if (!part.valid()) return part;
    const T cut = window(part, {1}, {length, step, 1});
    return c.has(2) ? cut * c.in(2) : cut;
  };
  return joined(
      transform({frames(parts.real), frames(parts.imaginary)}, length, onesided ? length / 2 + 1 : length, -1));
}

T mel_weight_matrix(Call& c) {
  const double bins = c.number(0), length = c.number(1), rate = c.number(2), low = c.number(3), high = c.number(4);
  if (!(bins >= 1 && bins <= 65536 && length >= 1 && length <= 0x1p24 && rate > 0)) c.fail("a number is out of range");
  const auto mels = static_cast<int64_t>(bins), spectrum = static_cast<int64_t>(length) / 2 + 1;
  if (mels * spectrum > 64 * kLiteralBytes) c.missing("a matrix of ", spectrum, " by ", mels);
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double step = (mel(high) - mel(low)) / (bins + 2);
  std::vector<int64_t> edge;
  for (int64_t i = 0; i < mels + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (mel(low) + static_cast<double>(i) * step) / 2595) - 1);
    const double bin = std::floor((length + 1) * hertz / rate);
    edge.push_back(bin > 0 ? static_cast<int64_t>(std::min(bin, 0x1p40)) : 0);
  }
  std::vector<double> values(static_cast<size_t>(mels * spectrum), 0);
  const auto put = [&](int64_t row, int64_t column, double value) {
    if (row < spectrum) values[static_cast<size_t>(row * mels + column)] = value;
  };
  for (int64_t i = 0; i < mels; ++i) {
    const int64_t a = edge[static_cast<size_t>(i)], b = edge[static_cast<size_t>(i) + 1],
                  d = edge[static_cast<size_t>(i) + 2];
    if (a == b) put(b, i, 1);
    for (int64_t j = a; a < b && j <= std::min(b, spectrum); ++j) {
      put(j, i, static_cast<double>(j - a) / static_cast<double>(b - a));
    }
    for (int64_t j = b; j < std::min(d, spectrum); ++j) {
      put(j, i, static_cast<double>(d - j) / static_cast<double>(d - b));
    }
  }
  const DType dtype = c.dtype_attr("output_datatype", DType::f32);
  for (double& v : values) v = round_to(dtype, v);
  return c.set_literal(0, make_literal(dtype, {spectrum, mels}, std::move(values)));
}

T window_of(Call& c, double a0, double a1, double a2) {
  const double size = c.number(0);
  if (!(size >= 0 && size <= 0x1p30)) c.fail("a window of ", size, " elements is out of range");
  const auto n = static_cast<int64_t>(size);
  const DType dtype = c.dtype_attr("output_datatype", DType::f32);
  const double period = c.attr("periodic", 1) != 0 ? size : size - 1;
  const double turn = period > 0 ? 2 * std::numbers::pi / period : 0;
  if (n > kLiteralBytes / 8) {
    const T at = c.iota(DType::f64, {n}, 0) * turn;
    const T values = a0 - apply(Op::cos, {at}) * a1 + apply(Op::cos, {at * 2.0}) * a2;
    return cast(is_float(dtype) ? values : cast(values, DType::f32), dtype);
  }
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) {
    const double at = static_cast<double>(i) * turn;
    const double value = a0 - a1 * std::cos(at) + a2 * std::cos(2 * at);
    // For integer dtypes, values are rounded to f32 before they are truncated, as in the standard. In f32 a value
    // that should be 1 is exactly 1, so it does not become 0.
    values.push_back(round_to(dtype, is_float(dtype) ? value : round_to(DType::f32, value)));
  }
  return c.set_literal(0, make_literal(dtype, {n}, std::move(values)));
}

namespace {

// Returns the inclusive scan of x along `axis` with the reduction `op`. A short axis is scanned by reducing one window
// for each element. A long axis is split into blocks; each block, and the series of the blocks' totals, is scanned in
// this way.
T running(T x, int64_t axis, Op op, double neutral) {
  constexpr int64_t kBlock = 32;
  const int64_t n = x.extent(axis);
  const auto all_windows = [&](T y, int64_t along_axis) {
    const int64_t size = y.extent(along_axis);
    std::vector<int64_t> low(y.shape().size(), 0), high = low;
    low[static_cast<size_t>(along_axis)] = size - 1;
    return reduce(op, window(pad(y, low, high, neutral), {along_axis}, {size, 1, 1}), {y.rank()}, false);
  };
  if (n <= 2 * kBlock) return all_windows(x, axis);
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  std::vector<int64_t> low(x.shape().size(), 0), high = low;
  high[static_cast<size_t>(axis)] = blocks * kBlock - n;
  const T padded = pad(x, low, high, neutral);
  Shape split = padded.shape(), whole = split;
  split[static_cast<size_t>(axis)] = blocks;
  split.insert(split.begin() + axis + 1, kBlock);
  const T inside = all_windows(reshape(padded, split), axis + 1);
  Shape totals = split;
  totals.erase(totals.begin() + axis + 1);
  const T total = reshape(slice_axis(inside, axis + 1, kBlock - 1, 1, 1), totals);
  // The scanned totals are shifted by one block, so that each block gets the total of all blocks before it.
  std::vector<int64_t> shift(totals.size(), 0), none = shift;
  shift[static_cast<size_t>(axis)] = 1;
  const T before = pad(slice_axis(running(total, axis, op, neutral), axis, 0, 1, blocks - 1), shift, none, neutral);
  const T sum = apply(op == Op::reduce_sum ? Op::add : Op::mul, {inside, unsqueeze(before, {axis + 1})});
  return slice_axis(reshape(sum, whole), axis, 0, 1, n);
}

}  // namespace

T cumulative(Call& c, Op op) {
  T x = c.in(0);
  const Literal* where = c.literal(1);
  if (where == nullptr || elements(where->shape) != 1) c.missing("input 1, the axis, must be a constant number");
  const int64_t axis = c.axis(where->int_at(0), x.rank()), n = x.extent(axis);
  if (n == 0) return x;
  const bool reverse = c.attr("reverse", 0) != 0;
  const double neutral = op == Op::reduce_sum ? 0 : 1;
  const auto flip = [&](T y) { return reverse ? slice_axis(y, axis, n - 1, -1, n) : y; };
  x = flip(x);
  if (c.attr("exclusive", 0) != 0) {
    std::vector<int64_t> low(x.shape().size(), 0), high = low;
    low[static_cast<size_t>(axis)] = 1;
    x = pad(slice_axis(x, axis, 0, 1, n - 1), low, high, neutral);
  }
  return flip(running(x, axis, op, neutral));
}

// Computes a determinant by unrolled Householder reflections. Each reflection has determinant -1 and makes all elements
// of the first column zero except one. No pivots are chosen, so the graph does not depend on the matrix's elements.
T determinant(Call& c) {
  T x = c.in(0);
  const int64_t rank = x.rank(), n = rank < 2 ? -1 : x.extent(rank - 1);
  if (rank < 2 || x.extent(rank - 2) != n) c.fail("square matrices were expected, found shape ", shape_text(x.shape()));
  if (n > 64) c.missing("determinants of ", n, " by ", n, " matrices; up to 64 are unrolled");
  const Shape whole = x.shape(), result(whole.begin(), whole.end() - 2);
  const int64_t batch = elements(result);
  x = reshape(x, {batch, n, n});
  const auto at = [&](int64_t row, int64_t column) {
    return reshape(slice_axis(slice_axis(x, 1, row, 1, 1), 2, column, 1, 1), {batch});
  };
  T product;
  const auto times = [&](T factor) { product = product.valid() ? product * factor : factor; };
  for (int64_t left = n; left > 2; --left) {
    const T column = reshape(slice_axis(x, 2, 0, 1, 1), {batch, left});
    const T norm = apply(Op::sqrt, {reduce(Op::reduce_sum, column * column, {1}, false)});
    const T size = select(apply(Op::ge, {at(0, 0), 0.0}), norm, -norm);
    times(size);
    const T first = apply(Op::eq, {c.iota(DType::i64, {1, left}, 1), 0.0});
    const T mirror = select(first, column + reshape(size, {batch, 1}), column);
    const T square = reduce(Op::reduce_sum, mirror * mirror, {1}, false);
    const T twice = c.constant(2, x.dtype(), {batch}) / select(apply(Op::eq, {square, 0.0}), 1.0, square);
    const T along_mirror = contract(mirror, x, "bi,bij->bj") * reshape(twice, {batch, 1});
    x = x - reshape(mirror, {batch, left, 1}) * reshape(along_mirror, {batch, 1, left});
    x = slice_axis(slice_axis(x, 1, 1, 1, left - 1), 2, 1, 1, left - 1);
  }
  if (n >= 2) times(at(0, 0) * at(1, 1) - at(0, 1) * at(1, 0));
  if (n == 1) times(at(0, 0));
  return n == 0 ? c.constant(1, x.dtype(), result) : reshape(product, result);
}

}  // namespace wl::onnx_import

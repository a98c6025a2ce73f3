#include "compiler/ir/bound.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "compiler/ir/ops.h"

namespace wl {
namespace {

// The largest factor that rewrite rules may move past a product or a sum (docs/numerics.md). Such a move can make an
// intermediate result overflow or keep it from overflowing.
constexpr double kRewriteRange = 256;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double distance(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  double d = std::fabs(a - b);
  return std::isnan(d) ? kInfinity : d;
}

}  // namespace

double from_integer(DType dtype, uint64_t bits) {
  int64_t wrapped = wrap(dtype, static_cast<int64_t>(bits));
  return dtype == DType::u64 ? static_cast<double>(static_cast<uint64_t>(wrapped)) : static_cast<double>(wrapped);
}

int64_t bits_of(DType dtype, double value) {
  if (dtype == DType::u64 && value >= 0x1p64) return -1;
  if (dtype == DType::u64) return value >= 0 ? static_cast<int64_t>(static_cast<uint64_t>(value)) : as_integer(value);
  return value >= 0x1p63 ? std::numeric_limits<int64_t>::max() : as_integer(value);
}

namespace {

// Returns x to the power y, modulo 2^64. A negative exponent takes the reciprocal, truncated: 1 and -1 are their own
// reciprocals, and the reciprocal of any other number, also of 0, is 0.
uint64_t integer_power(bool is_unsigned, int64_t x, int64_t y) {
  if (!is_unsigned && (x == 1 || x == -1)) y &= 1;
  if (!is_unsigned && y < 0) return 0;
  uint64_t base = static_cast<uint64_t>(x), power = 1;
  for (auto left = static_cast<uint64_t>(y); left > 0; left >>= 1, base *= base)
    if (left & 1) power *= base;
  return power;
}

// Returns the quotient x / y, truncated, and the remainder x - (x / y) * y; both are 0 if y is 0.
std::pair<uint64_t, uint64_t> divided(bool is_unsigned, int64_t x, int64_t y) {
  const auto a = static_cast<uint64_t>(x), b = static_cast<uint64_t>(y);
  if (y == 0) return {0, 0};
  if (is_unsigned) return {a / b, a % b};
  if (y == -1) return {-a, 0};
  return {static_cast<uint64_t>(x / y), static_cast<uint64_t>(x % y)};
}

uint64_t unwrapped_result(Op op, bool is_unsigned, const int64_t x[3]) {
  const auto a = static_cast<uint64_t>(x[0]), b = static_cast<uint64_t>(x[1]), c = static_cast<uint64_t>(x[2]);
  const bool less = is_unsigned ? a < b : x[0] < x[1], negative = !is_unsigned && x[0] < 0;
  switch (op) {
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::mul:
      return a * b;
    case Op::fma:
      return a * b + c;
    case Op::div:
      return divided(is_unsigned, x[0], x[1]).first;
    case Op::fmod:
      return divided(is_unsigned, x[0], x[1]).second;
    case Op::mod: {
      const uint64_t rest = divided(is_unsigned, x[0], x[1]).second;
      const bool other_sign = !is_unsigned && (static_cast<int64_t>(rest) < 0) != (x[1] < 0);
      return rest != 0 && other_sign ? rest + b : rest;
    }
    case Op::pow:
      return integer_power(is_unsigned, x[0], x[1]);
    case Op::neg:
      return -a;
    case Op::abs:
      return negative ? -a : a;
    case Op::sign:
      return negative ? -uint64_t{1} : a != 0;
    case Op::min:
      return less ? a : b;
    case Op::max:
      return less ? b : a;
    case Op::bit_and:
      return a & b;
    case Op::bit_or:
      return a | b;
    case Op::bit_xor:
      return a ^ b;
    case Op::shift_left:
      return b < 64 ? a << b : 0;
    case Op::shift_right:
      return b < 64 ? a >> b : 0;
    case Op::eq:
      return a == b;
    case Op::ne:
      return a != b;
    case Op::lt:
      return less;
    case Op::le:
      return less || a == b;
    case Op::gt:
      return !less && a != b;
    case Op::ge:
      return !less;
    case Op::logical_not:
      return a == 0;
    case Op::logical_and:
      return a != 0 && b != 0;
    case Op::logical_or:
      return a != 0 || b != 0;
    case Op::logical_xor:
      return (a != 0) != (b != 0);
    case Op::select:
      return a != 0 ? b : c;
    case Op::cast:
      return a;
    default:
      WL_CHECK(false, name_of(op), " of integers");
  }
}

}  // namespace

int64_t integer_result(Op op, DType from, DType to, const int64_t x[3]) {
  const bool is_unsigned = from == DType::u64 || from == DType::u32 || from == DType::u16 || from == DType::u8;
  return wrap(to, static_cast<int64_t>(unwrapped_result(op, is_unsigned, x)));
}

Rounding::Rounding(DType dtype)
    : floating(is_float(dtype)),
      unit(info(dtype).unit_roundoff),
      tiny(info(dtype).smallest),
      largest(floating ? info(dtype).largest : kInfinity),
      wider_allowed(floating && size_of(dtype) < 4),
      infinite(dtype != DType::f8e4m3fn) {}

Estimate Rounding::stored(Estimate v) const {
  const double bound = std::isnan(v.worst) || std::isnan(v.spread) ? kInfinity : v.bound();
  if (std::isinf(bound)) return {v.value, kInfinity, kInfinity};
  if (!infinite && std::isinf(v.value))
    // A value is infinite, but the dtype has no infinity, so kernels store the dtype's largest number instead. No
    // finite bound covers that difference.
    return {v.value, kInfinity, kInfinity};
  if (!floating || !std::isfinite(v.value)) return v;
  double magnitude = std::fabs(v.value);
  if (magnitude + bound <= largest) return v;
  if (wider_allowed || magnitude - bound <= largest * kRewriteRange) return {v.value, kInfinity, kInfinity};
  return {std::copysign(kInfinity, v.value), 0, 0};
}

SumErrors::SumErrors(DType dtype, int64_t n)
    : literal_worst(static_cast<double>(n) <= kConfidence * kConfidence), rounding(dtype) {
  double unit = info(dtype == DType::f64 ? DType::f64 : DType::f32).unit_roundoff;
  worst_factor = is_float(dtype) ? unit * static_cast<double>(n) : 0;
  spread_factor = is_float(dtype) ? unit * std::sqrt(static_cast<double>(n)) : 0;
}

Estimate SumErrors::result(double value, double worst, double squares, double magnitude) const {
  if (magnitude == 0 && worst == 0) return {value, 0, 0};  // if all terms are exact zeros, so is the sum
  Estimate v{value, 0, std::sqrt(squares) + spread_factor * magnitude};
  v.worst = literal_worst ? worst + worst_factor * magnitude : kConfidence * v.spread;
  if (rounding.floating) v.add_error(rounding.unit * std::fabs(value) + rounding.tiny);
  return rounding.stored(v);
}

Elementwise::Elementwise(Op op, DType from, DType to) : row_(info(op)), from_(from), to_(to), rounding_(to) {
  jumps_ = row_.slope == Slope::kJumps || ((op == Op::cast || op == Op::div) && !is_float(to));
  compares_ = row_.result == ResultType::kBool;
  logical_ = is_logical(op);
  whole_ = !is_float(from) && !is_float(to);
  relative_ = row_.ulps * 2 * rounding_.unit;
}

double Elementwise::value(const double x[3]) const {
  if (whole_) {
    const int64_t bits[3] = {bits_of(from_, x[0]), bits_of(from_, x[1]), bits_of(from_, x[2])};
    return from_integer(to_, static_cast<uint64_t>(integer_result(row_.op, from_, to_, bits)));
  }
  const double v = row_.value(x[0], x[1], x[2]);
  return rounding_.floating || compares_ ? v : to_integer(to_, from_, v);
}

// Returns how far the result can move from `r` when the operands vary within their error intervals. Each interval is
// sampled at its centre and both ends, and at zero if zero lies inside.
double Elementwise::swing(const Estimate x[3], double r) const {
  double places[3][4];
  int count[3] = {1, 1, 1};
  for (int i = 0; i < 3; ++i) {
    const double centre = x[i].value, b = x[i].bound();
    places[i][0] = centre;
    if (b == 0) continue;
    places[i][count[i]++] = centre - b;
    places[i][count[i]++] = centre + b;
    if (std::fabs(centre) <= b) places[i][count[i]++] = 0;
  }
  double most = 0;
  for (int i = 0; i < count[0]; ++i) {
    for (int j = 0; j < count[1]; ++j) {
      for (int k = 0; k < count[2]; ++k) {
        const double at[3] = {places[0][i], places[1][j], places[2][k]};
        most = std::max(most, distance(value(at), r));
      }
    }
  }
  return most;
}

// Returns how far a remainder can jump while its operands move within their error intervals. The remainder jumps by the
// divisor wherever the quotient passes an integer, which may happen between the ends of the intervals, where swing()
// does not evaluate it.
double Elementwise::remainder_swing(const Estimate x[3]) const {
  double least = kInfinity, most = -kInfinity;
  for (double sx : {-1.0, 1.0}) {
    for (double sy : {-1.0, 1.0}) {
      const double quotient = (x[0].value + sx * x[0].bound()) / (x[1].value + sy * x[1].bound());
      least = std::min(least, quotient);
      most = std::max(most, quotient);
    }
  }
  return std::ceil(least) <= std::floor(most) ? std::fabs(x[1].value) + x[1].bound() : 0;
}

void Elementwise::propagate(const Estimate x[3], Estimate& result) const {
  const double r = result.value;
  auto set = [&](double worst, double spread) {
    result.worst = worst;
    result.spread = spread;
  };
  if (row_.op == Op::select && x[0].worst == 0) {
    const Estimate& chosen = x[0].value != 0 ? x[1] : x[2];
    return set(chosen.worst, chosen.spread);
  }
  if (row_.op == Op::select) {
    double gap = distance(x[1].value, x[2].value);
    return set(std::max(x[1].worst, x[2].worst) + gap, std::max(x[1].spread, x[2].spread) + gap);
  }
  if (logical_) return set(1, 1);
  if (compares_) {
    const double reach = x[0].bound() + x[1].bound();
    bool open = reach == kInfinity || std::fabs(x[0].value - x[1].value) <= reach;
    return set(open, open);
  }
  if (row_.op == Op::max || row_.op == Op::min) {
    return set(std::max(x[0].worst, x[1].worst), std::max(x[0].spread, x[1].spread));
  }
  // A power of a negative number is NaN unless the exponent is an integer, and rounding can make an exponent an integer
  // or keep it from being one. If the base may be negative and the exponent has an error, the result has no bound.
  if (row_.op == Op::pow && x[1].bound() > 0 && x[0].value < x[0].bound()) return set(kInfinity, kInfinity);
  if (!std::isfinite(r)) {
    if (std::max({x[0].worst, x[1].worst, x[2].worst}) == kInfinity) return set(kInfinity, kInfinity);
    const double seen = swing(x, r);
    return set(seen, seen);
  }
  double partial[3];
  row_.partials(x[0].value, x[1].value, x[2].value, r, partial);
  double first = 0;
  for (int i = 0; i < row_.arity; ++i) {
    const double b = x[i].bound();
    if (b == 0) continue;
    if (b == kInfinity) return set(kInfinity, kInfinity);
    first += partial[i] * b;
    result.worst += partial[i] * x[i].worst;
    const double spread = partial[i] * x[i].spread;
    // In x * x both operands have the same error. It counts twice, since errors of one value cannot partly cancel each
    // other.
    const bool twice = i == 1 && x[0].value == x[1].value && x[0].worst == x[1].worst;
    result.spread = twice ? result.spread + spread : std::sqrt(result.spread * result.spread + spread * spread);
  }
  if (jumps_ || (row_.cost > 1 && !(first < std::fabs(r) / 64))) {
    double seen = swing(x, r);
    if (row_.op == Op::mod || row_.op == Op::fmod) seen = std::max(seen, remainder_swing(x));
    const bool smooth = std::isfinite(result.worst) && std::isfinite(result.spread);
    // A jump may change many values in the same direction, so the errors at jumps do not average out in sums as
    // rounding errors do.
    const double deviation = jumps_ && row_.op != Op::pow ? seen : seen / kConfidence;
    result.worst = smooth ? std::max(result.worst, seen) : seen;
    result.spread = smooth ? std::max(result.spread, deviation) : deviation;
  }
  // The product of both factors' errors is usually negligible, but where both factors are zero it is the only error.
  if (row_.op == Op::mul || row_.op == Op::fma) {
    double both = x[0].bound() * x[1].bound();
    set(result.worst + both, result.spread + both / kConfidence);
  }
}

Estimate Elementwise::operator()(const Estimate x[3]) const {
  const double at[3] = {x[0].value, x[1].value, x[2].value};
  bool divides = row_.op == Op::div || row_.op == Op::mod || row_.op == Op::fmod;
  Estimate v;
  if (whole_) {
    const int64_t bits[3] = {bits_of(x[0]), bits_of(x[1]), bits_of(x[2])};
    v = whole_number(to_, integer_result(row_.op, from_, to_, bits));
  } else {
    v.value = value(at);
    if (!rounding_.floating) v.whole = bits_of(to_, v.value);
  }
  // Division by a zero gives an infinity with the sign of the zero. That sign is not promised, so the result has no
  // bound.
  const double divisor = at[row_.op == Op::div ? 1 : 0];
  if (std::isinf(v.value) && divisor == 0 &&
      (divides || row_.op == Op::rcp || row_.op == Op::rsqrt || row_.op == Op::pow))
    return {v.value, kInfinity, kInfinity};
  if (x[0].worst > 0 || x[1].worst > 0 || x[2].worst > 0) propagate(x, v);
  if (row_.op == Op::cast && saturates(to_) && std::fabs(v.value) > rounding_.largest) {
    // Casts saturate in kernels, so the exact result is also rounded to the dtype. Its error stays the same, with one
    // exception: if an inexact infinity becomes the largest finite number, the bound becomes infinite.
    const bool infinite = std::isinf(v.value);
    v.value = round_to(to_, v.value);
    return infinite && std::isfinite(v.value) && v.bound() > 0 ? Estimate{v.value, kInfinity, kInfinity} : v;
  }
  // At an infinite operand a function returns its limit there, which has no rounding error if it is a whole number.
  const bool limit = std::isinf(at[0]) && row_.arity == 1 && x[0].worst == 0 && v.value == std::trunc(v.value);
  // The rounding error is relative to the rounded value, which may exceed v.value by as much as the bound.
  const double reach = std::fabs(v.value) + (std::isfinite(v.bound()) ? v.bound() : 0);
  if (relative_ > 0 && std::isfinite(v.value) && !limit) v.add_error(relative_ * reach + rounding_.tiny);
  // Machines without a fused multiply-add also round the product, which adds an error.
  if (row_.op == Op::fma && rounding_.floating && std::isfinite(v.value))
    v.add_error(rounding_.unit * std::fabs(at[0] * at[1]));
  return rounding_.stored(v);
}

}  // namespace wl

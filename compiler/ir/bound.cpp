#include "compiler/ir/bound.h"

#include <algorithm>
#include <limits>

#include "compiler/ir/ops.h"

namespace wl {
namespace {

// Rewrites may move a factor of this size past a product or a sum (docs/numerics.md), which can make an intermediate
// result overflow or keep it from overflowing.
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
    return {v.value, kInfinity, kInfinity};  // the dtype has no infinity and stores
                                             // its largest number
  // Integers beyond 2^53 are not known exactly, since a double does not hold them.
  if (!floating) return std::fabs(v.value) <= 0x1p53 ? v : Estimate{v.value, kInfinity, kInfinity};
  if (!std::isfinite(v.value)) return v;
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
  if (magnitude == 0 && worst == 0) return {value, 0, 0};  // a sum of exact zeros is exact
  Estimate v{value, 0, std::sqrt(squares) + spread_factor * magnitude};
  v.worst = literal_worst ? worst + worst_factor * magnitude : kConfidence * v.spread;
  if (rounding.floating) v.add_error(rounding.unit * std::fabs(value) + rounding.tiny);
  return rounding.stored(v);
}

Elementwise::Elementwise(Op op, DType from, DType to) : row_(info(op)), from_(from), to_(to), rounding_(to) {
  jumps_ = row_.slope == Slope::kJumps || ((op == Op::cast || op == Op::div) && !is_float(to));
  compares_ = row_.result == ResultType::kBool;
  logical_ = is_logical(op);
  relative_ = row_.ulps * 2 * rounding_.unit;
}

double Elementwise::integer_value(const double x[3]) const {
  auto a = static_cast<uint64_t>(as_integer(x[0])), b = static_cast<uint64_t>(as_integer(x[1]));
  auto c = static_cast<uint64_t>(as_integer(x[2]));
  switch (row_.op) {
    case Op::add:
      return from_integer(to_, a + b);
    case Op::sub:
      return from_integer(to_, a - b);
    case Op::mul:
      return from_integer(to_, a * b);
    case Op::fma:
      return from_integer(to_, a * b + c);
    case Op::neg:
      return from_integer(to_, -a);
    case Op::abs:
      return x[0] < 0 ? from_integer(to_, -a) : x[0];
    case Op::bit_and:
      return from_integer(to_, a & b);
    case Op::bit_or:
      return from_integer(to_, a | b);
    case Op::bit_xor:
      return from_integer(to_, a ^ b);
    case Op::shift_left:
      return from_integer(to_, b < 64 ? a << b : 0);
    case Op::shift_right:
      return from_integer(to_, b < 64 ? a >> b : 0);
    case Op::cast:
      return to_integer(to_, from_, x[0]);
    default:
      return to_integer(to_, DType::i64, row_.value(x[0], x[1], x[2]));
  }
}

double Elementwise::value(const double x[3]) const {
  bool exact = rounding_.floating || compares_ || logical_ || row_.op == Op::select;
  return exact ? row_.value(x[0], x[1], x[2]) : integer_value(x);
}

// Returns the largest change of the result when the operands move within their intervals, sampled at the ends and at
// zero.
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

// A remainder jumps by the divisor wherever the quotient passes an integer. Its values at the ends of the interval need
// not show that.
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
  // A power of a negative number is defined only for integer exponents, and rounding can make an exponent an integer or
  // not.
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
    // In x * x both operands are the same value, so their errors do not cancel.
    const bool twice = i == 1 && x[0].value == x[1].value && x[0].worst == x[1].worst;
    result.spread = twice ? result.spread + spread : std::sqrt(result.spread * result.spread + spread * spread);
  }
  if (jumps_ || (row_.cost > 1 && !(first < std::fabs(r) / 64))) {
    double seen = swing(x, r);
    if (row_.op == Op::mod || row_.op == Op::fmod) seen = std::max(seen, remainder_swing(x));
    const bool smooth = std::isfinite(result.worst) && std::isfinite(result.spread);
    // The side of a jump may be the same for many values, or opposite, so these errors do not average out as roundings
    // do.
    const double deviation = jumps_ && row_.op != Op::pow ? seen : seen / kConfidence;
    result.worst = smooth ? std::max(result.worst, seen) : seen;
    result.spread = smooth ? std::max(result.spread, deviation) : deviation;
  }
  // The product of the two errors is the whole error when both factors are zero.
  if (row_.op == Op::mul || row_.op == Op::fma) {
    double both = x[0].bound() * x[1].bound();
    set(result.worst + both, result.spread + both / kConfidence);
  }
}

Estimate Elementwise::operator()(const Estimate x[3]) const {
  const double at[3] = {x[0].value, x[1].value, x[2].value};
  bool divides = row_.op == Op::div || row_.op == Op::mod || row_.op == Op::fmod;
  const bool reciprocal_of_zero = row_.op == Op::pow && at[0] == 0 && at[1] < 0;
  if (!rounding_.floating && ((divides && at[1] == 0) || reciprocal_of_zero))
    return {0, kInfinity, kInfinity};  // the result is undefined
  Estimate v{value(at)};
  // The sign of a zero is not promised, and so neither is the sign of the infinity that a division by it gives.
  const double divisor = at[row_.op == Op::div ? 1 : 0];
  if (std::isinf(v.value) && divisor == 0 &&
      (divides || row_.op == Op::rcp || row_.op == Op::rsqrt || row_.op == Op::pow))
    return {v.value, kInfinity, kInfinity};
  if (x[0].worst > 0 || x[1].worst > 0 || x[2].worst > 0) propagate(x, v);
  if (row_.op == Op::cast && saturates(to_) && std::fabs(v.value) > rounding_.largest) {
    // A cast rounds inside a kernel too. A value whose error interval contains the largest number keeps that error.
    const bool infinite = std::isinf(v.value);
    v.value = round_to(to_, v.value);
    return infinite && std::isfinite(v.value) && v.bound() > 0 ? Estimate{v.value, kInfinity, kInfinity} : v;
  }
  // At infinity a function takes its limit, exactly if the limit is a number of the dtype.
  const bool limit = std::isinf(at[0]) && row_.arity == 1 && x[0].worst == 0 && v.value == std::trunc(v.value);
  // The value that is rounded may lie anywhere within the bound.
  const double reach = std::fabs(v.value) + (std::isfinite(v.bound()) ? v.bound() : 0);
  if (relative_ > 0 && std::isfinite(v.value) && !limit) v.add_error(relative_ * reach + rounding_.tiny);
  // Machines without a fused multiply-add round the product as well.
  if (row_.op == Op::fma && rounding_.floating && std::isfinite(v.value))
    v.add_error(rounding_.unit * std::fabs(at[0] * at[1]));
  return rounding_.stored(v);
}

}  // namespace wl

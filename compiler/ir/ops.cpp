#include "compiler/ir/ops.h"

#include <cmath>
#include <limits>

#include "compiler/base/fill.h"
#include "compiler/ir/graph.h"

namespace wl {

double nan_min(double x, double y) {
  if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<double>::quiet_NaN();
  return x < y ? x : y;
}

double nan_max(double x, double y) {
  if (std::isnan(x) || std::isnan(y)) return std::numeric_limits<double>::quiet_NaN();
  return x > y ? x : y;
}

double floor_mod(double x, double y) {
  double r = std::fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

double sign_of(double x) {
  return std::isnan(x) ? x : x > 0 ? 1 : x < 0 ? -1 : 0;
}

double safe_log(double x) {
  return x == 0 ? -745 : std::log(std::fabs(x));
}

int64_t as_integer(double x) {
  constexpr double kTwo63 = 9223372036854775808.0;
  if (std::isnan(x)) return 0;
  if (x >= 2 * kTwo63) return -1;
  if (x >= kTwo63) return static_cast<int64_t>(static_cast<uint64_t>(x));
  if (!(x >= -kTwo63)) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(x);
}

double bit_and(double x, double y) {
  return static_cast<double>(as_integer(x) & as_integer(y));
}
double bit_or(double x, double y) {
  return static_cast<double>(as_integer(x) | as_integer(y));
}
double bit_xor(double x, double y) {
  return static_cast<double>(as_integer(x) ^ as_integer(y));
}
double shift_left(double x, double y) {
  const auto bits = static_cast<uint64_t>(as_integer(y));
  return bits >= 64 ? 0 : static_cast<double>(static_cast<uint64_t>(as_integer(x)) << bits);
}
double shift_right(double x, double y) {
  const auto bits = static_cast<uint64_t>(as_integer(y));
  return bits >= 64 ? 0 : static_cast<double>(static_cast<uint64_t>(as_integer(x)) >> bits);
}

namespace {

constexpr OpInfo kOps[] = {
#define WL_ROW(id, cls, arity, ints, ints2, cost, view, combine) \
  {Op::id,                                                       \
   #id,                                                          \
   OpClass::cls,                                                 \
   arity,                                                        \
   ints,                                                         \
   ints2,                                                        \
   cost,                                                         \
   ViewKind::view,                                               \
   Op::combine,                                                  \
   Takes::kAnything,                                             \
   Law::kNoLaw,                                                  \
   Slope::kSmooth,                                               \
   ResultType::kSame,                                            \
   0,                                                            \
   "",                                                           \
   nullptr,                                                      \
   nullptr},
#define WL_OP(id, cls, arity, ints, ints2, cost) WL_ROW(id, cls, arity, ints, ints2, cost, kSameOrder, input)
#define WL_VIEW(id, arity, ints, ints2, kind, axes) WL_ROW(id, kView, arity, ints, ints2, 0, kind, input)
#define WL_REDUCTION(id, cls, arity, ints, combine) WL_ROW(id, cls, arity, ints, "", 1, kSameOrder, combine)
#define WL_ELEMENTWISE(id, arity, cost, takes, law, slope, result, val, dx, dy, dz, ulps, ...)                    \
  {Op::id,                                                                                                        \
   #id,                                                                                                           \
   OpClass::kElementwise,                                                                                         \
   arity,                                                                                                         \
   "",                                                                                                            \
   "",                                                                                                            \
   cost,                                                                                                          \
   ViewKind::kSameOrder,                                                                                          \
   Op::input,                                                                                                     \
   Takes::takes,                                                                                                  \
   Law::law,                                                                                                      \
   Slope::slope,                                                                                                  \
   ResultType::result,                                                                                            \
   ulps,                                                                                                          \
   std::string_view{__VA_ARGS__},                                                                                 \
   []([[maybe_unused]] double x, [[maybe_unused]] double y, [[maybe_unused]] double z) -> double { return val; }, \
   []([[maybe_unused]] double x, [[maybe_unused]] double y, [[maybe_unused]] double z, [[maybe_unused]] double r, \
      double out[3]) {                                                                                            \
     out[0] = dx;                                                                                                 \
     out[1] = dy;                                                                                                 \
     out[2] = dz;                                                                                                 \
   }},
#include "compiler/ir/ops.def"
#undef WL_ROW
};

bool is_signed(DType dtype) {
  return dtype == DType::i64 || dtype == DType::i32 || dtype == DType::i16 || dtype == DType::i8;
}

}  // namespace

std::span<const OpInfo> ops() {
  return kOps;
}

const OpInfo& info(Op op) {
  WL_CHECK(static_cast<size_t>(op) < std::size(kOps), "op number ", static_cast<int>(op));
  return kOps[static_cast<size_t>(op)];
}

Op combine_of(Op reduce) {
  const OpInfo& row = info(reduce);
  WL_CHECK(row.cls == OpClass::kReduce || row.cls == OpClass::kContract, row.name, " is no reduction");
  return row.combine;
}

double identity_of(Op combine, DType dtype) {
  const double infinity = std::numeric_limits<double>::infinity();
  switch (info(combine).law) {
    case Law::kIdentityZero:
      return 0;
    case Law::kIdentityOne:
      return 1;
    case Law::kIdentityLowest:
      return is_float(dtype) ? -infinity : is_signed(dtype) ? -std::ldexp(1.0, 8 * size_of(dtype) - 1) : 0;
    case Law::kIdentityHighest:
      return is_float(dtype) ? infinity : std::ldexp(1.0, 8 * size_of(dtype) - (is_signed(dtype) ? 1 : 0)) - 1;
    default:
      WL_CHECK(false, "no identity for ", name_of(combine));
  }
}

double round_to(DType dtype, double value) {
  unsigned char bytes[8];
  if (dtype == DType::f64) return value;
  if (!is_float(dtype)) value = std::isnan(value) ? 0 : std::trunc(value);
  store_element(dtype, bytes, 0, value);
  return load_element(dtype, bytes, 0);
}

int64_t wrap(DType dtype, int64_t value) {
  if (dtype == DType::b1) return value != 0;
  int unused = 64 - 8 * size_of(dtype);
  uint64_t shifted = static_cast<uint64_t>(value) << unused;
  return is_signed(dtype) ? static_cast<int64_t>(shifted) >> unused : static_cast<int64_t>(shifted >> unused);
}

double to_integer(DType to, DType from, double value) {
  if (to == DType::b1) return value != 0;
  if (std::isnan(value)) return 0;
  value = std::trunc(value);
  constexpr double kTwo63 = 9223372036854775808.0;
  if (is_float(from)) return round_to(to, value);
  if (value >= kTwo63) value -= 2 * kTwo63;  // `value` becomes the int64_t with the same bits
  if (std::fabs(value) >= kTwo63) return round_to(to, value);
  const int64_t wrapped = wrap(to, static_cast<int64_t>(value));
  return to == DType::u64 ? static_cast<double>(static_cast<uint64_t>(wrapped)) : static_cast<double>(wrapped);
}

}  // namespace wl

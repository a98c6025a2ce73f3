#include "tests/emulated/prelude_probes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace wl::testing {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
using enum DType;

#define WL_OF(expression) [](double x, double y, double z) -> double { return (void)x, (void)y, (void)z, (expression); }

double python_mod(double x, double y) {
  const double r = std::fmod(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
double shifted(double x, double y, bool left) {
  const auto bits = static_cast<int64_t>(x);
  if (y < 0 || y >= 32) return 0;
  return left ? static_cast<double>(static_cast<int32_t>(static_cast<uint32_t>(bits) << static_cast<int>(y)))
              : static_cast<double>(bits >> static_cast<int>(y));
}
double bits_of(double x, double y, char op) {
  const auto a = static_cast<int64_t>(x), b = static_cast<int64_t>(y);
  return static_cast<double>(op == '&' ? a & b : op == '|' ? a | b : a ^ b);
}
double divided(double x, double y) {
  return y == 0 ? 0 : std::trunc(x / y);
}
double power_of_integers(double x, double y) {
  if (y < 0) return std::fabs(x) == 1 ? (std::fmod(y, 2) != 0 ? x : 1) : 0;
  return static_cast<double>(static_cast<int32_t>(static_cast<int64_t>(std::pow(x, std::min(y, 6.0)))));
}
// Returns exp(x) computed as exp2 of the rounded product x * log2(e). Subnormal results are 0.
double rounded_exp(double x) {
  const double power = std::exp2(static_cast<double>(static_cast<float>(x) * 1.44269504F));
  return power < static_cast<double>(std::numeric_limits<float>::min()) ? 0 : power;
}
double saturated(double x) {
  return std::isnan(x) ? 0 : std::trunc(std::clamp(x, -100.0, 101.0));
}

const ValueProbe kValues[] = {
    {"neg", f32, f32, "wl_neg(x)", WL_OF(-x)},
    {"abs", f32, f32, "wl_abs(x)", WL_OF(std::fabs(x))},
    {"relu", f32, f32, "wl_relu(x)", WL_OF(std::isnan(x) ? x : std::max(x, 0.0))},
    {"sign", f32, f32, "wl_sign(x)",
     WL_OF(x > 0   ? 1
           : x < 0 ? -1
                   : x)},
    {"floor", f32, f32, "wl_floor(x)", WL_OF(std::floor(x))},
    {"ceil", f32, f32, "wl_ceil(x)", WL_OF(std::ceil(x))},
    {"round", f32, f32, "wl_round(x)", WL_OF(std::nearbyint(x))},
    {"trunc", f32, f32, "wl_trunc(x)", WL_OF(std::trunc(x))},
    {"sqrt", f32, f32, "wl_sqrt(x)", WL_OF(std::sqrt(x))},
    {"rsqrt", f32, f32, "wl_rsqrt(x)", WL_OF(1 / std::sqrt(x)), 1.5, true},
    {"rcp", f32, f32, "wl_rcp(x)", WL_OF(1 / x), 0.5, true},
    {"exp", f32, f32, "wl_exp(x)", WL_OF(std::exp(x)), 1.25},
    {"exp_rounded", f32, f32, "wl_exp_rounded(x)", WL_OF(rounded_exp(x)), 2},
    {"exp2", f32, f32, "wl_exp2(x)", WL_OF(std::exp2(x)), 1.25},
    {"expm1", f32, f32, "wl_expm1(x)", WL_OF(std::expm1(x)), 1.75},
    {"log", f32, f32, "wl_log(x)", WL_OF(std::log(x)), 1.25},
    {"log2", f32, f32, "wl_log2(x)", WL_OF(std::log2(x)), 3},
    {"log1p", f32, f32, "wl_log1p(x)", WL_OF(std::log1p(x)), 1.3},
    {"sigmoid", f32, f32, "wl_sigmoid(x)", WL_OF(1 / (1 + std::exp(-x))), 2.5, true},
    {"erf", f32, f32, "wl_erf(x)", WL_OF(std::erf(x)), 2.5, true},
    {"tanh", f32, f32, "wl_tanh(x)", WL_OF(std::tanh(x)), 3, true},
    {"atan", f32, f32, "wl_atan(x)", WL_OF(std::atan(x)), 3, true},
    {"pow", f32, f32, "wl_pow(x, y)", WL_OF(std::pow(x, y)), 1.25},
    {"add", f32, f32, "wl_add(x, y)", WL_OF(x + y)},
    {"sub", f32, f32, "wl_sub(x, y)", WL_OF(x - y)},
    {"mul", f32, f32, "wl_mul(x, y)", WL_OF(x* y)},
    {"div", f32, f32, "wl_div(x, y)", WL_OF(x / y), 0.5, true},
    {"fma", f32, f32, "wl_fma(x, y, z)", WL_OF(std::fma(x, y, z))},
    {"max", f32, f32, "wl_max(x, y)", WL_OF(std::isnan(x) || std::isnan(y) ? kNan : std::max(x, y))},
    {"min", f32, f32, "wl_min(x, y)", WL_OF(std::isnan(x) || std::isnan(y) ? kNan : std::min(x, y))},
    {"fmod", f32, f32, "wl_fmod(x, y)", WL_OF(std::fmod(x, y)), 0.5, true},
    {"mod", f32, f32, "wl_mod(x, y)", WL_OF(python_mod(x, y)), 0.5, true},
    {"select", f32, f32, "wl_select(wl_lt(x, y), x, z)", WL_OF(x < y ? x : z)},
    {"f64 arithmetic", f64, f64, "wl_div(wl_add(wl_mul(x, y), wl_neg(z)), wl_abs(x))",
     WL_OF(std::fma(x, y, -z) / std::fabs(x)), 0.5, true},
    {"f64 rounding", f64, f64, "wl_sub(wl_floor(x), wl_trunc(y))", WL_OF(std::floor(x) - std::trunc(y))},
    {"f64 sqrt", f64, f64, "wl_sqrt(wl_abs(x))", WL_OF(std::sqrt(std::fabs(x)))},
    {"i32 add", i32, i32, "wl_sub(wl_add(x, y), z)", WL_OF(x + y - z)},
    {"i32 mul", i32, i32, "wl_mul(x, y)", WL_OF(x* y)},
    {"i32 div", i32, i32, "wl_div(x, y)", WL_OF(divided(x, y))},
    {"i32 fmod", i32, i32, "wl_fmod(x, y)", WL_OF(y == 0 ? x : std::fmod(x, y))},
    {"i32 mod", i32, i32, "wl_mod(x, y)", WL_OF(y == 0 ? x : python_mod(x, y))},
    {"i32 max", i32, i32, "wl_max(wl_min(x, y), z)", WL_OF(std::max(std::min(x, y), z))},
    {"i32 bits", i32, i32, "wl_bit_xor(wl_bit_and(x, y), wl_bit_or(y, z))",
     WL_OF(bits_of(bits_of(x, y, '&'), bits_of(y, z, '|'), '^'))},
    {"i32 shift left", i32, i32, "wl_shift_left(x, y)", WL_OF(shifted(x, y, true))},
    {"i32 shift right", i32, i32, "wl_shift_right(x, y)", WL_OF(shifted(x, y, false))},
    {"i32 pow", i32, i32, "wl_pow(wl_mod(x, wl_cast<V>(12)), wl_min(y, wl_cast<V>(6)))",
     WL_OF(power_of_integers(python_mod(x, 12), y))},
    {"i32 sign", i32, i32, "wl_mul(wl_sign(x), wl_abs(wl_relu(wl_neg(y))))",
     WL_OF((x > 0   ? 1
            : x < 0 ? -1
                    : 0) *
           std::max(-y, 0.0))},
    {"i64 arithmetic", i64, i64, "wl_mod(wl_add(wl_mul(x, y), z), wl_cast<V>(7))", WL_OF(python_mod(x* y + z, 7))},
    {"i64 div", i64, i64, "wl_div(x, y)", WL_OF(divided(x, y))},
    {"eq", f32, b1, "wl_cast<R>(wl_eq(x, y))", WL_OF(x == y)},
    {"ne", f32, b1, "wl_cast<R>(wl_ne(x, y))", WL_OF(x != y)},
    {"le", f32, b1, "wl_cast<R>(wl_le(x, y))", WL_OF(x <= y)},
    {"ge", f32, b1, "wl_cast<R>(wl_ge(x, y))", WL_OF(x >= y)},
    {"conditions", f32, b1,
     "wl_cast<R>(wl_logical_xor(wl_logical_and(wl_lt(x, y), wl_gt(y, z)), wl_logical_or(wl_logical_not(wl_lt(x, z)), "
     "wl_gt(x, y))))",
     WL_OF((x < y && y > z) != (!(x < z) || x > y))},
    {"f32 to i32", f32, i32,
     "wl_cast<R>(wl_min(wl_max(wl_select(wl_eq(x, x), x, wl_splat<V>(5)), wl_splat<V>(-9e8f)), wl_splat<V>(9e8f)))",
     WL_OF(std::trunc(std::clamp(x == x ? x : 5, -9e8, 9e8)))},
    {"i32 to f32", i32, f32, "wl_cast<R>(x)", WL_OF(x)},
    {"i64 to f64", i64, f64, "wl_cast<R>(x)", WL_OF(x)},
    {"f32 to b1", f32, b1, "wl_cast<R>(x)", WL_OF(x != 0)},
    {"f32 to i8", f32, i8, "wl_narrow<R>(wl_to_int<wl_v<i32, wl_n<V>>>(x, -100, 101))", WL_OF(saturated(x))},
    {"to f16", f32, f16, "wl_to_f16(x)", WL_OF(x)},
    {"to bf16", f32, bf16, "wl_to_bf16(x)", WL_OF(x)},
    {"to f8e4m3fn", f32, f8e4m3fn, "wl_to_f8e4m3fn(x)", WL_OF(x)},
    {"to f8e5m2", f32, f8e5m2, "wl_to_f8e5m2(x)", WL_OF(x)},
    {"from f16", f16, f32, "wl_from_f16<R>(x)", WL_OF(x)},
    {"from bf16", bf16, f32, "wl_from_bf16<R>(x)", WL_OF(x)},
    {"exact bf16", bf16, bf16, "wl_exact_bf16(wl_from_bf16<wl_v<f32, wl_n<V>>>(x))", WL_OF(x)},
    {"from f8e4m3fn", f8e4m3fn, f32, "wl_from_f8e4m3fn<R>(x)", WL_OF(x)},
    {"from f8e5m2", f8e5m2, f32, "wl_from_f8e5m2<R>(x)", WL_OF(x)},
};
#undef WL_OF

#define WL_AT(expression) [](int thread, int i) -> double { return (void)thread, (void)i, (expression); }
// The loads and stores are of vectors of four elements. In most probes, a thread's first four elements test one
// function and its second four elements another one.
const MoveProbe kMoves[] = {
    {"load and store", "wl_store<4>(q, wl_load<f32v, 4>(p + at)); wl_store<2>(q + 4, wl_load<f32v, 1>(p + at + 4));",
     WL_AT(8 * thread + i)},
    {"scalars",
     "wl_store<1>(q, wl_load<f32, 1>(p + at)); wl_store_n<1>(q + 1, wl_load_n<f32, 1>(p + at, thread & 1, 9), 1);",
     WL_AT(i == 0   ? 8 * thread
           : i == 1 ? (thread & 1 ? 8 * thread : 9)
                    : -1)},
    {"tails",
     "const int n = thread % 5; wl_store<1>(q, wl_keep(wl_load_n<f32v, 1>(p + at, n, 9), n, 9)); "
     "wl_store_n<1>(q + 4, wl_load<f32v, 1>(p + at), n);",
     WL_AT(i < 4                ? (i < thread % 5 ? 8 * thread + i : 9)
           : i - 4 < thread % 5 ? 8 * thread + i - 4
                                : -1)},
    {"past the caches",
     "wl_stream<4>(q, wl_load_past<f32v, 4>(p + at)); const int n = 2 * (thread % 3); "
     "wl_stream_n<2>(q + 4, wl_load_past_n<f32v, 2>(p + at, n, 9), n); wl_fence();",
     WL_AT(i < 4                      ? 8 * thread + i
           : i - 4 < 2 * (thread % 3) ? 8 * thread + i - 4
                                      : -1)},
    {"gather",
     "wl_store<1>(q, wl_gather<f32v>(p + thread, 3)); "
     "wl_store<1>(q + 4, wl_keep(wl_gather_n<f32v>(p + thread, 2, 3, 9), 3, 9));",
     WL_AT(i < 4   ? thread + 3 * i
           : i < 7 ? thread + 2 * (i - 4)
                   : 9)},
    {"gather inside",
     "wl_store<1>(q, wl_gather_in<f32v>(p + thread, 2, 1, 3, wl_splat<f32v>(9))); "
     "wl_store<1>(q + 4, wl_load_in<f32v>(p + thread, 0, 2, wl_splat<f32v>(8)));",
     WL_AT(i < 4   ? (i == 1 || i == 2 ? thread + 2 * i : 9)
           : i < 6 ? thread + i - 4
                   : 8)},
    {"scatter", "wl_scatter(q, 2, wl_load<f32v, 4>(p + at)); wl_scatter_n(q + 1, 2, wl_load<f32v, 4>(p + at), 3);",
     WL_AT(i % 2 == 0 ? 8 * thread + i / 2
           : i < 7    ? 8 * thread + i / 2
                      : -1)},
    {"take",
     "const i64v n = wl_sub(wl_iota<i64v>(), wl_splat<i64v>(2)); wl_store<1>(q, wl_take<f32v>(p, 0, n, 1, 1000, 4)); "
     "wl_store<1>(q + 4, wl_take<f32v>(p + thread, 2, n, 1, 100, 4));",
     WL_AT(i < 4 ? (i < 2 ? 998 + i : i - 2) : thread + 2 * (i - 4) + (i < 6 ? 98 + i - 4 : i - 6))},
    {"copies to shared memory",
     "wl_async<4, 4>(s + at, p + at); wl_async_n<4, 2>(s + at + 4, p + at + 4, 4); wl_commit(); wl_wait<0>(); "
     "wl_barrier(); wl_store<4>(q, wl_load<f32v, 4>(s + 8 * (thread ^ 96))); "
     "wl_store<4>(q + 4, wl_load<f32v, 4>(s + 8 * (thread ^ 96) + 4));",
     WL_AT(8 * (thread ^ 96) + i)},
    {"copies of what is inside",
     "wl_async_in<4, 4>(s + at, p + at, thread % 2 == 0); wl_async_in_n<4, 1>(s + at + 4, p + at + 4, thread % 3 == 0, "
     "4); "
     "wl_commit(); wl_wait<0>(); wl_barrier(); for (int i = 0; i < 8; ++i) q[i] = s[8 * (127 - thread) + i];",
     WL_AT((127 - thread) % (i < 4 ? 2 : 3) == 0 ? 8 * (127 - thread) + i : 0)},
    {"shuffles",
     "q[0] = wl_shuffle_xor<1>((f32)thread); q[1] = wl_shuffle_xor<2>((f32)thread); q[2] = "
     "wl_shuffle_xor<4>((f32)thread); "
     "q[3] = wl_shuffle_xor<8>((f32)thread); q[4] = wl_shuffle_xor<16>((f32)thread);",
     WL_AT(i < 5 ? thread ^ (1 << i) : -1)},
    {"shuffles of other types",
     "q[0] = (f32)wl_shuffle_xor<1>((f64)thread); q[1] = (f32)wl_shuffle_xor<2>((i64)thread - 64); "
     "q[2] = wl_shuffle_xor<4>((i32)thread - 64); q[3] = wl_shuffle_xor<8>((i8)(thread - 64)); "
     "q[4] = wl_shuffle_xor<16>((u16)thread); wl_agree<4>(1);",
     WL_AT(i < 5 ? (thread ^ (1 << i)) - (i == 0 || i == 4 ? 0 : 64) : -1)},
    {"shuffles from any lane of a part of a wave",
     "q[0] = wl_shuffle<8>((f32)thread, (thread + 3) % 8); q[1] = (f32)wl_shuffle<32>((f64)thread, 5); "
     "q[2] = wl_shuffle<16>((i8)(thread - 64), 15 - thread % 16);",
     WL_AT(i == 0   ? thread / 8 * 8 + (thread + 3) % 8
           : i == 1 ? thread / 32 * 32 + 5
           : i == 2 ? thread / 16 * 16 + 15 - thread % 16 - 64
                    : -1)},
    {"shuffles across a wave of 64", "q[0] = wl_shuffle_xor<32>((f32)thread); q[1] = wl_shuffle_xor<32>((f64)thread);",
     WL_AT(i < 2 ? thread ^ 32 : -1), 64},
    {"reductions of a vector",
     "const f32v v = wl_add(wl_load<f32v, 4>(p + at), wl_splat<f32v>(1)); q[0] = wl_hsum(v); q[1] = wl_hmax(v); "
     "q[2] = wl_hmin(v); q[3] = wl_hprod(wl_splat<f32v>(3)); q[4] = wl_hsum(wl_cast<i32v>(v)); q[5] = wl_part(v, 2);",
     WL_AT(i == 0 || i == 4 ? 32 * thread + 10
           : i == 1         ? 8 * thread + 4
           : i == 2         ? 8 * thread + 1
           : i == 3         ? 81
           : i == 5         ? 8 * thread + 3
                            : -1)},
    {"identities",
     "q[0] = wl_hsum(wl_identity_add<f32v>()); q[1] = wl_hsum(wl_identity_mul<f32v>()); "
     "q[2] = wl_hmax(wl_identity_max<f32v>()); q[3] = wl_hmin(wl_identity_min<f32v>()); "
     "q[4] = wl_identity_max<i32>() == -2147483647 - 1; q[5] = wl_identity_min<i64>() == 9223372036854775807LL; "
     "q[6] = wl_identity_max<u8>(); q[7] = wl_identity_min<f64>() > 1e308;",
     WL_AT(i == 0 || i == 6 ? 0
           : i == 1         ? 4
           : i == 2         ? -kInf
           : i == 3         ? kInf
                            : 1)},
    {"indices",
     "const long t = (long)wl_load<f32, 1>(p + thread); q[0] = wl_within(t - 5, 64); q[1] = wl_first_lane(t - 9, 3, "
     "100); q[2] = wl_end_lane(t - 9, 3, "
     "100); "
     "q[3] = wl_left(t - 60); q[4] = wl_lmin(t, 70) + wl_lmax(t, 70); q[5] = wl_wrap(t - 64, 64); "
     "q[6] = wl_divide_up(t - 20, 7); q[7] = wl_lane(wl_splat<i32v>(thread), 1) + wl_lane((i32)thread, 0);",
     WL_AT(i == 0   ? thread >= 5 && thread < 69
           : i == 1 ? std::ceil((9 - thread) / 3.0)
           : i == 2 ? std::ceil((109 - thread) / 3.0)
           : i == 3 ? std::clamp(thread - 60, 0, 4)
           : i == 4 ? thread + 70
           : i == 5 ? (thread < 64 ? thread : thread - 64)
           : i == 6 ? std::ceil((thread - 20) / 7.0)
                    : 2 * thread)},
};
#undef WL_AT

}  // namespace

std::span<const ValueProbe> value_probes() {
  return kValues;
}

std::span<const MoveProbe> move_probes() {
  return kMoves;
}

}  // namespace wl::testing

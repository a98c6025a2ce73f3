// Compiled by prelude_test.cpp behind the text of the CPU prelude, together with prelude_probe_memory.cc, once per
// compiler and vector width. Prints "accuracy NAME ULPS", "absolute NAME ERROR" and, for each function of the prelude
// with a wrong result, "broken WHAT".
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>

namespace {

constexpr int kLanes = WL_LANES;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kTiny = 1e-45f;
const float kSpecials[] = {0.0f,   -0.0f, 1.0f,    -1.0f,       2.0f,   -2.0f,   0.5f,   -0.5f,  3.0f,
                           -3.0f,  kInf,  -kInf,   kNan,        1e-40f, -1e-40f, kTiny,  -kTiny, 1e38f,
                           -1e38f, 88.7f, -103.5f, 16777217.0f, 2.5f,   -2.5f,   104.0f, -104.0f};

float from_bits(uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}
template <class V>
struct Lanes {
  wl_e<V> at[wl_n<V>];
  explicit Lanes(V v) { std::memcpy(at, &v, sizeof(v)); }
};

__attribute__((noinline)) void broken(const char* what, double x = 0, double y = 0, double got = 0, double want = 0) {
  static int count = 0;
  if (++count <= 40) std::printf("broken %s: arguments %a %a, expected %.9g, found %.9g\n", what, x, y, want, got);
}
__attribute__((noinline)) void expect(bool ok, const char* what) {
  if (!ok) broken(what);
}

double ulp(float r) {
  r = std::fabs(r);
  int e;
  std::frexp(r, &e);
  return r < 1.17549435e-38f ? std::ldexp(1, -149) : std::ldexp(1, e - 24);
}
__attribute__((noinline)) double error(float got, long double want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got) ? 0 : 1e9;
  float rounded = static_cast<float>(want);
  if (std::isinf(rounded) || std::isinf(got)) return rounded == got ? 0 : 1e9;
  return std::fabs(static_cast<double>(got - want)) / ulp(rounded);
}

// Measures the errors of the elementary function `vector` at every `step`-th float, at the special values, and at
// additional arguments of ordinary size.
template <class F, class S, class R>
void measure(const char* name, F vector, S scalar, R reference, uint32_t step) {
  double worst = 0, worst_absolute = 0;
  float in[16], out[16];
  int k = 0;
  auto flush = [&]() __attribute__((noinline)) {
    wl_store(out, vector(wl_load<f32v>(in)));
    for (int j = 0; j < kLanes; ++j) {
      long double want = reference(static_cast<long double>(in[j]));
      double e = error(out[j], want), s = error(scalar(in[j]), want);
      if (e >= 1e9 || s >= 1e9) broken(name, in[j], 0, e >= 1e9 ? out[j] : scalar(in[j]), static_cast<double>(want));
      worst = std::fmax(worst, std::fmax(e, s));
      if (std::fabs(in[j]) < 1e4f)
        worst_absolute = std::fmax(worst_absolute, std::fabs(static_cast<double>(out[j] - want)));
    }
    k = 0;
  };
  auto add = [&](float x) __attribute__((noinline)) {
    in[k++] = x;
    if (k == kLanes) flush();
  };
  for (uint64_t u = 0; u < (1ull << 32); u += step) add(from_bits(static_cast<uint32_t>(u)));
  for (uint32_t u = 0x3a000000; u < 0x43000000; u += step / 8) add(from_bits(u)), add(-from_bits(u));
  for (float x : kSpecials) add(x);
  while (k) add(1.0f);
  std::printf("accuracy %s %.3f\nabsolute %s %.3g\n", name, worst, name, worst_absolute);
}
#define MEASURE(f, reference)                                                \
  measure(                                                                   \
      #f, [](f32v x) { return wl_##f(x); }, [](f32 x) { return wl_##f(x); }, \
      [](long double x) -> long double { return reference; }, step)

__attribute__((noinline)) float vector_pow(float x, float y, int lane) {
  return Lanes<f32v>(wl_pow(wl_splat<f32v>(x), wl_splat<f32v>(y))).at[lane];
}
__attribute__((noinline)) float scalar_pow(float x, float y) {
  return wl_pow(x, y);
}
void measure_pow() {
  double worst = 0;
  uint32_t seed = 1;
  auto next = [&] { return (seed = seed * 1664525u + 1013904223u) >> 8; };
  auto check = [&](float x, float y, float got) __attribute__((noinline)) {
    long double want = powl(x, y);
    double e = error(got, want);
    if (e >= 1e9 || (got == 0 && std::signbit(got) != std::signbit(want)))
      broken("pow", x, y, got, static_cast<double>(want));
    worst = std::fmax(worst, e);
  };
  for (int i = 0; i < 20000; ++i) {
    float x = i & 1 ? from_bits(next() << 8 ^ next()) : std::exp((next() % 1000000) / 5e4f - 10);
    float y =
        i & 2 ? (static_cast<int>(next() % 41) - 20) * 0.5f : (static_cast<int>(next() % 200001) - 100000) / 2000.0f;
    check(x, y, vector_pow(x, y, kLanes - 1));
    check(x, y, scalar_pow(x, y));
  }
  for (float x : kSpecials)
    for (float y : kSpecials) check(x, y, vector_pow(x, y, 0)), check(x, y, scalar_pow(x, y));
  std::printf("accuracy pow %.3f\n", worst);
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || a == b;
}

// Tests a binary function on all pairs of values, as vector-vector, vector-scalar, scalar-vector and scalar-scalar.
template <class V, class F, class R, int N>
void pairs(const char* name, F f, R reference, const wl_e<V> (&values)[N]) {
  for (wl_e<V> x : values)
    for (wl_e<V> y : values) {
      double want = static_cast<double>(reference(x, y));
      V vx = wl_splat<V>(x), vy = wl_splat<V>(y);
      const double got[] = {static_cast<double>(Lanes<V>(wl_cast<V>(f(vx, vy))).at[0]),
                            static_cast<double>(Lanes<V>(wl_cast<V>(f(vx, y))).at[kLanes - 1]),
                            static_cast<double>(Lanes<V>(wl_cast<V>(f(x, vy))).at[0]), static_cast<double>(f(x, y))};
      for (double g : got)
        if (!same(g, want)) broken(name, static_cast<double>(x), static_cast<double>(y), g, want);
    }
}
#define PAIRS(V, f, reference) \
  pairs<V>(                    \
      #f " " #V, [](auto a, auto b) { return wl_##f(a, b); }, [](auto a, auto b) { return reference; }, values)

template <class V>
void arithmetic_floats() {
  typedef wl_e<V> T;
  const T values[] = {0, -T(0), 1, -1, T(2.5), T(-7.25), T(1e30), T(3e-39), T(kInf), T(-kInf), T(kNan), 5, 17};
  PAIRS(V, add, a + b);
  PAIRS(V, sub, a - b);
  PAIRS(V, mul, a * b);
  PAIRS(V, div, a / b);
  PAIRS(V, max, a != a || b != b ? T(kNan) : (a > b ? a : b));
  PAIRS(V, min, a != a || b != b ? T(kNan) : (a < b ? a : b));
  PAIRS(V, fmod, static_cast<T>(std::fmod(a, b)));
  PAIRS(V, mod, (std::fmod(a, b) != 0 && (std::fmod(a, b) < 0) != (b < 0) ? std::fmod(a, b) + b : std::fmod(a, b)));
  PAIRS(V, lt, T(a < b));
  PAIRS(V, le, T(a <= b));
  PAIRS(V, gt, T(a > b));
  PAIRS(V, ge, T(a >= b));
  PAIRS(V, eq, T(a == b));
  PAIRS(V, ne, T(a != b));
  for (T x : values) {
    V v = wl_splat<V>(x);
    auto check = [&](const char* name, V got, T scalar, T want) __attribute__((noinline)) {
      for (T g : {Lanes<V>(got).at[0], Lanes<V>(got).at[kLanes - 1], scalar})
        if (!same(g, want) || (!std::isnan(want) && std::signbit(g) != std::signbit(want))) broken(name, x, 0, g, want);
    };
    check("neg", wl_neg(v), wl_neg(x), -x);
    check("abs", wl_abs(v), wl_abs(x), std::fabs(x));
    check("floor", wl_floor(v), wl_floor(x), std::floor(x));
    check("ceil", wl_ceil(v), wl_ceil(x), std::ceil(x));
    check("trunc", wl_trunc(v), wl_trunc(x), std::trunc(x));
    check("round", wl_round(v), wl_round(x), std::nearbyint(x));
    check("sqrt", wl_sqrt(v), wl_sqrt(x), std::sqrt(x));
    check("rcp", wl_rcp(v), wl_rcp(x), 1 / x);
    check("sign", wl_sign(v), wl_sign(x), x > 0 ? T(1) : x < 0 ? T(-1) : x);
    check("relu", wl_abs(wl_relu(v)), wl_abs(wl_relu(x)), x != x ? x : x > 0 ? x : T(0));
    T e = static_cast<T>(std::exp(double(x)));
    if (sizeof(T) == 8) check("exp of f64", wl_exp(v), wl_exp(x), e);
    if (sizeof(T) == 8) check("erf of f64", wl_erf(v), wl_erf(x), static_cast<T>(std::erf(double(x))));
  }
}

// The remainder of a truncating division; 0 if the divisor is 0.
template <class T>
T rest(T a, T b) {
  const bool minus_one = std::numeric_limits<T>::is_signed && b == T(-1);  // a % -1 traps for the least number
  return b == 0 || minus_one ? T(0) : T(a % b);
}

template <class V>
void arithmetic_integers() {
  typedef wl_e<V> T;
  typedef wl_w<T> U;
  constexpr T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
  const T values[] = {0, 1, T(-1), 2, T(-7), 1000, T(-999), 46340, least, T(least + 1), most, T(most - 1), most / 3};
  PAIRS(V, add, T(U(a) + U(b)));
  PAIRS(V, sub, T(U(a) - U(b)));
  PAIRS(V, mul, T(U(a) * U(b)));
  PAIRS(V, div, (b == 0 ? T(0) : wl_signed<V> && b == T(-1) ? T(-U(a)) : T(a / b)));
  PAIRS(V, max, (a > b ? a : b));
  PAIRS(V, min, (a < b ? a : b));
  PAIRS(V, mod, (rest(a, b) != 0 && (rest(a, b) < 0) != (b < 0) ? T(rest(a, b) + b) : rest(a, b)));
  PAIRS(V, fmod, rest(a, b));
  PAIRS(V, lt, T(a < b));
  PAIRS(V, eq, T(a == b));
  PAIRS(V, and, a & b);
  PAIRS(V, xor, a ^ b);
  for (T x : values) {
    const T negative = T(-U(x)), size = x < 0 ? negative : x;
    expect(Lanes<V>(wl_neg(wl_splat<V>(x))).at[0] == negative && wl_neg(x) == negative, "integer neg");
    expect(Lanes<V>(wl_abs(wl_splat<V>(x))).at[0] == size && wl_abs(x) == size, "integer abs");
    expect(wl_pow(T(-1), x) == (x % 2 == 0 ? T(1) : T(-1)), "a power of -1");
  }
  expect(Lanes<V>(wl_div(wl_splat<V>(least), T(0))).at[0] == 0, "the least integer over zero");
  expect(Lanes<V>(wl_pow(wl_splat<V>(3), T(5))).at[0] == 243 && wl_pow(T(-2), T(3)) == T(-8), "integer pow");
  expect(Lanes<V>(wl_not(wl_splat<V>(5))).at[0] == ~T(5), "integer not");
}

}  // namespace

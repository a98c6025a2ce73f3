// The GPU preludes, arithmetic: each op on scalars, then on vectors element by element. Every function means what the
// CPU's of the same name means (cpu_ops.h).
#define WL_COMPARE(name, op)  \
  template <class A, class B> \
  WL_FN bool name(A a, B b) { \
    return a op b;            \
  }
WL_COMPARE(wl_eq, ==)
WL_COMPARE(wl_ne, !=)
WL_COMPARE(wl_lt, <)
WL_COMPARE(wl_le, <=)
WL_COMPARE(wl_gt, >)
WL_COMPARE(wl_ge, >=)
#define WL_LOGIC(name, op)                  \
  template <class A, class B>               \
  WL_FN auto name(A a, B b) {               \
    if constexpr (wl_bool<A> && wl_bool<B>) \
      return (bool)((a != 0) op(b != 0));   \
    else                                    \
      return (wl_r<A, B>)(a op b);          \
  }
WL_LOGIC(wl_and, &)
WL_LOGIC(wl_or, |)
WL_LOGIC(wl_xor, ^)
template <class A>
WL_FN auto wl_not(A a) {
  if constexpr (wl_bool<A>)
    return !a;
  else
    return ~a;
}
template <class M, class A>
WL_FN A wl_select(M m, A a, A b) {
  return m ? a : b;
}

// Integers wrap.
#define WL_BINARY(name, op)               \
  template <class T>                      \
  WL_FN T name(T a, T b) {                \
    return (T)((wl_w<T>)a op(wl_w<T>) b); \
  }
WL_BINARY(wl_add, +)
WL_BINARY(wl_sub, -)
WL_BINARY(wl_mul, *)
WL_BINARY(wl_bit_and, &)
WL_BINARY(wl_bit_or, |)
WL_BINARY(wl_bit_xor, ^)
template <class V>
WL_FN V wl_neg(V a) {
  if constexpr (wl_float<V>)
    return -a;
  else
    return (V)(0 - (wl_w<V>)a);
}
template <class T>
WL_FN T wl_div(T a, T b) {
  if constexpr (wl_float<T>)
    return a / b;
  else
    return b == 0 ? (T)0 : wl_signed<T> && b == (T)-1 ? wl_neg(a) : (T)(a / b);
}
template <class T>
WL_FN T wl_shift_left(T a, T b) {
  return b >= (T)(8 * sizeof(T)) || b < 0 ? (T)0 : (T)(a << b);
}
template <class T>
WL_FN T wl_shift_right(T a, T b) {
  return b >= (T)(8 * sizeof(T)) || b < 0 ? (T)0 : (T)(a >> b);
}
template <class V>
WL_FN V wl_abs(V a) {
  if constexpr (wl_same<V, f32>)
    return __builtin_fabsf(a);
  else if constexpr (wl_same<V, f64>)
    return __builtin_fabs(a);
  else
    return a < 0 ? wl_neg(a) : a;
}
template <class V>
WL_FN V wl_copysign(V a, V s) {
  if constexpr (wl_is64<V>)
    return __builtin_copysign(a, s);
  else
    return __builtin_copysignf(a, s);
}
template <class V>
WL_FN V wl_maxx(V a, V b) {
  return a > b ? a : b;
}
template <class V>
WL_FN V wl_minx(V a, V b) {
  return a < b ? a : b;
}
// NaN if either operand is NaN. WL_MAX and WL_MIN are a target's own for two floats.
template <class V>
WL_FN V wl_max(V a, V b) {
#ifdef WL_MAX
  if constexpr (wl_same<V, f32>) return WL_MAX(a, b);
#endif
  if constexpr (wl_float<V>)
    return a != a ? a : wl_maxx(a, b);
  else
    return a > b ? a : b;
}
template <class V>
WL_FN V wl_min(V a, V b) {
#ifdef WL_MIN
  if constexpr (wl_same<V, f32>) return WL_MIN(a, b);
#endif
  if constexpr (wl_float<V>)
    return a != a ? a : wl_minx(a, b);
  else
    return a < b ? a : b;
}
template <class V>
WL_FN V wl_relu(V a) {
  return wl_max(a, (V)0);
}
template <class V>
WL_FN V wl_fma(V a, V b, V c) {
  return (V)((wl_w<V>)a * (wl_w<V>)b + (wl_w<V>)c);
}
template <class V>
WL_FN V wl_sign(V x) {
  return x > 0 ? (V)1 : x < 0 ? (V)-1 : x;
}
// Rounding to integral values: 0 to nearest even, 1 down, 2 up, 3 towards zero.
template <int M, class V>
WL_FN V wl_round_to(V x) {
  if constexpr (wl_same<V, f32>)
    return M == 0   ? __builtin_rintf(x)
           : M == 1 ? __builtin_floorf(x)
           : M == 2 ? __builtin_ceilf(x)
                    : __builtin_truncf(x);
  else if constexpr (wl_same<V, f64>)
    return M == 0 ? __builtin_rint(x) : M == 1 ? __builtin_floor(x) : M == 2 ? __builtin_ceil(x) : __builtin_trunc(x);
  else
    return x;
}
template <class V>
WL_FN V wl_sqrt(V x) {
  if constexpr (wl_is64<V>)
    return __builtin_sqrt(x);
  else
    return __builtin_sqrtf(x);
}
// C's remainder (the dividend's sign), exact: the quotient is taken 29 bits at a time.
template <class T>
WL_FN T wl_fmod(T a, T b) {
  if constexpr (wl_same<T, f32>) {
    if (b != b) return b;
    f64 r = __builtin_fabs((f64)a), m = __builtin_fabs((f64)b);
    if (!(r < __builtin_inf()) || !(m > 0)) return __builtin_nanf("");
    while (r >= m) {
      f64 step = m;
      while (r >= step * 268435456.0) step *= 268435456.0;
      r -= (f64)(i64)(r / step) * step;
      if (r < 0) r += step;
    }
    return __builtin_copysignf((f32)r, a);
  } else if constexpr (wl_same<T, f64>) {
    return b != b ? b : __builtin_fmod(a, b);
  } else {
    return b == 0 ? b : wl_sub(a, wl_mul(wl_div(a, b), b));  // 0 where the divisor is
  }
}
// Python's remainder (the divisor's sign).
template <class T>
WL_FN T wl_mod(T a, T b) {
  const T r = wl_fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r;
}

// Conversions. A condition becomes 0 or 1.
template <class V, class X>
WL_FN V wl_cast(X x) {
  if constexpr (wl_same<V, X>) {
    return x;
  } else if constexpr (wl_n<V> == 1) {
    if constexpr (wl_bool<V>)
      return (V)(x != 0);
    else
      return (V)x;
  } else {
    V v;
    WL_UNROLL for (int i = 0; i < wl_n<V>; ++i) {
      if constexpr (wl_n<X> == 1)
        v.e[i] = wl_cast<wl_e<V>>(x);
      else
        v.e[i] = wl_cast<wl_e<V>>(x.e[i]);
    }
    return v;
  }
}
// A float as an integer of [low, high]: truncated, saturated, NaN is 0.
template <class V, class X>
WL_FN V wl_to_int(X x, wl_e<V> low, wl_e<V> high) {
  if constexpr (wl_n<V> == 1) {
    const X lo = (X)low, hi = (X)high;
    V r = (V)(x > lo && x < hi ? x : (X)0);
    r = x >= hi ? high : r;
    return x <= lo ? low : r;
  } else {
    V v;
    WL_UNROLL for (int i = 0; i < wl_n<V>; ++i) v.e[i] = wl_to_int<wl_e<V>>(x.e[i], low, high);
    return v;
  }
}
// An integer's low bits.
template <class V, class X>
WL_FN V wl_narrow(X x) {
  if constexpr (wl_n<V> == 1) {
    return (V)x;
  } else {
    V v;
    WL_UNROLL for (int i = 0; i < wl_n<V>; ++i) v.e[i] = (wl_e<V>)x.e[i];
    return v;
  }
}
// Horizontal reductions of one thread's elements, as a tree of halves. A scalar is its own.
#define WL_HORIZONTAL(name, f)                                                                                         \
  template <class T>                                                                                                   \
  WL_FN T name(T v) {                                                                                                  \
    return v;                                                                                                          \
  }                                                                                                                    \
  template <class T, int N>                                                                                            \
  WL_FN T name(wl_vec<T, N> v) {                                                                                       \
    WL_UNROLL for (int d = N / 2; d > 0; d /= 2) WL_UNROLL for (int i = 0; i < d; ++i) v.e[i] = f(v.e[i], v.e[i + d]); \
    return v.e[0];                                                                                                     \
  }
WL_HORIZONTAL(wl_hsum, wl_add)
WL_HORIZONTAL(wl_hprod, wl_mul)
WL_HORIZONTAL(wl_hmax, wl_max)
WL_HORIZONTAL(wl_hmin, wl_min)
// Small floats are read with the vector's type spelled out: their scalar forms (cpu_small.h) go by another name.
#define wl_from_bf16 wl_from_bf16_1
#define wl_from_f16 wl_from_f16_1
#define wl_from_f8e4m3fn wl_from_f8e4m3fn_1
#define wl_from_f8e5m2 wl_from_f8e5m2_1

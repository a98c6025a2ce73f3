// The CPU prelude, continued: trigonometric functions and powers, as cpu_math.h.

// x mod pi/2 for one large float: a 96-bit window of 2/pi times the mantissa (Payne and Hanek).
static __attribute__((noinline, cold, unused)) f32 wl_reduce_large(f32 x, i32* q) {
  static const unsigned two_over_pi[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
                                         0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561};
  typedef unsigned long long u64;
  i32 bits = __builtin_bit_cast(i32, x), e = (bits >> 23 & 255) - 127;
  if (e == 128) return x - x;
  int at = e - 23 - 2 + 32, word = at / 32, shift = at % 32;
  unsigned w[3];
  for (int i = 0; i < 3; ++i)
    w[i] = (unsigned)((((u64)two_over_pi[word + i] << 32 | two_over_pi[word + i + 1]) << shift) >> 32);
  unsigned __int128 product = (unsigned __int128)(((u64)w[0] << 32) | w[1]) << 32 | w[2];
  product *= (unsigned)((bits & 0x7fffff) | 0x800000);
  u64 top = (u64)(product >> 32);  // two bits of quadrant, then the fraction
  i64 fraction = (i64)(top << 2);
  *q = (i32)(top >> 62) + (fraction < 0);
  f32 r = (f32)((f64)fraction * (1.57079632679489662 / 18446744073709551616.0));
  if (x < 0) *q = -*q, r = -r;
  return r;
}
// r = x - q pi/2; four parts of pi/2 hold for |x| < 1e4, one lane at a time beyond.
template <class V>
WL_FN V wl_trig_reduce(V x, wl_i<V>& q) {
  V n = wl_round(x * 0.636619772f) + 0.0f;
  V r = (((x - n * 1.5703125f) - n * 0.00048351287841796875f) - n * 3.13855708e-07f) - n * 6.07710063e-11f;
  q = wl_cast<wl_i<V>>(n);
  if (wl_hmax(wl_abs(x) < 1e4f ? wl_splat<wl_i<V>>(0) : wl_splat<wl_i<V>>(1))) {
    if constexpr (wl_n<V> == 1) {
      r = wl_reduce_large(x, &q);
    } else {
      for (int i = 0; i < wl_n<V>; ++i) {
        if (__builtin_fabsf(x[i]) < 1e4f) continue;
        i32 quadrant = 0;
        r[i] = wl_reduce_large(x[i], &quadrant);
        q[i] = quadrant;
      }
    }
  }
  return r;
}
template <class V>
WL_FN V wl_sin_cos(V r, wl_i<V> q) {
  V s = r * r;
  V sine = WL_POLY4(s, 2.83262943e-06f, -0.000198530688f, 0.0083333794f, -0.166666672f) * (s * r) + r;
  V cosine = WL_POLY4(s, 2.44306684e-05f, -0.00138873013f, 0.0416666456f, -0.5f) * s + 1;
  V v = (q & 1) != 0 ? cosine : sine;
  return __builtin_bit_cast(V, __builtin_bit_cast(wl_i<V>, v) ^ ((q & 2) << 30));
}
template <class V>
WL_FN V wl_sin(V x) {
  WL_F64(__builtin_sin) {
    wl_i<V> q{};
    V r = wl_trig_reduce(x, q);
    return x == 0 ? x : wl_sin_cos(r, q);
  }
}
template <class V>
WL_FN V wl_cos(V x) {
  WL_F64(__builtin_cos) {
    wl_i<V> q{};
    V r = wl_trig_reduce(x, q);
    return wl_sin_cos(r, q + 1);
  }
}
template <class V>
WL_FN V wl_tan(V x) {
  WL_F64(__builtin_tan) {
    wl_i<V> q{};
    V r = wl_trig_reduce(x, q), s = r * r;
    V t = WL_POLY6(s, 0.00940270629f, 0.00309197837f, 0.0244465694f, 0.0534070358f, 0.133388445f, 0.333331555f) *
              (s * r) +
          r;
    return (q & 1) != 0 ? -1 / t : t;
  }
}
// Above 1 + sqrt(2) pi/2 - atan(1/x), above sqrt(2) - 1 pi/4 + atan((x - 1) / (x + 1)).
template <class V>
WL_FN V wl_atan(V x) {
  WL_F64(__builtin_atan) {
    const V a = wl_abs(x), zero = wl_splat<V>(0), one = wl_splat<V>(1);
    const V over = a > 0.414213562f ? a - 1 : a, under = a > 0.414213562f ? a + 1 : one;
    const V z = (a > 2.41421356f ? -one : over) / (a > 2.41421356f ? a : under), s = z * z;
    const V base = a > 2.41421356f ? wl_splat<V>(1.57079633f) : a > 0.414213562f ? wl_splat<V>(0.785398163f) : zero;
    const V r =
        WL_POLY5(s, -0.0607706085f, 0.10593377f, -0.142434776f, 0.199984685f, -0.333333164f) * (s * z) + z + base;
    return wl_copysign(r, x);
  }
}

// 2^(y log2 |x|) with the logarithm in double, so that the error stays that of exp2; then C's special cases.
template <class A, class B>
WL_FN auto wl_pow(A a0, B b0) {
  typedef wl_r<A, B> V;
  V x = wl_up<V>(a0), y = wl_up<V>(b0);
  if constexpr (wl_is64<V>) {
    if constexpr (wl_n<V> == 1) {
      return __builtin_pow(x, y);
    } else {
      for (int i = 0; i < wl_n<V>; ++i) x[i] = __builtin_pow(x[i], y[i]);
      return x;
    }
  } else if constexpr (!wl_float<V>) {
    // Modulo 2^bits. 1 and -1 are their own reciprocals; that of another number is 0, also of 0.
    V zero = wl_splat<V>(0), one = wl_splat<V>(1);
    if constexpr (wl_signed<V>) y = ((x == one) | (x == wl_neg(one))) ? y & one : y;
    V r = y < zero ? zero : one;
    for (; wl_hmax(y) > 0; y = y >> 1, x = wl_mul(x, x)) r = (y & one) != zero ? wl_mul(r, x) : r;
    return r;
  } else if constexpr (WL_SPLIT && wl_n<V> > 4 && 2 * sizeof(V) > WL_NATIVE) {
    return wl_join<V>(wl_pow(wl_lo(x), wl_lo(y)), wl_pow(wl_hi(x), wl_hi(y)));
  } else {
    typedef wl_v<f64, wl_n<V>> D;
    V one = wl_splat<V>(1), inf = wl_splat<V>(__builtin_inff()), zero = wl_splat<V>(0), a = wl_abs(x), e;
    D f = wl_cast<D>(wl_log_reduce(a < inf ? (a > zero ? a : one) : one, e)) - 1;
    D s = f / (f + 2), z = s * s;
    D log2 = s * WL_POLY7(z, 0.25103659737251549, 0.26066864268253764, 0.32064412622959898, 0.412197946862709,
                          0.57707802059277602, 0.96179669391547529, 2.8853900817779312) +
             wl_cast<D>(e);
    D t = log2 * wl_cast<D>(y);
    D limit = wl_splat<D>(200);
    t = t > limit ? limit : t < -limit ? -limit : t;
    D n = wl_round(t);
    V g = wl_cast<V>(t - n), m = wl_maxx(wl_splat<V>(-151.0f), wl_minx(wl_splat<V>(129.0f), wl_cast<V>(n)));
    V r = wl_scale(
        WL_POLY7(g, 0.00015329264f, 0.00133909693f, 0.00961849932f, 0.0555035956f, 0.240226477f, 0.693147182f, 1.0f),
        m);
    V up = y > zero ? inf : zero, down = y > zero ? zero : inf;
    r = a == zero ? down : a == inf ? up : r;
    r = x == x ? r : x;
    r = y == y ? r : y;
    V half = y * 0.5f, whole = wl_trunc(y);
    r = ((wl_trunc(half) != half) & (whole == y)) ? r * wl_copysign(one, x) : r;
    r = ((x < zero) & (a < inf) & (whole != y)) ? wl_splat<V>(__builtin_nanf("")) : r;
    return ((x == one) | (y == zero) | ((a == one) & (wl_abs(y) == inf))) ? one : r;
  }
}

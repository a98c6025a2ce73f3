// The CPU prelude, second part: comparisons, conditions, casts, arithmetic, horizontal reductions.

// Comparisons, conditions, casts. A condition is a wl_mask, a u8v or a bool.
#define WL_COMPARE(name, op)                                          \
  template <class A, class B>                                         \
  WL_FN auto name(A a, B b) {                                         \
    typedef wl_r<A, B> V;                                             \
    if constexpr (wl_n<V> == 1)                                       \
      return (V)a op(V) b;                                            \
    else                                                              \
      return wl_mask<wl_i<V>>{(wl_i<V>)(wl_up<V>(a) op wl_up<V>(b))}; \
  }
WL_COMPARE(wl_eq, ==)
WL_COMPARE(wl_ne, !=)
WL_COMPARE(wl_lt, <)
WL_COMPARE(wl_le, <=)
WL_COMPARE(wl_gt, >)
WL_COMPARE(wl_ge, >=)
template <int Bytes, bool Signed>
struct wl_whole : wl_int<Bytes> {};
template <>
struct wl_whole<2, false> {
  typedef u16 t;
};
template <>
struct wl_whole<4, false> {
  typedef u32 t;
};
#if !defined(__clang__) && defined(WL_AVX512)
#define WL_MOVES 1  // g++ 12 takes two to fifty instructions for what is one; by target
#define WL_MOVE(name, from, to) __builtin_ia32_pmov##name##512_mask((wl_v<from, 16>)x, wl_v<to, 16>{}, -1)
#else
#define WL_MOVES 0
#define WL_MOVE(name, from, to) x
#endif
#if !defined(__clang__) && WL_NATIVE >= 32
#define WL_WIDENS 1  // g++ 12 takes four to six instructions for these, too; by target
template <class X>
WL_FN wl_v<i32, 8> wl_widen_whole(X x) {
  constexpr bool is_signed = (wl_e<X>)-1 < (wl_e<X>)0;
  if constexpr (sizeof(x) == 16) {
    const auto words = (wl_v<i16, 8>)x;
    return is_signed ? __builtin_ia32_pmovsxwd256(words) : __builtin_ia32_pmovzxwd256(words);
  } else {
    const auto bytes = (wl_v<char, 16>)wl_v<i64, 2>{__builtin_bit_cast(i64, x), 0};
    return is_signed ? __builtin_ia32_pmovsxbd256(bytes) : __builtin_ia32_pmovzxbd256(bytes);
  }
}
#else
#define WL_WIDENS 0
#endif
// Lane by lane. Each step doubles or halves the bytes of an integer at most; longer ones are slow with g++ 12.
template <class V, class X>
WL_FN V wl_convert(X x) {
  constexpr int n = wl_n<X>, from = sizeof(wl_e<X>), to = sizeof(wl_e<V>);
  constexpr bool whole = !wl_float<X> && !wl_float<V>, is_signed = (wl_e<X>)-1 < (wl_e<X>)0;
  constexpr bool move = WL_MOVES && n == 16 && whole;
  if constexpr ((wl_float<V> && from < 4) || (wl_float<X> && to < 4))
    return wl_convert<V>(wl_convert<wl_v<i32, n>>(x));
  else if constexpr (move && from == 1 && to == 4)
    return is_signed ? (V)WL_MOVE(sxbd, char, i32) : (V)WL_MOVE(zxbd, char, i32);
  else if constexpr (move && from == 2 && to == 4)
    return is_signed ? (V)WL_MOVE(sxwd, i16, i32) : (V)WL_MOVE(zxwd, i16, i32);
  else if constexpr (move && from == 4 && to == 1)
    return (V)WL_MOVE(db, i32, char);
  else if constexpr (move && from == 4 && to == 2)
    return (V)WL_MOVE(dw, i32, i16);
  else if constexpr (WL_WIDENS && n == 8 && whole && from < 4 && to == 4)
    return (V)wl_widen_whole(x);
  else if constexpr (whole && to > 2 * from)
    return wl_convert<V>(wl_convert<wl_v<typename wl_whole<2 * from, is_signed>::t, n>>(x));
  else if constexpr (whole && from > 2 * to)
    return wl_convert<V>(wl_convert<wl_v<typename wl_whole<from / 2, is_signed>::t, n>>(x));
  else
    return __builtin_convertvector(x, V);
}
// The condition as all-ones lanes of type I.
template <class I, class M>
WL_FN I wl_lanes(M m) {
  if constexpr (wl_is_mask<M>) {
    if constexpr (sizeof(m.v) == sizeof(I))
      return m.v;
    else
      return wl_convert<I>(m.v);
  } else if constexpr (wl_n<M> == 1) {
    return wl_splat<I>(m ? -1 : 0);
  } else {
    return (I)(wl_convert<I>(m) != 0);
  }
}
template <class M>
constexpr int wl_lane_count = wl_n<M>;
template <class I>
constexpr int wl_lane_count<wl_mask<I>> = wl_n<I>;
template <class M, class A, class B>
WL_FN auto wl_select(M m, A a, B b) {
  typedef wl_r<A, B> R;
  if constexpr (wl_lane_count<M> == 1) {
    return m ? wl_up<R>(a) : wl_up<R>(b);
  } else {
    typedef wl_v<wl_e<R>, wl_lane_count<M>> V;
    return (V)(wl_lanes<wl_i<V>>(m) ? wl_up<V>(a) : wl_up<V>(b));
  }
}
// Conditions (any mix of the three kinds) or integers, bit by bit.
#define WL_LOGIC(name, op)                                                       \
  template <class A, class B>                                                    \
  WL_FN auto name(A a, B b) {                                                    \
    if constexpr (wl_is_mask<A>)                                                 \
      return A{a.v op wl_lanes<decltype(a.v)>(b)};                               \
    else if constexpr (wl_is_mask<B>)                                            \
      return B{wl_lanes<decltype(b.v)>(a) op b.v};                               \
    else if constexpr (wl_bool<A> && wl_n<A> == 1 && wl_bool<B> && wl_n<B> == 1) \
      return (bool)((a != 0) op(b != 0));                                        \
    else                                                                         \
      return wl_up<wl_r<A, B>>(a) op wl_up<wl_r<A, B>>(b);                       \
  }
WL_LOGIC(wl_and, &)
WL_LOGIC(wl_or, |)
WL_LOGIC(wl_xor, ^)
template <class A>
WL_FN auto wl_not(A a) {
  if constexpr (wl_is_mask<A>)
    return A{~a.v};
  else if constexpr (wl_bool<A> && wl_n<A> == 1)
    return !a;
  else if constexpr (wl_bool<A>)
    return (A)(a ^ 1);
  else
    return ~a;
}
template <class V, class X>
WL_FN V wl_cast(X x) {
  if constexpr (wl_same<V, X>) {
    return x;
  } else if constexpr (wl_is_mask<X>) {
    return wl_convert<V>(wl_lanes<wl_i<V>>(x) & 1);
  } else if constexpr (wl_n<X> == 1) {
    if constexpr (wl_bool<V>)
      return wl_splat<V>(x != 0);
    else
      return wl_splat<V>((wl_e<V>)x);
  } else if constexpr (WL_SPLIT && wl_n<V> > 4 && (sizeof(V) > WL_NATIVE || sizeof(X) > WL_NATIVE)) {
    return wl_join<V>(wl_cast<wl_half<V>>(wl_lo(x)), wl_cast<wl_half<V>>(wl_hi(x)));
  } else if constexpr (wl_bool<V>) {
    return wl_convert<V>(x != 0) & 1;
  } else {
    return wl_convert<V>(x);
  }
}

// Arithmetic. Operands may be a scalar and a vector; integers wrap.
#define WL_BINARY(name, op)                                   \
  template <class A, class B>                                 \
  WL_FN auto name(A a, B b) {                                 \
    typedef wl_r<A, B> V;                                     \
    return (V)((wl_w<V>)wl_up<V>(a) op(wl_w<V>) wl_up<V>(b)); \
  }
WL_BINARY(wl_add, +)
WL_BINARY(wl_sub, -)
WL_BINARY(wl_mul, *)
template <class V>
WL_FN V wl_neg(V a) {
  if constexpr (wl_float<V>) return -a;
  return wl_sub(wl_splat<V>(0), a);
}
// Integer division truncates; by zero it gives 0, and the quotient of the least number and -1 wraps: neither traps.
template <class A, class B>
WL_FN auto wl_div(A a0, B b0) {
  typedef wl_r<A, B> V;
  V a = wl_up<V>(a0), b = wl_up<V>(b0);
  if constexpr (wl_float<V>) {
    return a / b;
  } else {
    V one = wl_splat<V>(1), zero = wl_splat<V>(0), safe = b == 0 ? one : b;
    if constexpr (wl_signed<V>)
      return (V)(b == 0 ? zero : b == -1 ? wl_neg(a) : a / (b == -1 ? one : safe));
    else
      return (V)(b == 0 ? zero : a / safe);
  }
}
template <class V>
WL_FN V wl_abs(V a) {
  if constexpr (wl_float<V>) {
    wl_i<V> i = __builtin_bit_cast(wl_i<V>, a);
    return __builtin_bit_cast(V, i & ~((wl_e<wl_i<V>>)1 << (8 * sizeof(wl_e<V>) - 1)));
  } else {
    return a < 0 ? wl_neg(a) : a;
  }
}
template <class V>
WL_FN V wl_copysign(V a, V s) {
  typedef wl_i<V> I;
  I m = wl_splat<I>((wl_e<I>)((wl_e<I>)1 << (8 * sizeof(wl_e<V>) - 1)));
  return __builtin_bit_cast(V, (__builtin_bit_cast(I, a) & ~m) | (__builtin_bit_cast(I, s) & m));
}
// wl_maxx, wl_minx: a > b ? a : b, so b if either is NaN: one instruction. By target: g++ 12 makes two of it.
template <class V>
WL_FN V wl_maxx(V a, V b) {
  return a > b ? a : b;
}
template <class V>
WL_FN V wl_minx(V a, V b) {
  return a < b ? a : b;
}
#if !defined(__clang__) && defined(__SSE2__)
#ifdef WL_AVX512
typedef wl_v<f32, 16> wl_f16v;
WL_FN wl_f16v wl_maxx(wl_f16v a, wl_f16v b) {
  return __builtin_ia32_maxps512_mask(a, b, a, -1, 4);
}
WL_FN wl_f16v wl_minx(wl_f16v a, wl_f16v b) {
  return __builtin_ia32_minps512_mask(a, b, a, -1, 4);
}
#endif
#if WL_NATIVE > 16
WL_FN wl_v<f32, 8> wl_maxx(wl_v<f32, 8> a, wl_v<f32, 8> b) {
  return __builtin_ia32_maxps256(a, b);
}
WL_FN wl_v<f32, 8> wl_minx(wl_v<f32, 8> a, wl_v<f32, 8> b) {
  return __builtin_ia32_minps256(a, b);
}
#endif
WL_FN wl_v<f32, 4> wl_maxx(wl_v<f32, 4> a, wl_v<f32, 4> b) {
  return __builtin_ia32_maxps(a, b);
}
WL_FN wl_v<f32, 4> wl_minx(wl_v<f32, 4> a, wl_v<f32, 4> b) {
  return __builtin_ia32_minps(a, b);
}
#endif
// NaN if either operand is NaN. The second one is asked: reductions have their accumulator first, which need not wait.
template <class A, class B>
WL_FN auto wl_max(A a0, B b0) {
  typedef wl_r<A, B> V;
  V a = wl_up<V>(a0), b = wl_up<V>(b0);
  if constexpr (!wl_float<V>) return (V)(a > b ? a : b);
#if defined(WL_AVX512) && !defined(__clang__)
  else if constexpr (wl_same<V, wl_v<f32, 16>>)
    return __builtin_ia32_maxps512_mask(b, a, b, __builtin_ia32_cmpps512_mask(b, b, 7, -1, 4), 4);
#endif
  else
    return (V)(b != b ? b : wl_maxx(b, a));
}
template <class A, class B>
WL_FN auto wl_min(A a0, B b0) {
  typedef wl_r<A, B> V;
  V a = wl_up<V>(a0), b = wl_up<V>(b0);
  if constexpr (!wl_float<V>) return (V)(a < b ? a : b);
#if defined(WL_AVX512) && !defined(__clang__)
  else if constexpr (wl_same<V, wl_v<f32, 16>>)
    return __builtin_ia32_minps512_mask(b, a, b, __builtin_ia32_cmpps512_mask(b, b, 7, -1, 4), 4);
#endif
  else
    return (V)(b != b ? b : wl_minx(b, a));
}
template <class V>
WL_FN V wl_relu(V a) {
  return wl_max(a, wl_splat<V>(0));
}
// Fused where the hardware fuses (-ffp-contract=fast).
template <class A, class B, class C>
WL_FN auto wl_fma(A a, B b, C c) {
  typedef wl_r<wl_r<A, B>, C> V;
  typedef wl_w<V> W;
  return (V)((W)wl_up<V>(a) * (W)wl_up<V>(b) + (W)wl_up<V>(c));
}
template <class V>
WL_FN V wl_sign(V x) {
  V zero = wl_splat<V>(0);
  return x > zero ? wl_splat<V>(1) : x < zero ? wl_splat<V>((wl_e<V>)-1) : x;
}
// Rounding to integral values: 0 to nearest even, 1 down, 2 up, 3 towards zero (SSE4.1's numbers). By target.
template <int M, class V>
WL_FN V wl_round_to(V x) {
  if constexpr (!wl_float<V>) {
    return x;
  }
#if defined(__clang__) && (defined(__SSE4_1__) || defined(__ARM_NEON))
  else if constexpr (M == 0)
    return __builtin_elementwise_roundeven(x);
  else if constexpr (M == 1)
    return __builtin_elementwise_floor(x);
  else if constexpr (M == 2)
    return __builtin_elementwise_ceil(x);
  else
    return __builtin_elementwise_trunc(x);
#elif defined(__SSE4_1__)
  else if constexpr (sizeof(V) > WL_NATIVE)
    return wl_join<V>(wl_round_to<M>(wl_lo(x)), wl_round_to<M>(wl_hi(x)));
#ifdef WL_AVX512
  else if constexpr (wl_same<V, wl_v<f32, 16>>)
    return __builtin_ia32_rndscaleps_mask(x, M | 8, x, -1, 4);
  else if constexpr (wl_same<V, wl_v<f64, 8>>)
    return __builtin_ia32_rndscalepd_mask(x, M | 8, x, -1, 4);
#endif
#if WL_NATIVE > 16
  else if constexpr (wl_same<V, wl_v<f32, 8>>)
    return __builtin_ia32_roundps256(x, M | 8);
  else if constexpr (wl_same<V, wl_v<f64, 4>>)
    return __builtin_ia32_roundpd256(x, M | 8);
#endif
  else if constexpr (wl_same<V, wl_v<f32, 4>>)
    return __builtin_ia32_roundps(x, M | 8);
  else if constexpr (wl_same<V, wl_v<f64, 2>>)
    return __builtin_ia32_roundpd(x, M | 8);
  else if constexpr (wl_same<V, f32>)
    return __builtin_ia32_roundps(wl_v<f32, 4>{x}, M | 8)[0];
  else
    return __builtin_ia32_roundpd(wl_v<f64, 2>{x}, M | 8)[0];
#else
  else {
    constexpr wl_e<V> big = wl_is64<V> ? 4503599627370496.0 : 8388608.0f;
    V a = wl_abs(x), n = wl_copysign((a + big) - big, x), zero = wl_splat<V>(0), one = wl_splat<V>(1);
    if constexpr (M == 1) n = n - (n > x ? one : zero);
    if constexpr (M == 2) n = n + (n < x ? one : zero);
    if constexpr (M == 3) n = n - (wl_abs(n) > a ? wl_copysign(one, x) : zero);
    return a < wl_splat<V>(big) ? wl_copysign(n, x) : x;
  }
#endif
}
// By target.
template <class V>
WL_FN V wl_sqrt(V x) {
  if constexpr (wl_same<V, f32>)
    return __builtin_sqrtf(x);
  else if constexpr (wl_same<V, f64>)
    return __builtin_sqrt(x);
#if defined(WL_AVX512)
  else if constexpr (wl_same<V, wl_v<f32, 16>>)
#ifdef __clang__
    return __builtin_ia32_sqrtps512(x, 4);
#else
    return __builtin_ia32_sqrtps512_mask(x, x, -1, 4);
#endif
#endif
#if WL_NATIVE > 16
  else if constexpr (wl_same<V, wl_v<f32, 8>>)
    return __builtin_ia32_sqrtps256(x);
#endif
#if defined(__SSE2__)
  else if constexpr (wl_same<V, wl_v<f32, 4>>)
    return __builtin_ia32_sqrtps(x);
#endif
  else
    return wl_each(x, [](wl_e<V> a) { return wl_sqrt(a); });
}
// C's remainder (the dividend's sign), exact: the quotient is taken 29 bits at a time.
template <class T>
WL_FN T wl_fmod1(T a, T b) {
  if constexpr (wl_same<T, f32>) {
    f64 r = __builtin_fabs((f64)a), m = __builtin_fabs((f64)b);
    if (!(r < __builtin_inf()) || !(m > 0)) return __builtin_nanf("");
    while (r >= m) {
      f64 step = m;
      while (r >= step * 268435456.0) step *= 268435456.0;
      r -= (f64)(i64)(r / step) * step;
      if (r < 0) r += step;
    }
    return __builtin_copysignf((f32)r, a);
  } else {
    return __builtin_fmod(a, b);
  }
}
template <class A, class B>
WL_FN auto wl_fmod(A a0, B b0) {
  typedef wl_r<A, B> V;
  V a = wl_up<V>(a0), b = wl_up<V>(b0);
  if constexpr (!wl_float<V>) {
    return (V)(b == 0 ? b : wl_sub(a, wl_mul(wl_div(a, b), b)));  // 0 where the divisor is
  } else if constexpr (wl_n<V> == 1) {
    return b != b ? b : wl_fmod1(a, b);
  } else {
    for (int i = 0; i < wl_n<V>; ++i) a[i] = b[i] != b[i] ? b[i] : wl_fmod1(a[i], b[i]);
    return a;
  }
}
// Python's remainder (the divisor's sign).
template <class A, class B>
WL_FN auto wl_mod(A a, B b0) {
  typedef wl_r<A, B> V;
  V b = wl_up<V>(b0), r = wl_fmod(wl_up<V>(a), b), zero = wl_splat<V>(0);
  if constexpr (wl_n<V> == 1)
    return (V)(r != 0 && (r < 0) != (b < 0) ? r + b : r);
  else
    return (V)(r + ((r != zero) & ((r < zero) ^ (b < zero)) ? b : zero));
}

// Horizontal reductions, as a tree of halves. A scalar is its own.
#define WL_HORIZONTAL(name, f)            \
  template <class V>                      \
  WL_FN wl_e<V> name(V v) {               \
    if constexpr (wl_n<V> == 1)           \
      return v;                           \
    else                                  \
      return name(f(wl_lo(v), wl_hi(v))); \
  }
WL_HORIZONTAL(wl_hsum, wl_add)
WL_HORIZONTAL(wl_hprod, wl_mul)
WL_HORIZONTAL(wl_hmax, wl_max)
WL_HORIZONTAL(wl_hmin, wl_min)

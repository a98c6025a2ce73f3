// The GPU preludes, last part: vectors element by element, and what the printer itself calls.
#undef wl_from_bf16
#undef wl_from_f16
#undef wl_from_f8e4m3fn
#undef wl_from_f8e5m2
#define WL_FROM(name)                                                                 \
  template <class V, class H>                                                         \
  WL_FN V name(H h) {                                                                 \
    if constexpr (wl_n<V> == 1) {                                                     \
      return name##_1<V>(h);                                                          \
    } else {                                                                          \
      V v;                                                                            \
      WL_UNROLL for (int i = 0; i < wl_n<V>; ++i) v.e[i] = name##_1<wl_e<V>>(h.e[i]); \
      return v;                                                                       \
    }                                                                                 \
  }
WL_FROM(wl_from_bf16)
WL_FROM(wl_from_f16)
WL_FROM(wl_from_f8e4m3fn)
WL_FROM(wl_from_f8e5m2)
#define WL_LIFT1(name)                                           \
  template <class A, int N>                                      \
  WL_FN auto name(wl_vec<A, N> a) {                              \
    wl_vec<decltype(name(a.e[0])), N> r;                         \
    WL_UNROLL for (int i = 0; i < N; ++i) r.e[i] = name(a.e[i]); \
    return r;                                                    \
  }
#define WL_LIFT2(name)                                                   \
  template <class A, int N>                                              \
  WL_FN auto name(wl_vec<A, N> a, wl_vec<A, N> b) {                      \
    WL_UNROLL for (int i = 0; i < N; ++i) a.e[i] = name(a.e[i], b.e[i]); \
    return a;                                                            \
  }
#define WL_LIFT_CONDITION(name)                                          \
  template <class A, class B, int N>                                     \
  WL_FN auto name(wl_vec<A, N> a, wl_vec<B, N> b) {                      \
    wl_vec<decltype(name(a.e[0], b.e[0])), N> r;                         \
    WL_UNROLL for (int i = 0; i < N; ++i) r.e[i] = name(a.e[i], b.e[i]); \
    return r;                                                            \
  }
WL_LIFT_CONDITION(wl_eq)
WL_LIFT_CONDITION(wl_ne)
WL_LIFT_CONDITION(wl_lt)
WL_LIFT_CONDITION(wl_le)
WL_LIFT_CONDITION(wl_gt)
WL_LIFT_CONDITION(wl_ge)
WL_LIFT_CONDITION(wl_logical_and)
WL_LIFT_CONDITION(wl_logical_or)
WL_LIFT_CONDITION(wl_logical_xor)
WL_LIFT1(wl_logical_not)
WL_LIFT2(wl_add)
WL_LIFT2(wl_sub)
WL_LIFT2(wl_mul)
WL_LIFT2(wl_div)
WL_LIFT2(wl_max)
WL_LIFT2(wl_min)
WL_LIFT2(wl_mod)
WL_LIFT2(wl_fmod)
WL_LIFT2(wl_pow)
WL_LIFT2(wl_bit_and)
WL_LIFT2(wl_bit_or)
WL_LIFT2(wl_bit_xor)
WL_LIFT2(wl_shift_left)
WL_LIFT2(wl_shift_right)
WL_LIFT1(wl_neg)
WL_LIFT1(wl_abs)
WL_LIFT1(wl_relu)
WL_LIFT1(wl_sign)
WL_LIFT1(wl_sqrt)
WL_LIFT1(wl_rsqrt)
WL_LIFT1(wl_rcp)
WL_LIFT1(wl_exp)
WL_LIFT1(wl_exp2)
// exp where it is rounded to a narrow float afterwards (compiler/ir/rounded_exps.h): its argument is rounded once more,
// and results below the smallest normal number are 0.
WL_FN f32 wl_exp_rounded(f32 x) {
  const f32 y = x * 1.44269504f;
#ifdef WL_EX2
  return WL_EX2(y);
#else
  const f32 power = wl_exp2(y);
  return power < 1.17549435e-38f ? 0.0f : power;
#endif
}
WL_LIFT1(wl_exp_rounded)
WL_LIFT1(wl_expm1)
WL_LIFT1(wl_log)
WL_LIFT1(wl_log2)
WL_LIFT1(wl_log1p)
WL_LIFT1(wl_sin)
WL_LIFT1(wl_cos)
WL_LIFT1(wl_tan)
WL_LIFT1(wl_tanh)
WL_LIFT1(wl_sigmoid)
WL_LIFT1(wl_erf)
WL_LIFT1(wl_atan)
WL_LIFT1(wl_floor)
WL_LIFT1(wl_ceil)
WL_LIFT1(wl_round)
WL_LIFT1(wl_trunc)
WL_LIFT1(wl_exact_bf16)
#ifdef WL_TO_BF16
// Two floats by one instruction.
#define WL_LIFT_PAIRS(name, pair)                \
  template <int N>                               \
  WL_FN wl_vec<u16, N> name(wl_vec<f32, N> a) {  \
    wl_vec<u16, N> r;                            \
    WL_UNROLL for (int i = 0; i < N; i += 2) {   \
      const u32 both = pair(a.e[i], a.e[i + 1]); \
      r.e[i] = (u16)both;                        \
      r.e[i + 1] = (u16)(both >> 16);            \
    }                                            \
    return r;                                    \
  }
WL_LIFT_PAIRS(wl_to_bf16, wl_nearest_bf16_pair)
WL_LIFT_PAIRS(wl_to_f16, wl_nearest_f16_pair)
#define WL_WORD_OF(type, pair)                     \
  WL_FN u32 wl_word_of_##type(f32 low, f32 high) { \
    return pair(low, high);                        \
  }
#else
WL_LIFT1(wl_to_bf16)
WL_LIFT1(wl_to_f16)
#define WL_WORD_OF(type, pair)                                     \
  WL_FN u32 wl_word_of_##type(f32 low, f32 high) {                 \
    return (u32)wl_to_##type(low) | (u32)wl_to_##type(high) << 16; \
  }
#endif
// The word of two elements, the first in the lower half.
WL_WORD_OF(bf16, wl_nearest_bf16_pair)
WL_WORD_OF(f16, wl_nearest_f16_pair)
WL_LIFT1(wl_to_f8e4m3fn)
WL_LIFT1(wl_to_f8e5m2)
template <class A, int N>
WL_FN wl_vec<A, N> wl_fma(wl_vec<A, N> a, wl_vec<A, N> b, wl_vec<A, N> c) {
  WL_UNROLL for (int i = 0; i < N; ++i) a.e[i] = wl_fma(a.e[i], b.e[i], c.e[i]);
  return a;
}
template <class M, class A, int N>
WL_FN wl_vec<A, N> wl_select(wl_vec<M, N> m, wl_vec<A, N> a, wl_vec<A, N> b) {
  WL_UNROLL for (int i = 0; i < N; ++i) a.e[i] = m.e[i] ? a.e[i] : b.e[i];
  return a;
}

template <class V>
WL_FN V wl_keep(V v, int left, wl_e<V> x) {
  if constexpr (wl_n<V> == 1) {
    return left > 0 ? v : x;
  } else {
    WL_UNROLL for (int i = 0; i < wl_n<V>; ++i) v.e[i] = i < left ? v.e[i] : x;
    return v;
  }
}
template <class I>
WL_FN long wl_lane(I index, int) {
  return (long)index;
}
template <class T, int N>
WL_FN long wl_lane(wl_vec<T, N> index, int l) {
  return (long)index.e[l];
}
template <class T, int N>
WL_FN T wl_part(wl_vec<T, N> v, int i) {
  return v.e[i];
}
template <class T, int Kind>  // of integers: 2 max, 3 min
constexpr T wl_neutral() {
  if constexpr (wl_same<T, i32>) return Kind == 2 ? -2147483647 - 1 : 2147483647;
  if constexpr (wl_same<T, i64>) return Kind == 2 ? -9223372036854775807LL - 1 : 9223372036854775807LL;
  return Kind == 2 ? T(0) : T(-1);
}
template <class V>
WL_FN V wl_identity_add() {
  return wl_splat<V>(0);
}
template <class V>
WL_FN V wl_identity_mul() {
  return wl_splat<V>(1);
}
template <class V>
WL_FN V wl_identity_max() {
  if constexpr (wl_same<wl_e<V>, f32>)
    return wl_splat<V>(-__builtin_inff());
  else if constexpr (wl_same<wl_e<V>, f64>)
    return wl_splat<V>(-__builtin_inf());
  else
    return wl_splat<V>(wl_neutral<wl_e<V>, 2>());
}
template <class V>
WL_FN V wl_identity_min() {
  if constexpr (wl_same<wl_e<V>, f32>)
    return wl_splat<V>(__builtin_inff());
  else if constexpr (wl_same<wl_e<V>, f64>)
    return wl_splat<V>(__builtin_inf());
  else
    return wl_splat<V>(wl_neutral<wl_e<V>, 3>());
}

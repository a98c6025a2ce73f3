// The CPU prelude, fourth part: floats of 16 and 8 bits, which live in memory only.

// f16 and bf16 live in memory only: their bits (wl_load<u16v> and so on) to and from f32, rounded to nearest even.
// WL_TO_BF16, WL_TO_F16 and WL_FROM_F16 are a target's own for one float.
template <class V>
WL_FN V wl_from_bf16(wl_v<u16, wl_n<V>> h) {
  return __builtin_bit_cast(V, wl_cast<wl_i<V>>(h) << 16);
}
template <class V>
WL_FN auto wl_to_bf16(V x) {
#ifdef WL_TO_BF16
  if constexpr (wl_same<V, f32>) return (u16)WL_TO_BF16(x);
#endif
  typedef wl_i<V> I;
  I i = __builtin_bit_cast(I, x), nan = (i >> 16) | 64;
  i = (i + 0x7fff + (i >> 16 & 1)) >> 16;
  return wl_cast<wl_v<u16, wl_n<V>>>((x == x ? i : nan) & 0xffff);
}
// Of numbers that are bf16 already.
template <class V>
WL_FN auto wl_exact_bf16(V x) {
  return wl_cast<wl_v<u16, wl_n<V>>>(__builtin_bit_cast(wl_i<V>, x) >> 16 & 0xffff);
}
// By target: vcvtph2ps, which is exact, so that the rounding (4: the current one) does not matter.
#ifdef __F16C__
WL_FN wl_v<f32, 8> wl_widen(wl_v<u16, 8> h) {
  return __builtin_ia32_vcvtph2ps256((wl_v<i16, 8>)h);
}
#ifdef WL_AVX512
WL_FN wl_v<f32, 16> wl_widen(wl_v<u16, 16> h) {
  return __builtin_ia32_vcvtph2ps512_mask((wl_v<i16, 16>)h, wl_v<f32, 16>{}, -1, 4);
}
#endif
template <class V>
constexpr bool wl_widens = wl_n<V> >= 8 && sizeof(V) <= WL_NATIVE;
#else
template <class V>
constexpr bool wl_widens = false;
#endif
template <class V>
WL_FN V wl_from_f16(wl_v<u16, wl_n<V>> h) {
#ifdef WL_FROM_F16
  if constexpr (wl_same<V, f32>) return WL_FROM_F16(h);
#endif
  if constexpr (wl_widens<V>) {
    return wl_widen(h);
  } else {
    typedef wl_i<V> I;
    I i = wl_cast<I>(h), e = i & 0x7c00;
    V r = __builtin_bit_cast(V, (i & 0x7fff) << 13) * 5.192296858534828e33f;  // 2^112 rebases exponent and denormals
    r = e == 0x7c00 ? __builtin_bit_cast(V, (i & 0x7fff) << 13 | 0x7f800000) : r;
    return __builtin_bit_cast(V, __builtin_bit_cast(I, r) | (i & 0x8000) << 16);
  }
}
template <class V>
WL_FN auto wl_to_f16(V x) {
#ifdef WL_TO_F16
  if constexpr (wl_same<V, f32>) return (u16)WL_TO_F16(x);
#endif
  typedef wl_i<V> I;
  I i = __builtin_bit_cast(I, x), sign = i >> 16 & 0x8000;
  V a = wl_abs(x);
  I b = __builtin_bit_cast(I, a), normal = (b - 0x38000000 + 0xfff + (b >> 13 & 1)) >> 13;
  I tiny = __builtin_bit_cast(I, a + 0.5f) - 0x3f000000;  // the addition rounds at 2^-24
  I over = a == a ? wl_splat<I>(0x7c00) : wl_splat<I>(0x7e00);
  I r = a < 6.103515625e-05f ? tiny : a < 65520.0f ? normal : over;
  return wl_cast<wl_v<u16, wl_n<V>>>(r | sign);
}

// Floats of eight bits, likewise. M: bits of the mantissa; BIAS: of the exponent. Finite numbers saturate; so does the
// infinity of f8e4m3fn (M = 3), which has none. NaN comes without a sign.
template <class V, int M, int BIAS>
WL_FN V wl_from_f8(wl_v<u8, wl_n<V>> h) {
  typedef wl_i<V> I;
  I i = wl_cast<I>(h), a = i & 0x7f;
  V r = __builtin_bit_cast(V, a << (23 - M)) * __builtin_bit_cast(f32, (254 - BIAS) << 23);
  if constexpr (M == 2) r = a == 0x7c ? __builtin_bit_cast(V, a << 21 | 0x7f800000) : r;
  r = a > (M == 2 ? 0x7c : 0x7e) ? wl_splat<V>(__builtin_nanf("")) : r;
  return __builtin_bit_cast(V, __builtin_bit_cast(I, r) | (i & 0x80) << 24);
}
template <int M, int BIAS, class V>
WL_FN auto wl_to_f8(V x) {
  typedef wl_i<V> I;
  constexpr int S = 23 - M;
  constexpr f32 grid = (f32)(1 << (24 - BIAS - M)), least = __builtin_bit_cast(f32, (128 - BIAS) << 23);
  V a = wl_abs(x);
  I b = __builtin_bit_cast(I, a), sign = __builtin_bit_cast(I, x) >> 24 & 0x80;
  I normal = (b - ((127 - BIAS) << 23) + ((1 << (S - 1)) - 1) + (b >> S & 1)) >> S;
  I tiny =
      __builtin_bit_cast(I, a + grid) - __builtin_bit_cast(i32, grid);  // the addition rounds at the least denormal
  I most = wl_splat<I>(M == 2 ? 0x7b : 0x7e);
  I r = a < least ? tiny : normal < most ? normal : most;
  if constexpr (M == 2) r = a == __builtin_inff() ? wl_splat<I>(0x7c) : r;
  r = a == a ? r | sign : wl_splat<I>(M == 2 ? 0x7e : 0x7f);
  if constexpr (wl_n<V> == 1)
    return (u8)r;
  else
    return __builtin_convertvector(r, wl_v<u8, wl_n<V>>);
}
template <class V>
WL_FN V wl_from_f8e4m3fn(wl_v<u8, wl_n<V>> h) {
  return wl_from_f8<V, 3, 7>(h);
}
template <class V>
WL_FN V wl_from_f8e5m2(wl_v<u8, wl_n<V>> h) {
  return wl_from_f8<V, 2, 15>(h);
}
template <class V>
WL_FN auto wl_to_f8e4m3fn(V x) {
  return wl_to_f8<3, 7>(x);
}
template <class V>
WL_FN auto wl_to_f8e5m2(V x) {
  return wl_to_f8<2, 15>(x);
}

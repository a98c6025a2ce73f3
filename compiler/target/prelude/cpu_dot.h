// The CPU prelude, fifth part: words of 32 bits that hold two bf16 or four integers of eight bits, and sums of the
// products of their elements.

// The words that begin at p[l * stride]; at any element.
template <class V, class T>
WL_FN V wl_words(const T* p) {
  return wl_load<V>((const u32*)p);
}
template <class V, class T>
WL_FN V wl_words_n(const T* p, int left) {
  return wl_load_n<V>((const u32*)p, left, 0u);
}
template <class V, class T>
WL_FN V wl_words_at(const T* p, i64 stride, int left) {
  V words = wl_splat<V>(0);
  WL_UNROLL for (int l = 0; l < wl_n<V>; ++l) if (l < left) words[l] = wl_load<u32>((const u32*)(p + l * stride));
  return words;
}

// The instructions, as each compiler names them.
#if defined(__AVX512BF16__) && WL_LANES == 16
#ifdef __clang__
#if __clang_major__ >= 16
typedef __bf16 wl_bf16x32 __attribute__((vector_size(64)));
#else
typedef short wl_bf16x32 __attribute__((vector_size(64)));
#endif
WL_FN f32v wl_dpbf16(f32v sum, u32v a, u32v b) {
#if __clang_major__ >= 16
  return __builtin_ia32_dpbf16ps_512(sum, (wl_bf16x32)a, (wl_bf16x32)b);
#else
  return __builtin_ia32_dpbf16ps_512(sum, (i32v)a, (i32v)b);
#endif
}
#else
#if __GNUC__ >= 13
typedef __bf16 wl_bf16x32 __attribute__((vector_size(64)));
#else
typedef short wl_bf16x32 __attribute__((vector_size(64)));
#endif
WL_FN f32v wl_dpbf16(f32v sum, u32v a, u32v b) {
  return __builtin_ia32_dpbf16ps_v16sf(sum, (wl_bf16x32)a, (wl_bf16x32)b);
}
#endif
#endif
#if defined(__AVX512VNNI__) && WL_LANES == 16
#ifdef __clang__
WL_FN i32v wl_dpbusd(i32v sum, u32v a, u32v b) {
  return __builtin_ia32_vpdpbusd512(sum, (i32v)a, (i32v)b);
}
#else
WL_FN i32v wl_dpbusd(i32v sum, u32v a, u32v b) {
  return __builtin_ia32_vpdpbusd_v16si(sum, (i32v)a, (i32v)b);
}
#endif
#endif

template <class W, class V>
WL_FN W wl_bf16_bits(V x) {
  return wl_cast<W>(wl_to_bf16(x));
}
template <class W, class V>
WL_FN W wl_join_bf16(V low) {
  return wl_bf16_bits<W>(low);
}
template <class W, class V>
WL_FN W wl_join_bf16(V low, V high) {
  return wl_bf16_bits<W>(low) | wl_bf16_bits<W>(high) << 16;
}

// Integers of eight bits come as i32.
template <class W, class V>
WL_FN W wl_join_u8(V a, V b = V{}, V c = V{}, V d = V{}) {
  return (W)((a & 255) | (b & 255) << 8 | (c & 255) << 16 | (V)((W)d << 24));
}
template <class W, class V>
WL_FN W wl_join_i8(V a, V b = V{}, V c = V{}, V d = V{}) {
  return wl_join_u8<W>(a, b, c, d);
}

// Element I of each of the words, as f32.
template <class V, int I, class W>
WL_FN V wl_part_bf16(W words) {
  return __builtin_bit_cast(V, I == 0 ? words << 16 : words & 0xffff0000u);
}

// sum + a0 b0 + a1 b1. By target: vdpbf16ps takes denormals for zeros and gives none.
template <class V, class W>
WL_FN V wl_dot_bf16_bf16(V sum, W a, W b) {
#if defined(__AVX512BF16__) && WL_LANES == 16
  if constexpr (sizeof(V) == 64)
    return wl_dpbf16(sum, a, b);
  else
#endif
  {
    sum = wl_fma(__builtin_bit_cast(V, a << 16), __builtin_bit_cast(V, b << 16), sum);
    return wl_fma(__builtin_bit_cast(V, a & 0xffff0000u), __builtin_bit_cast(V, b & 0xffff0000u), sum);
  }
}

// sum + the four products of unsigned elements of a and signed ones of b. By target.
template <class V, class W>
WL_FN V wl_dot_u8_i8(V sum, W a, W b) {
#if defined(__AVX512VNNI__) && WL_LANES == 16
  if constexpr (sizeof(V) == 64)
    return wl_dpbusd(sum, a, b);
  else
#endif
  {
    W out = (W)sum;
    WL_UNROLL for (int i = 0; i < 4; ++i) out += (a >> (8 * i) & 255) * (W)((V)(b << (24 - 8 * i)) >> 24);
    return (V)out;
  }
}
template <class V, class W>
WL_FN V wl_dot_i8_u8(V sum, W a, W b) {
  return wl_dot_u8_i8(sum, b, a);
}

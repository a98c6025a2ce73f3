// Memory. Pointers need only the element's alignment, except wl_stream's, which needs the vector's.
template <class V>
struct __attribute__((packed, may_alias)) wl_packed {
  V v;
};
template <class V>
WL_FN V wl_load(const wl_e<V>* p) {
  return ((const wl_packed<V>*)p)->v;
}
template <class V, class T>
WL_FN void wl_store(T* p, V v) {
  ((wl_packed<V>*)p)->v = v;
}
WL_FN unsigned wl_bits(int left, int n) {
  return left >= n ? (1u << n) - 1 : left <= 0 ? 0 : (1u << left) - 1;
}
// Masked moves as the hardware has them, over integers of the element's width. By target.
#if defined(WL_AVX512)
#ifdef __clang__
#define WL_PTR(E, N) wl_v<E, N>
#else
#define WL_PTR(E, N) E
#endif
#define WL_MASKED(E, N, W, M, P)                                                  \
  WL_FN wl_v<E, N> wl_ldm(const E* p, wl_v<E, N> f, int left, int from = 0) {     \
    const M m = (M)(wl_bits(left, N) & ~wl_bits(from, N));                        \
    return __builtin_ia32_loaddqu##W##_mask((const P*)p, (wl_v<E, N>)f, m);       \
  }                                                                               \
  WL_FN void wl_stm(E* p, wl_v<E, N> v, int left) {                               \
    __builtin_ia32_storedqu##W##_mask((P*)p, (wl_v<E, N>)v, (M)wl_bits(left, N)); \
  }
WL_MASKED(i32, 16, si512, u16, i32)
WL_MASKED(i32, 8, si256, b1, WL_PTR(i32, 8))
WL_MASKED(i32, 4, si128, b1, WL_PTR(i32, 4))
WL_MASKED(i64, 8, di512, b1, i64)
WL_MASKED(i64, 4, di256, b1, WL_PTR(i64, 4))
WL_MASKED(short, 16, hi256, u16, WL_PTR(short, 16))
WL_MASKED(short, 8, hi128, b1, WL_PTR(short, 8))
WL_MASKED(char, 16, qi128, u16, WL_PTR(char, 16))
#elif defined(__AVX2__)
#define WL_MASKED(E, N, W)                                                                                            \
  WL_FN wl_v<E, N> wl_ldm(const E* p, wl_v<E, N> f, int left, int from = 0) {                                         \
    const wl_v<E, N> lane = wl_iota<wl_v<E, N>>();                                                                    \
    auto k = (wl_v<E, N>)(lane < wl_splat<wl_v<E, N>>(left)) & (wl_v<E, N>)(lane >= wl_splat<wl_v<E, N>>(from));      \
    return k ? (wl_v<E, N>)__builtin_ia32_maskload##W((const wl_v<E, N>*)p, k) : f;                                   \
  }                                                                                                                   \
  WL_FN void wl_stm(E* p, wl_v<E, N> v, int left) {                                                                   \
    __builtin_ia32_maskstore##W((wl_v<E, N>*)p, (wl_v<E, N>)(wl_iota<wl_v<E, N>>() < wl_splat<wl_v<E, N>>(left)), v); \
  }
WL_MASKED(i32, 8, d256)
WL_MASKED(i32, 4, d)
WL_MASKED(i64, 4, q256)
#endif
template <class V>
constexpr bool wl_masked = WL_NATIVE > 16 && wl_n<V> >= 4 && sizeof(V) <= WL_NATIVE &&
                           (sizeof(wl_e<V>) >= 4 || (WL_NATIVE == 64 && sizeof(V) >= 16));

// Lanes >= left become `fill`, and their memory is not read.
template <class V>
WL_FN V wl_load_n(const wl_e<V>* p, int left, wl_e<V> fill) {
  if constexpr (wl_masked<V>) {
    typedef wl_e<wl_i<V>> E;
    return __builtin_bit_cast(V, wl_ldm((const E*)p, __builtin_bit_cast(wl_i<V>, wl_splat<V>(fill)), left));
  } else if constexpr (sizeof(V) > WL_NATIVE) {
    typedef wl_half<V> H;
    return wl_join<V>(wl_load_n<H>(p, left, fill), wl_load_n<H>(p + wl_n<V> / 2, left - wl_n<V> / 2, fill));
  } else if constexpr (wl_n<V> == 1) {
    return left > 0 ? *p : fill;
  } else {
    V r = wl_splat<V>(fill);
    WL_UNROLL for (int i = 0; i < wl_n<V>; ++i) if (i < left) r[i] = p[i];
    return r;
  }
}
template <class V, class T>
WL_FN void wl_store_n(T* p, V v, int left) {
  if constexpr (wl_masked<V>) {
    wl_stm((wl_e<wl_i<V>>*)p, __builtin_bit_cast(wl_i<V>, v), left);
  } else if constexpr (sizeof(V) > WL_NATIVE) {
    wl_store_n(p, wl_lo(v), left);
    wl_store_n(p + wl_n<V> / 2, wl_hi(v), left - wl_n<V> / 2);
  } else if constexpr (wl_n<V> == 1) {
    if (left > 0) *p = v;
  } else {
    WL_UNROLL for (int i = 0; i < wl_n<V>; ++i) if (i < left) p[i] = v[i];
  }
}
// Non-temporal; p is aligned to the vector. Other cores see the data after wl_fence(). By target.
template <class V, class T>
WL_FN void wl_stream(T* p, V v) {
#ifdef __clang__
  if constexpr (sizeof(V) > WL_NATIVE) {
    wl_stream(p, wl_lo(v));
    wl_stream(p + wl_n<V> / 2, wl_hi(v));
  } else {
    __builtin_nontemporal_store(v, (V*)p);
  }
#elif defined(__SSE2__)
  if constexpr (sizeof(V) > WL_NATIVE) {
    wl_stream(p, wl_lo(v));
    wl_stream(p + wl_n<V> / 2, wl_hi(v));
  }
#if WL_NATIVE >= 64
  else if constexpr (sizeof(V) == 64)
    __builtin_ia32_movntps512((f32*)p, __builtin_bit_cast(wl_v<f32, 16>, v));
#endif
#if WL_NATIVE >= 32
  else if constexpr (sizeof(V) == 32)
    __builtin_ia32_movntps256((f32*)p, __builtin_bit_cast(wl_v<f32, 8>, v));
#endif
  else if constexpr (sizeof(V) == 16)
    __builtin_ia32_movntps((f32*)p, __builtin_bit_cast(wl_v<f32, 4>, v));
  else
    wl_store(p, v);
#else
  wl_store(p, v);
#endif
}
template <class V, class T>
WL_FN void wl_stream_n(T* p, V v, int left) {
  if (left >= wl_n<V>)
    wl_stream(p, v);
  else
    wl_store_n(p, v, left);
}
WL_FN void wl_fence() {
#ifdef __SSE2__
  __builtin_ia32_sfence();
#endif
}
// Whether this is the last of N blocks to come here; what the others stored before is there then.
template <int N>
WL_FN bool wl_last(char* counters, long group) {
  u32* const counter = (u32*)counters + group;
  if (__atomic_add_fetch(counter, 1u, __ATOMIC_ACQ_REL) != N) return false;
  __atomic_store_n(counter, 0u, __ATOMIC_RELAXED);
  return true;
}
template <int level, class T>
WL_FN void wl_prefetch(const T* p) {
  __builtin_prefetch(p, 0, 4 - level);
}
template <class V>
WL_FN V wl_keep(V v, int left, wl_e<V> x) {
  if constexpr (wl_n<V> == 1)
    return left > 0 ? v : x;
  else
    return wl_iota<wl_i<V>>() < wl_splat<wl_i<V>>((wl_e<wl_i<V>>)(left > 127 ? 127 : left)) ? v : wl_splat<V>(x);
}
// Every second element of 2n - 1 in a row, of which a holds the first n and b the last.
template <class V>
WL_FN V wl_second(V a, V b) {
  if constexpr (wl_n<V> == 16)
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
  else if constexpr (wl_n<V> == 8)
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 9, 11, 13, 15);
  else
    return __builtin_shufflevector(a, b, 0, 2, 5, 7);
}
// Two loads and a shuffle beat single loads where there are masked ones.
template <class V>
constexpr bool wl_seconds = wl_masked<V> && sizeof(wl_e<V>) == 4;

// Strided (in elements) and indexed moves as a tree of single loads: on Zen 5 twice as fast as vgatherdps.
template <class V>
WL_FN V wl_gather_n(const wl_e<V>* p, i64 stride, int left, wl_e<V> fill) {
  if constexpr (wl_seconds<V>)
    if (stride == 2)
      return wl_keep(
          wl_second(wl_load_n<V>(p, 2 * left - 1, fill), wl_load_n<V>(p + wl_n<V> - 1, 2 * left - wl_n<V>, fill)), left,
          fill);
  if constexpr (wl_n<V> == 1) {
    return left > 0 ? *p : fill;
  } else {
    V r = wl_splat<V>(fill);
    WL_UNROLL for (int i = 0; i < wl_n<V>; ++i) if (i < left) r[i] = p[i * stride];
    return r;
  }
}
template <class V>
WL_FN V wl_gather(const wl_e<V>* p, i64 stride) {
  if constexpr (wl_seconds<V>)
    if (stride == 2) return wl_second(wl_load<V>(p), wl_load<V>(p + wl_n<V> - 1));
  if constexpr (wl_n<V> == 1)
    return *p;
  else if constexpr (wl_n<V> == 4)
    return V{p[0], p[stride], p[2 * stride], p[3 * stride]};
  else
    return wl_join<V>(wl_gather<wl_half<V>>(p, stride), wl_gather<wl_half<V>>(p + wl_n<V> / 2 * stride, stride));
}
template <class V, class I>
WL_FN V wl_gather_at(const wl_e<V>* p, I index) {
  if constexpr (wl_n<V> == 1)
    return p[index];
  else if constexpr (wl_n<V> == 4)
    return V{p[index[0]], p[index[1]], p[index[2]], p[index[3]]};
  else
    return wl_join<V>(wl_gather_at<wl_half<V>>(p, wl_lo(index)), wl_gather_at<wl_half<V>>(p, wl_hi(index)));
}
template <class V, class T>
WL_FN void wl_scatter_n(T* p, i64 stride, V v, int left) {
  if constexpr (wl_n<V> == 1) {
    if (left > 0) *p = v;
  } else {
    WL_UNROLL for (int i = 0; i < wl_n<V>; ++i) if (i < left) p[i * stride] = v[i];
  }
}
template <class V, class T>
WL_FN void wl_scatter(T* p, i64 stride, V v) {
  wl_scatter_n(p, stride, v, wl_n<V>);
}

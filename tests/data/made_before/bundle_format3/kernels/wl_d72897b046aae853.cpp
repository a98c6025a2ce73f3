#define WL_LANES 4
// The CPU prelude: every function a generated kernel may call, as text without a single include. A tile element is a
// scalar or a vector of WL_LANES elements, and each function takes either (or one of each). The invariant: lanes are
// independent, NaN and infinity propagate, denormals are kept, no lane past `left` is touched in memory. A new function
// is one template over V; the instruction set is asked for only inside the primitives marked "by target".
#ifndef WL_LANES
#define WL_LANES 16
#endif
#define WL_FN static inline __attribute__((always_inline, unused))
#ifdef __clang__
#define WL_SPLIT 0
#define WL_UNROLL _Pragma("clang loop unroll(full)")
#define WL_SERIAL _Pragma("clang loop unroll(disable)")
#else
#define WL_SPLIT 1  // g++ 12 takes operations on more than one register lane by lane
#define WL_UNROLL _Pragma("GCC unroll 64")
#define WL_SERIAL _Pragma("GCC unroll 1")
#endif
#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__) && defined(__AVX512DQ__)
#define WL_AVX512 1
#define WL_NATIVE 64
#elif defined(__AVX2__)
#define WL_NATIVE 32
#else
#define WL_NATIVE 16
#endif

typedef float f32;
typedef double f64;
typedef int i32;
typedef long long i64;
typedef unsigned char b1;
typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef unsigned u32;
typedef unsigned long long u64;
template <class T, int N>
struct wl_vec {
  typedef T t __attribute__((vector_size(sizeof(T) * N)));
};
template <class T>
struct wl_vec<T, 1> {
  typedef T t;
};
template <class T, int N>
using wl_v = typename wl_vec<T, N>::t;
typedef wl_v<f32, WL_LANES> f32v;
typedef wl_v<f64, WL_LANES> f64v;
typedef wl_v<i32, WL_LANES> i32v;
typedef wl_v<i64, WL_LANES> i64v;
typedef wl_v<b1, WL_LANES> u8v;  // booleans in memory: 0 or 1
typedef wl_v<i8, WL_LANES> i8v;
typedef wl_v<i16, WL_LANES> i16v;
typedef wl_v<u16, WL_LANES> u16v;
typedef wl_v<u32, WL_LANES> u32v;
typedef wl_v<u64, WL_LANES> u64v;

// Traits: the element, the number of lanes, the integer of the same width, the common type of two operands.
template <class T>
struct wl_bare {
  typedef T t;
};
template <class T>
struct wl_bare<T&> {
  typedef T t;
};
template <class V>
auto wl_elem(V* v, int) -> typename wl_bare<decltype((*v)[0])>::t;
template <class V>
V wl_elem(V* v, long);
template <class V>
using wl_e = decltype(wl_elem<V>(nullptr, 0));
template <class V>
constexpr int wl_n = sizeof(V) / sizeof(wl_e<V>);
template <int S>
struct wl_int {
  typedef i32 t;
};
template <>
struct wl_int<8> {
  typedef i64 t;
};
template <>
struct wl_int<2> {
  typedef short t;
};
template <>
struct wl_int<1> {
  typedef char t;
};
template <class V>
using wl_i = wl_v<typename wl_int<sizeof(wl_e<V>)>::t, wl_n<V>>;
template <class A, class B>
constexpr bool wl_same = false;
template <class A>
constexpr bool wl_same<A, A> = true;
template <class V>
constexpr bool wl_float = wl_same<wl_e<V>, f32> || wl_same<wl_e<V>, f64>;
template <class V>
constexpr bool wl_is64 = wl_same<wl_e<V>, f64>;
template <class V>
constexpr bool wl_bool = wl_same<wl_e<V>, b1> || wl_same<V, bool>;
// What a vector comparison gives: all ones or all zeros in lanes as wide as the operands'. Scalars give bool.
template <class I>
struct wl_mask {
  I v;
};
template <class M>
constexpr bool wl_is_mask = false;
template <class I>
constexpr bool wl_is_mask<wl_mask<I>> = true;
template <class A, class B>
auto wl_pick() {
  if constexpr (wl_n < A >> 1 || wl_same<A, B>)
    return (wl_bare<A>*)nullptr;
  else if constexpr (wl_n<B> > 1)
    return (wl_bare<B>*)nullptr;
  else
    return (wl_bare<decltype(A() + B())>*)nullptr;
}
template <class T>
struct wl_at;
template <class T>
struct wl_at<T*> {
  typedef typename T::t t;
};
template <class A, class B>
using wl_r = typename wl_at<decltype(wl_pick<A, B>())>::t;

template <class V>
WL_FN V wl_splat(wl_e<V> s) {
  constexpr int n = wl_n<V>;
  if constexpr (n == 16)
    return V{s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s};
  else if constexpr (n == 8)
    return V{s, s, s, s, s, s, s, s};
  else if constexpr (n == 4)
    return V{s, s, s, s};
  else if constexpr (n == 2)
    return V{s, s};
  else
    return s;
}
template <class V>
WL_FN V wl_iota() {
  constexpr int n = wl_n<V>;
  if constexpr (n == 16)
    return V{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  else if constexpr (n == 8)
    return V{0, 1, 2, 3, 4, 5, 6, 7};
  else if constexpr (n == 4)
    return V{0, 1, 2, 3};
  else if constexpr (n == 2)
    return V{0, 1};
  else
    return 0;
}
template <class V, class X>
WL_FN V wl_up(X x) {
  if constexpr (wl_same<V, X>)
    return x;
  else
    return wl_splat<V>((wl_e<V>)x);
}
template <class V>
using wl_half = wl_v<wl_e<V>, wl_n<V> / 2>;
template <class V>
WL_FN wl_half<V> wl_lo(V a) {
  if constexpr (wl_n<V> == 16)
    return __builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7);
  else if constexpr (wl_n<V> == 8)
    return __builtin_shufflevector(a, a, 0, 1, 2, 3);
  else if constexpr (wl_n<V> == 4)
    return __builtin_shufflevector(a, a, 0, 1);
  else
    return a[0];
}
template <class V>
WL_FN wl_half<V> wl_hi(V a) {
  if constexpr (wl_n<V> == 16)
    return __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15);
  else if constexpr (wl_n<V> == 8)
    return __builtin_shufflevector(a, a, 4, 5, 6, 7);
  else if constexpr (wl_n<V> == 4)
    return __builtin_shufflevector(a, a, 2, 3);
  else
    return a[1];
}
template <class V>
WL_FN V wl_join(wl_half<V> a, wl_half<V> b) {
  if constexpr (wl_n<V> == 16)
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  else if constexpr (wl_n<V> == 8)
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
  else if constexpr (wl_n<V> == 4)
    return __builtin_shufflevector(a, b, 0, 1, 2, 3);
  else
    return V{a, b};
}
template <class V, class F>
WL_FN V wl_each(V x, F f) {
  if constexpr (wl_n<V> == 1) {
    return f(x);
  } else {
    for (int i = 0; i < wl_n<V>; ++i) x[i] = f(x[i]);
    return x;
  }
}

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
// The condition as all-ones lanes of type I.
template <class I, class M>
WL_FN I wl_lanes(M m) {
  if constexpr (wl_is_mask<M>) {
    if constexpr (sizeof(m.v) == sizeof(I))
      return m.v;
    else
      return __builtin_convertvector(m.v, I);
  } else if constexpr (wl_n<M> == 1) {
    return wl_splat<I>(m ? -1 : 0);
  } else {
    return (I)(__builtin_convertvector(m, I) != 0);
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
    return __builtin_convertvector(wl_lanes<wl_i<V>>(x) & 1, V);
  } else if constexpr (wl_n<X> == 1) {
    if constexpr (wl_bool<V>)
      return wl_splat<V>(x != 0);
    else
      return wl_splat<V>((wl_e<V>)x);
  } else if constexpr (WL_SPLIT && wl_n<V> > 4 && (sizeof(V) > WL_NATIVE || sizeof(X) > WL_NATIVE)) {
    return wl_join<V>(wl_cast<wl_half<V>>(wl_lo(x)), wl_cast<wl_half<V>>(wl_hi(x)));
  } else if constexpr (wl_bool<V>) {
    return __builtin_convertvector(x != 0, V) & 1;
  } else {
    return __builtin_convertvector(x, V);
  }
}

// Arithmetic. Operands may be a scalar and a vector; integers wrap as the compiler lets them.
#define WL_BINARY(name, op)                 \
  template <class A, class B>               \
  WL_FN auto name(A a, B b) {               \
    typedef wl_r<A, B> V;                   \
    return (V)(wl_up<V>(a) op wl_up<V>(b)); \
  }
WL_BINARY(wl_add, +)
WL_BINARY(wl_sub, -)
WL_BINARY(wl_mul, *)
// Integer division truncates; by zero it gives 0 rather than a trap.
template <class A, class B>
WL_FN auto wl_div(A a0, B b0) {
  typedef wl_r<A, B> V;
  V a = wl_up<V>(a0), b = wl_up<V>(b0);
  if constexpr (wl_float<V>) {
    return a / b;
  } else {
    V one = wl_splat<V>(1), zero = wl_splat<V>(0);
    V safe = b == 0 ? one : b == -1 ? one : b;
    return b == 0 ? zero : b == -1 ? zero - a : a / safe;
  }
}
template <class V>
WL_FN V wl_neg(V a) {
  return -a;
}
template <class V>
WL_FN V wl_abs(V a) {
  if constexpr (wl_float<V>) {
    wl_i<V> i = __builtin_bit_cast(wl_i<V>, a);
    return __builtin_bit_cast(V, i & ~((wl_e<wl_i<V>>)1 << (8 * sizeof(wl_e<V>) - 1)));
  } else {
    return a < 0 ? -a : a;
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
// NaN if either operand is NaN.
template <class A, class B>
WL_FN auto wl_max(A a0, B b0) {
  typedef wl_r<A, B> V;
  V a = wl_up<V>(a0), b = wl_up<V>(b0);
  if constexpr (!wl_float<V>) return (V)(a > b ? a : b);
#if defined(WL_AVX512) && !defined(__clang__)
  else if constexpr (wl_same<V, wl_v<f32, 16>>)
    return __builtin_ia32_maxps512_mask(a, b, a, __builtin_ia32_cmpps512_mask(a, a, 7, -1, 4), 4);
#endif
  else
    return (V)(a != a ? a : wl_maxx(a, b));
}
template <class A, class B>
WL_FN auto wl_min(A a0, B b0) {
  typedef wl_r<A, B> V;
  V a = wl_up<V>(a0), b = wl_up<V>(b0);
  if constexpr (!wl_float<V>) return (V)(a < b ? a : b);
#if defined(WL_AVX512) && !defined(__clang__)
  else if constexpr (wl_same<V, wl_v<f32, 16>>)
    return __builtin_ia32_minps512_mask(a, b, a, __builtin_ia32_cmpps512_mask(a, a, 7, -1, 4), 4);
#endif
  else
    return (V)(a != a ? a : wl_minx(a, b));
}
template <class V>
WL_FN V wl_relu(V a) {
  return wl_max(a, wl_splat<V>(0));
}
// Fused where the hardware fuses (-ffp-contract=fast).
template <class A, class B, class C>
WL_FN auto wl_fma(A a, B b, C c) {
  typedef wl_r<wl_r<A, B>, C> V;
  return (V)(wl_up<V>(a) * wl_up<V>(b) + wl_up<V>(c));
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
    return (V)(a - wl_div(a, b) * b);
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
// What every target says alike, in terms of its own operations: rounding, reciprocals, conditions, index arithmetic,
// guards.
template <class V>
WL_FN V wl_round(V x) {
  return wl_round_to<0>(x);
}
template <class V>
WL_FN V wl_floor(V x) {
  return wl_round_to<1>(x);
}
template <class V>
WL_FN V wl_ceil(V x) {
  return wl_round_to<2>(x);
}
template <class V>
WL_FN V wl_trunc(V x) {
  return wl_round_to<3>(x);
}
template <class V>
WL_FN V wl_rcp(V x) {
  return 1 / x;
}
template <class V>
WL_FN V wl_rsqrt(V x) {
  return 1 / wl_sqrt(x);
}

// Ops on conditions.
template <class A, class B>
WL_FN auto wl_logical_and(A a, B b) {
  return wl_and(a, b);
}
template <class A, class B>
WL_FN auto wl_logical_or(A a, B b) {
  return wl_or(a, b);
}
template <class A, class B>
WL_FN auto wl_logical_xor(A a, B b) {
  return wl_xor(a, b);
}
template <class A>
WL_FN auto wl_logical_not(A a) {
  return wl_not(a);
}

WL_FN long wl_lmin(long a, long b) {
  return a < b ? a : b;
}
WL_FN long wl_lmax(long a, long b) {
  return a > b ? a : b;
}
// a / b rounded up; b > 0.
WL_FN long wl_divide_up(long a, long b) {
  return a > 0 ? (a + b - 1) / b : -(-a / b);
}
// A guard, 0 <= at + lane * step < extent: for a scalar, and the range of lanes for which it holds.
WL_FN bool wl_within(long at, long extent) {
  return (u64)at < (u64)extent;
}
WL_FN long wl_first_lane(long at, long step, long extent) {
  return step > 0 ? wl_divide_up(-at, step) : wl_divide_up(at - extent + 1, -step);
}
WL_FN long wl_end_lane(long at, long step, long extent) {
  return step > 0 ? wl_divide_up(extent - at, step) : wl_divide_up(at + 1, -step);
}
// Elements left of a vector, as an int that cannot overflow.
WL_FN int wl_left(long n) {
  return n < 0 ? 0 : n > WL_LANES ? WL_LANES : (int)n;
}
// A gathered index; negative ones count from the end.
WL_FN long wl_wrap(long index, long extent) {
  return index < 0 ? index + extent : index;
}
// The CPU prelude, third part: elementary functions. f32 in any width without libm; f64 lane by lane with it. Errors:
// ACCURACY.md. Polynomials are minimax fits of fit.py; "c, b, a" in comments are the usual range reductions.

#define WL_POLY2(x, a, b) ((a) * (x) + (b))
#define WL_POLY3(x, a, b, c) (WL_POLY2(x, a, b) * (x) + (c))
#define WL_POLY4(x, a, b, c, d) (WL_POLY3(x, a, b, c) * (x) + (d))
#define WL_POLY5(x, a, b, c, d, e) (WL_POLY4(x, a, b, c, d) * (x) + (e))
#define WL_POLY6(x, a, b, c, d, e, f) (WL_POLY5(x, a, b, c, d, e) * (x) + (f))
#define WL_POLY7(x, a, b, c, d, e, f, g) (WL_POLY6(x, a, b, c, d, e, f) * (x) + (g))
#define WL_POLY8(x, a, b, c, d, e, f, g, h) (WL_POLY7(x, a, b, c, d, e, f, g) * (x) + (h))
#define WL_F64(f)                                       \
  if constexpr (wl_is64<V>)                             \
    return wl_each(x, [](f64 v) { return (f64)f(v); }); \
  else

// p * 2^n for integral n in [-151, 129], rounded once where the result is denormal. By target.
template <class V>
WL_FN V wl_scale(V p, V n) {
#ifdef WL_AVX512
  if constexpr (wl_same<V, wl_v<f32, 16>>)
    return __builtin_ia32_scalefps512_mask(p, n, p, -1, 4);
  else if constexpr (wl_same<V, wl_v<f32, 8>>)
    return __builtin_ia32_scalefps256_mask(p, n, p, -1);
  else if constexpr (wl_same<V, wl_v<f32, 4>>)
    return __builtin_ia32_scalefps128_mask(p, n, p, -1);
  else
#endif
  {
    typedef wl_i<V> I;
    I i = wl_cast<I>(n), h = i >> 1;
    return p * __builtin_bit_cast(V, (h + 127) << 23) * __builtin_bit_cast(V, (i - h + 127) << 23);
  }
}
// r = x - n ln 2 with n = round(x / ln 2): the first part of ln 2 has trailing zeros, so n times it is exact.
template <class V>
WL_FN V wl_exp_reduce(V x, V& n) {
  n = wl_round(x * 1.44269504f);
  return (x - n * 0.693359375f) + n * 2.12194440e-4f;
}
template <class V>
WL_FN V wl_exp_poly(V r) {
  return WL_POLY7(r, 0.00138201378f, 0.00836868584f, 0.0416682735f, 0.166665211f, 0.49999994f, 1.0f, 1.0f);
}
#if defined(WL_AVX512) && WL_LANES == 16
// table[i mod 16].
WL_FN f32v wl_permute(i32v i, const f32* table) {
#ifdef __clang__
  return __builtin_ia32_permvarsf512(*(const f32v*)table, i);
#else
  f32v t = *(const f32v*)table;
  return __builtin_ia32_permvarsf512_mask(t, i, t, -1);
#endif
}
alignas(64) static const f32 wl_exp_table[16] = {
    1,           1.04427373f, 1.09050775f, 1.13878858f, 1.18920708f, 1.24185777f, 1.29683959f, 1.35425556f,
    1.41421354f, 1.47682619f, 1.54221082f, 1.61049032f, 1.68179286f, 1.75625217f, 1.8340081f,  1.91520655f};
#endif
// Of sixteen lanes n is in sixteenths, whose powers one permute looks up (the sum's last bits count them), so that half
// of the polynomial is enough; wl_scale drops its fraction.
template <class V>
WL_FN V wl_exp(V x) {
  WL_F64(__builtin_exp) {
    x = wl_maxx(wl_splat<V>(-104.0f), wl_minx(wl_splat<V>(89.0f), x));
#if defined(WL_AVX512) && WL_LANES == 16
    if constexpr (wl_same<V, f32v>) {
      V t = x * 1.44269504f + 786432.0f, n = t - 786432.0f,
        power = wl_permute(__builtin_bit_cast(i32v, t), wl_exp_table);
      V r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
      return wl_scale(power * (WL_POLY3(r, 0.166668355f, 0.500016212f, 1.0f) * r) + power, n);
    }
#endif
    V n, r = wl_exp_reduce(x, n);
    return wl_scale(wl_exp_poly(r), n);
  }
}
template <class V>
WL_FN V wl_exp2(V x) {
  WL_F64(__builtin_exp2) {
    x = wl_maxx(wl_splat<V>(-151.0f), wl_minx(wl_splat<V>(129.0f), x));
    V n = wl_round(x), f = x - n;
    return wl_scale(
        WL_POLY7(f, 0.00015329264f, 0.00133909693f, 0.00961849932f, 0.0555035956f, 0.240226477f, 0.693147182f, 1.0f),
        n);
  }
}
template <class V>
WL_FN V wl_expm1(V x) {
  WL_F64(__builtin_expm1) {
    V n, r = wl_exp_reduce(wl_maxx(wl_splat<V>(-20.0f), wl_minx(wl_splat<V>(89.0f), x)), n);
    V p = r * r * WL_POLY5(r, 0.00138706958f, 0.00836627185f, 0.0416674353f, 0.166665465f, 0.49999997f) + r;
    V half = wl_scale(wl_splat<V>(0.5f), n);
    return x == 0 ? x : (half * p + (half - 0.5f)) * 2;
  }
}

// m in [0.75, 1.5) and e with a = m 2^e, for positive a, denormals too; in AVX-512 zero gives e = -inf, and so on.
template <class V>
WL_FN V wl_log_reduce(V x, V& e) {
#ifdef WL_AVX512
  if constexpr (wl_same<V, wl_v<f32, 16>>) {
    V m = __builtin_ia32_getmantps512_mask(x, 11, x, -1, 4);
    e = __builtin_ia32_getexpps512_mask(x, x, -1, 4) - __builtin_ia32_getexpps512_mask(m, m, -1, 4);
    return m;
  } else if constexpr (wl_same<V, wl_v<f32, 8>>) {
    V m = __builtin_ia32_getmantps256_mask(x, 11, x, -1);
    e = __builtin_ia32_getexpps256_mask(x, x, -1) - __builtin_ia32_getexpps256_mask(m, m, -1);
    return m;
  } else if constexpr (wl_same<V, wl_v<f32, 4>>) {
    V m = __builtin_ia32_getmantps128_mask(x, 11, x, -1);
    e = __builtin_ia32_getexpps128_mask(x, x, -1) - __builtin_ia32_getexpps128_mask(m, m, -1);
    return m;
  } else
#endif
  {
    typedef wl_i<V> I;
    V small = wl_splat<V>(1.17549435e-38f), big = x * 8388608.0f;
    I i = __builtin_bit_cast(I, x < small ? big : x) - 0x3f400000;
    e = wl_cast<V>(i >> 23) - (x < small ? wl_splat<V>(23) : wl_splat<V>(0));
    return __builtin_bit_cast(V, (i & 0x7fffff) + 0x3f400000);
  }
}
// The results for zero, infinity, NaN and negative arguments, where the reduction has not given them.
template <class V>
WL_FN V wl_log_special(V x, V r) {
#ifdef WL_AVX512
  if constexpr (wl_n < V >> 1) return r;
#endif
  r = x < wl_splat<V>(__builtin_inff()) ? r : x;
  r = x > 0 ? r : x + wl_splat<V>(__builtin_nanf(""));
  return x == 0 ? wl_splat<V>(-__builtin_inff()) : r;
}
template <class V>
WL_FN V wl_log_poly(V f) {
  return f * f *
             WL_POLY8(f, 0.054173097f, -0.120700188f, 0.149830461f, -0.168220878f, 0.199771047f, -0.249934942f,
                      0.333335489f, -0.500000596f) +
         f;
}
template <class V>
WL_FN V wl_log(V x) {
  WL_F64(__builtin_log) {
    V e, f = wl_log_reduce(x, e) - 1;
    return wl_log_special(x, e * 0.693147182f + wl_log_poly(f));
  }
}
template <class V>
WL_FN V wl_log2(V x) {
  WL_F64(__builtin_log2) {
    V e, f = wl_log_reduce(x, e) - 1;
    V p = WL_POLY8(f, 0.0786767229f, -0.174734876f, 0.216282278f, -0.242614269f, 0.288182706f, -0.360582888f,
                   0.480902791f, -0.721348345f);
    return wl_log_special(x, f * (p * f + 1.44269502f) + e);
  }
}
// log(u) for u = fl(1 + x), the rounding error scaled into the mantissa: exactly x where the exponent is 0.
template <class V>
WL_FN V wl_log1p(V x) {
  WL_F64(__builtin_log1p) {
    V u = 1 + x, e, m = wl_log_reduce(u, e);
    V c = x - (u - 1), huge = wl_splat<V>(16777216.0f), zero = wl_splat<V>(0);
    c = x < huge ? wl_scale(c, wl_maxx(wl_splat<V>(-150.0f), -e)) : zero;
    V r = wl_log_special(u, e * 0.693147182f + wl_log_poly((m - 1) + (u > 0 ? c : zero)));
    return x == 0 ? x : r;
  }
}

template <class V>
WL_FN V wl_sigmoid(V x) {
  WL_F64([](f64 b) { return 1 / (1 + __builtin_exp(-b)); }) {
    V n, r = wl_exp_reduce(wl_maxx(wl_splat<V>(-104.0f), -wl_abs(x)), n), one = wl_splat<V>(1);
    V e = wl_scale(wl_exp_poly(r), n);
    return (x < 0 ? e : one) / (1 + e);
  }
}
#if defined(WL_AVX512) && WL_LANES == 16
// Piecewise polynomials: one permute per coefficient looks up sixteen intervals.
alignas(64) static const f32 wl_erf_table[6][16] = {
    {0, 0.28046301f, 0.527338445f, 0.718623817f, 0.849086046f, 0.927408159f, 0.968796372f, 0.988047481f, 0.995929182f,
     0.998769462f, 0.999670327f, 0.999921799f, 0.999983609f, 0.99999696f, 0.999999523f, 0.99999994f},
    {1.12837923f, 1.05792975f, 0.871890545f, 0.631641567f, 0.402237773f, 0.225163758f, 0.110794343f, 0.047922574f,
     0.0182207488f, 0.00608969759f, 0.00178907579f, 0.000462024705f, 0.000104883009f, 2.09290029e-05f, 3.67109351e-06f,
     5.66038295e-07f},
    {-1.44669411e-05f, -0.268610924f, -0.44273448f, -0.48113367f, -0.408529043f, -0.285860896f, -0.168800324f,
     -0.0851659402f, -0.037010517f, -0.0139294248f, -0.00455245003f, -0.00128900458f, -0.000325967674f,
     -6.97809664e-05f, -2.34248491e-05f, -8.22819038e-06f},
    {-0.375567585f, -0.30719769f, -0.140706405f, 0.0337690115f, 0.142520308f, 0.166875258f, 0.134493679f, 0.084950693f,
     0.0440456048f, 0.0191701278f, 0.00709279254f, 0.00224865112f, 0.000614109915f, 0.000145021797f, 2.96950602e-05f,
     5.28346709e-06f},
    {-0.00689326599f, 0.127648264f, 0.181143194f, 0.14713268f, 0.0642852336f, -0.0097755203f, -0.0451448187f,
     -0.0475250334f, -0.032423228f, -0.0164816678f, -0.00692516705f, -0.00282090553f, -0.000445085607f,
     -0.000176708767f, 0.000589098781f, 0.00036412006f},
    {0.139086202f, 0.0800488293f, 0.00318872579f, -0.0542479977f, -0.0681693926f, -0.0444699712f, -0.0122573478f,
     0.00781787839f, 0.0130417868f, 0.0100240605f, 0.00549559016f, 0.00236744899f, 0.000834659906f, 0.000245519594f,
     6.10457791e-05f, 1.29363607e-05f}};
alignas(64) static const f32 wl_tanh_table[7][16] = {
    {0.999966621f, 0.99999547f, 0.999999404f, 0.99999994f, 0, 0.3583574f, 0.554599702f, 0.703905582f, 0.848283768f,
     0.941375554f, 0.978026092f, 0.991859734f, 0.996997654f, 0.998894453f, 0.999593139f, 0.999850333f},
    {6.68045686e-05f, 9.04127683e-06f, 1.22360848e-06f, 1.65599943e-07f, 1, 0.871580064f, 0.692419112f, 0.5045169f,
     0.280414909f, 0.113812f, 0.0434649177f, 0.0162142869f, 0.00599571504f, 0.00220989226f, 0.0008135424f,
     0.000299362524f},
    {-6.74711555e-05f, -8.73396493e-06f, -1.72060982e-06f, -8.83457915e-07f, 9.53559902e-06f, -0.312330365f,
     -0.384002656f, -0.355123073f, -0.237904355f, -0.107144408f, -0.0425057039f, -0.016082244f, -0.00597961294f,
     -0.00220856233f, -0.000812212005f, -0.000302480912f},
    {4.4503151e-05f, 6.02373575e-06f, 8.15227054e-07f, 1.74778393e-07f, -0.333675116f, -0.178627178f, -0.0178193431f,
     0.0818110928f, 0.108324863f, 0.0629310533f, 0.0270877238f, 0.0105463266f, 0.00396104017f, 0.00146832224f,
     0.000541679678f, 0.000199476111f},
    {-2.03627733e-05f, -4.33460218e-06f, 1.55008865e-06f, 2.88680758e-06f, 0.00363852642f, 0.166637078f, 0.136708885f,
     0.0604139343f, -0.0111781619f, -0.0233286358f, -0.0124331694f, -0.00513495784f, -0.00194186496f, -0.000719213742f,
     -0.000288501207f, -5.03141564e-05f},
    {9.23212519e-06f, 1.24851022e-06f, 1.69163116e-07f, -4.24457944e-08f, 0.120368123f, 0.0204438828f, -0.0554058254f,
     -0.0589908659f, -0.0197270922f, 0.00344599737f, 0.00397692947f, 0.00191459304f, 0.000769997481f, 0.000292316807f,
     0.000108739252f, 4.020091e-05f},
    {5.5f, 6.5f, 7.5f, 8.5f, 0, 0.375f, 0.625f, 0.875f, 1.25f, 1.75f, 2.25f, 2.75f, 3.25f, 3.75f, 4.25f, 4.75f}};
WL_FN f32v wl_piece(f32v r, i32v i, const f32 (*t)[16]) {
  f32v p = wl_permute(i, t[5]) * r + wl_permute(i, t[4]);
  p = p * r + wl_permute(i, t[3]);
  p = p * r + wl_permute(i, t[2]);
  p = p * r + wl_permute(i, t[1]);
  return p * r + wl_permute(i, t[0]);
}
WL_FN f32v wl_with_sign(f32v r, f32v x) {
  return __builtin_bit_cast(f32v, __builtin_bit_cast(i32v, r) | (__builtin_bit_cast(i32v, x) & (i32)0x80000000));
}
#endif
// Sixteen intervals 65/256 apart (their number is round(|x| 256/65)), else x p(x^2) below 1 and 1 - exp(g(|x|)) above.
template <class V>
WL_FN V wl_erf(V x) {
#if defined(WL_AVX512) && WL_LANES == 16
  if constexpr (wl_same<V, f32v>) {
    V a = wl_minx(wl_splat<V>(3.9257812f), wl_abs(x)), t = a * 3.93846154f + 12582912.0f;
    return wl_with_sign(wl_piece(a - (t - 12582912.0f) * 0.25390625f, __builtin_bit_cast(i32v, t), wl_erf_table), x);
  } else
#endif
    WL_F64(__builtin_erf) {
      V a = wl_minx(wl_splat<V>(4.0f), wl_abs(x)), s = a * a, n;
      V small =
          WL_POLY6(s, -0.000563193928f, 0.00491765095f, -0.0267113522f, 0.112801783f, -0.37612325f, 0.128379121f) * x +
          x;
      V g = wl_exp_reduce(WL_POLY7(a, 0.000187968471f, -0.00296397856f, 0.0219063871f, -0.103256069f, -0.637965083f,
                                   -1.12720227f, -0.000312458607f),
                          n);
      V big = wl_copysign(1 - wl_scale(wl_exp_poly(g), n), x);
      return a < 1 ? small : big;
    }
}
// Sixteen intervals of an eighth of an octave of |x| + 3; else x p(x^2) below 0.625 and 1 - 2 / (exp(2|x|) + 1).
template <class V>
WL_FN V wl_tanh(V x) {
#if defined(WL_AVX512) && WL_LANES == 16
  if constexpr (wl_same<V, f32v>) {
    V a = wl_minx(wl_splat<V>(8.9999990f), wl_abs(x));
    i32v i = __builtin_bit_cast(i32v, a + 3.0f) >> 20;
    return wl_with_sign(wl_piece(a - wl_permute(i, wl_tanh_table[6]), i, wl_tanh_table), x);
  } else
#endif
    WL_F64(__builtin_tanh) {
      V a = wl_minx(wl_splat<V>(10.0f), wl_abs(x)), s = a * a, n;
      V small = WL_POLY5(s, -0.00569631765f, 0.0206308961f, -0.053737063f, 0.133314088f, -0.333332807f) * (s * x) + x;
      V r = wl_exp_reduce(a + a, n);
      V big = wl_copysign(1 - 2 / (wl_scale(wl_exp_poly(r), n) + 1), x);
      return x == 0 ? x : a < 0.625f ? small : big;
    }
}

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
    y = ((y < 0) & ((x == 1) | (x == -1))) ? -y : y;  // these are their own reciprocals
    V zero = wl_splat<V>(0), r = y < 0 ? zero : wl_splat<V>(1);
    for (; wl_hmax(y) > 0; y = y >> 1, x = x * x) r = (y & 1) != 0 ? r * x : r;
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
// The CPU prelude, fourth part: floats of 16 and 8 bits, which live in memory only.

// f16 and bf16 live in memory only: their bits (wl_load<u16v> and so on) to and from f32, rounded to nearest even.
template <class V>
WL_FN V wl_from_bf16(wl_v<u16, wl_n<V>> h) {
  return __builtin_bit_cast(V, wl_cast<wl_i<V>>(h) << 16);
}
template <class V>
WL_FN auto wl_to_bf16(V x) {
  typedef wl_i<V> I;
  I i = __builtin_bit_cast(I, x), nan = (i >> 16) | 64;
  i = (i + 0x7fff + (i >> 16 & 1)) >> 16;
  return wl_cast<wl_v<u16, wl_n<V>>>((x == x ? i : nan) & 0xffff);
}
template <class V>
WL_FN V wl_from_f16(wl_v<u16, wl_n<V>> h) {
  typedef wl_i<V> I;
  I i = wl_cast<I>(h), e = i & 0x7c00;
  V r = __builtin_bit_cast(V, (i & 0x7fff) << 13) * 5.192296858534828e33f;  // 2^112 rebases exponent and denormals
  r = e == 0x7c00 ? __builtin_bit_cast(V, (i & 0x7fff) << 13 | 0x7f800000) : r;
  return __builtin_bit_cast(V, __builtin_bit_cast(I, r) | (i & 0x8000) << 16);
}
template <class V>
WL_FN auto wl_to_f16(V x) {
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
// What the printer itself calls: index arithmetic, tails, identities of reductions, register transposes.
#define WL_RESTRICT __restrict__

// Lanes outside [low, high) become those of `other`, and their memory is not read.
template <class V>
WL_FN V wl_load_in(const wl_e<V>* p, int low, int high, V other) {
  if (low <= 0 && high >= wl_n<V>) return wl_load<V>(p);
  if (low >= high) return other;
  if constexpr (wl_masked<V>) {
    return __builtin_bit_cast(
        V, wl_ldm((const wl_e<wl_i<V>>*)p, __builtin_bit_cast(wl_i<V>, other), high, low < 0 ? 0 : low));
  } else if constexpr (sizeof(V) > WL_NATIVE) {
    typedef wl_half<V> H;
    constexpr int half = wl_n<V> / 2;
    return wl_join<V>(wl_load_in<H>(p, low, high, wl_lo(other)),
                      wl_load_in<H>(p + half, low - half, high - half, wl_hi(other)));
  } else {
    for (int i = 0; i < wl_n<V>; ++i)
      if (i >= low && i < high) other[i] = p[i];
    return other;
  }
}
// The same for a range that other loads have too: its mask is made once, so no branch looks for an easy case.
template <class V>
WL_FN V wl_load_where(const wl_e<V>* p, int low, int high, V other) {
  if constexpr (wl_masked<V>)
    return __builtin_bit_cast(V, wl_ldm((const wl_e<wl_i<V>>*)p, __builtin_bit_cast(wl_i<V>, other), high, low));
  else
    return wl_load_in<V>(p, low, high, other);
}
template <class V>
WL_FN V wl_gather_in(const wl_e<V>* p, i64 stride, int low, int high, V other) {
  if constexpr (wl_seconds<V>)
    if (stride == 2) {
      if (low >= high) return other;
      constexpr int n = wl_n<V>;
      const V all = wl_second(wl_load_in<V>(p, 2 * low, 2 * high - 1, other),
                              wl_load_in<V>(p + n - 1, 2 * low - n + 1, 2 * high - n, other));
      const auto lane = wl_iota<wl_i<V>>();
      return ((lane >= wl_splat<wl_i<V>>(low)) & (lane < wl_splat<wl_i<V>>(high))) ? all : other;
    }
  WL_UNROLL for (int i = 0; i < wl_n<V>; ++i) if (i >= low && i < high) other[i] = p[i * stride];
  return other;
}
// Ops on the bits of integers; a shift by all bits or more gives 0.
template <class A, class B>
WL_FN auto wl_bit_and(A a, B b) {
  typedef wl_r<A, B> V;
  return (V)(wl_up<V>(a) & wl_up<V>(b));
}
template <class A, class B>
WL_FN auto wl_bit_or(A a, B b) {
  typedef wl_r<A, B> V;
  return (V)(wl_up<V>(a) | wl_up<V>(b));
}
template <class A, class B>
WL_FN auto wl_bit_xor(A a, B b) {
  typedef wl_r<A, B> V;
  return (V)(wl_up<V>(a) ^ wl_up<V>(b));
}
template <class A, class B>
WL_FN auto wl_shift_left(A a0, B b0) {
  typedef wl_r<A, B> V;
  constexpr auto bits = (wl_e<V>)(8 * sizeof(wl_e<V>));
  const V a = wl_up<V>(a0), b = wl_up<V>(b0), zero = wl_splat<V>(0), most = wl_splat<V>((wl_e<V>)(bits - 1));
  return (V)((b & ~most) != zero ? zero : a << (b & most));
}
template <class A, class B>
WL_FN auto wl_shift_right(A a0, B b0) {
  typedef wl_r<A, B> V;
  constexpr auto bits = (wl_e<V>)(8 * sizeof(wl_e<V>));
  const V a = wl_up<V>(a0), b = wl_up<V>(b0), zero = wl_splat<V>(0), most = wl_splat<V>((wl_e<V>)(bits - 1));
  return (V)((b & ~most) != zero ? zero : a >> (b & most));
}

// A float as an integer of [low, high]: truncated, saturated, NaN is 0.
template <class V, class X>
WL_FN V wl_to_int(X x, wl_e<V> low, wl_e<V> high) {
  const X lo = wl_splat<X>((wl_e<X>)low), hi = wl_splat<X>((wl_e<X>)high);
  V r = wl_cast<V>(wl_select(wl_and(wl_gt(x, lo), wl_lt(x, hi)), x, wl_splat<X>(0)));
  r = wl_select(wl_ge(x, hi), wl_splat<V>(high), r);
  return wl_select(wl_le(x, lo), wl_splat<V>(low), r);
}
// An integer's low bits.
template <class V, class X>
WL_FN V wl_narrow(X x) {
  if constexpr (wl_n<V> == 1)
    return (V)x;
  else
    return __builtin_convertvector(x, V);
}

template <class T, int Kind>  // 0 add, 1 mul, 2 max, 3 min
constexpr T wl_neutral() {
  if constexpr (Kind == 0) return T(0);
  if constexpr (Kind == 1) return T(1);
  if constexpr (wl_same<T, f32>) return Kind == 2 ? -__builtin_inff() : __builtin_inff();
  if constexpr (wl_same<T, f64>) return Kind == 2 ? -__builtin_inf() : __builtin_inf();
  if constexpr (wl_same<T, i32>) return Kind == 2 ? -__INT_MAX__ - 1 : __INT_MAX__;
  if constexpr (wl_same<T, i64>) return Kind == 2 ? -__LONG_LONG_MAX__ - 1 : __LONG_LONG_MAX__;
  return Kind == 2 ? T(0) : T(-1);
}
template <class V>
WL_FN V wl_identity_add() {
  return wl_splat<V>(wl_neutral<wl_e<V>, 0>());
}
template <class V>
WL_FN V wl_identity_mul() {
  return wl_splat<V>(wl_neutral<wl_e<V>, 1>());
}
template <class V>
WL_FN V wl_identity_max() {
  return wl_splat<V>(wl_neutral<wl_e<V>, 2>());
}
template <class V>
WL_FN V wl_identity_min() {
  return wl_splat<V>(wl_neutral<wl_e<V>, 3>());
}

template <class I>
WL_FN long wl_lane(I index, int l) {
  if constexpr (wl_n<I> == 1)
    return (long)index;
  else
    return (long)index[l];
}
// Element l is p[l * along + wrap(index[l]) * stride], for l < left; the rest is zero. The index may be one number.
template <class V, class I>
WL_FN V wl_take(const wl_e<V>* p, long along, I index, long stride, long extent, int left) {
  V out = wl_splat<V>(0);
  for (int l = 0; l < wl_n<V>; ++l)
    if (l < left) out[l] = p[l * along + wl_wrap(wl_lane(index, l), extent) * stride];
  return out;
}

// WL_LANES vectors become their transpose: log2(WL_LANES) rounds, each exchanges halves at one distance.
template <int D, class V>
WL_FN void wl_exchange(V& a, V& b) {
  typedef wl_i<V> I;
  const I lane = wl_iota<I>();
  const I low = (lane & ~D) | ((lane & D) ? I(lane * 0 + wl_n<V>) : I(lane * 0));
  const V x = a, y = b;
#ifdef __clang__
  V p = x, q = y;
  for (int l = 0; l < wl_n<V>; ++l) {
    p[l] = l & D ? y[l & ~D] : x[l];
    q[l] = l & D ? y[l] : x[l | D];
  }
  (void)low;
  a = p;
  b = q;
#else
  a = __builtin_shuffle(x, y, low);
  b = __builtin_shuffle(x, y, low + D);
#endif
}
template <int D, class V, int N>
WL_FN void wl_transpose_round(V (&v)[N]) {
  if constexpr (D < N) {
    WL_UNROLL for (int i = 0; i < N; ++i) if (!(i & D)) wl_exchange<D>(v[i], v[i | D]);
    wl_transpose_round<2 * D>(v);
  }
}
template <class V, int N>
WL_FN void wl_transpose(V (&v)[N]) {
  static_assert(N == wl_n<V>, "a square block");
  wl_transpose_round<1>(v);
}
extern "C" void wl_d72897b046aae853(long block, void* const* args, char* scratch) {
  (void)block; (void)args; (void)scratch;
  const f32* WL_RESTRICT p0 = (const f32*)__builtin_assume_aligned(args[0], 64);  // i0
  const f32* WL_RESTRICT p1 = (const f32*)__builtin_assume_aligned(args[1], 64);  // i1
  const f32* WL_RESTRICT p2 = (const f32*)__builtin_assume_aligned(args[2], 64);  // i2
  f32* WL_RESTRICT p3 = (f32*)__builtin_assume_aligned(args[3], 64);  // o0
  const long v1 = ((block)) % 2L;
  const long n4_0 = 10L;
  WL_SERIAL for (long v4 = 0; v4 < n4_0; ++v4) {
    const long n3_1 = 3L;
    WL_SERIAL for (long v3 = 0; v3 < n3_1; ++v3) {
      f32v t0_0 = wl_splat<f32v>(0x0p+0f);
      f32v t0_1 = wl_splat<f32v>(0x0p+0f);
      f32v t0_2 = wl_splat<f32v>(0x0p+0f);
      f32v t0_3 = wl_splat<f32v>(0x0p+0f);
      f32v t0_4 = wl_splat<f32v>(0x0p+0f);
      f32v t0_5 = wl_splat<f32v>(0x0p+0f);
      f32v t0_6 = wl_splat<f32v>(0x0p+0f);
      f32v t0_7 = wl_splat<f32v>(0x0p+0f);
      f32v t0_8 = wl_splat<f32v>(0x0p+0f);
      f32v t0_9 = wl_splat<f32v>(0x0p+0f);
      f32v t0_10 = wl_splat<f32v>(0x0p+0f);
      f32v t0_11 = wl_splat<f32v>(0x0p+0f);
      const long n2_2 = 100L;
      WL_SERIAL for (long v2 = 0; v2 < n2_2; ++v2) {
        f32v t2_0 = wl_load<f32v>(p1 + v1*36L + v3*12L + v2*72L);
        f32v t2_1 = wl_load<f32v>(p1 + v1*36L + v3*12L + v2*72L + 4);
        f32v t2_2 = wl_load<f32v>(p1 + v1*36L + v3*12L + v2*72L + 8);
        f32 t1_0 = *(p0 + v4*400L + v2);
        const auto x3 = wl_fma(wl_splat<f32v>(t1_0), t2_0, t0_0);
        t0_0 = x3;
        const auto x4 = wl_fma(wl_splat<f32v>(t1_0), t2_1, t0_1);
        t0_1 = x4;
        const auto x5 = wl_fma(wl_splat<f32v>(t1_0), t2_2, t0_2);
        t0_2 = x5;
        f32 t1_1 = *(p0 + v4*400L + v2 + 1*100L);
        const auto x6 = wl_fma(wl_splat<f32v>(t1_1), t2_0, t0_3);
        t0_3 = x6;
        const auto x7 = wl_fma(wl_splat<f32v>(t1_1), t2_1, t0_4);
        t0_4 = x7;
        const auto x8 = wl_fma(wl_splat<f32v>(t1_1), t2_2, t0_5);
        t0_5 = x8;
        f32 t1_2 = *(p0 + v4*400L + v2 + 2*100L);
        const auto x9 = wl_fma(wl_splat<f32v>(t1_2), t2_0, t0_6);
        t0_6 = x9;
        const auto x10 = wl_fma(wl_splat<f32v>(t1_2), t2_1, t0_7);
        t0_7 = x10;
        const auto x11 = wl_fma(wl_splat<f32v>(t1_2), t2_2, t0_8);
        t0_8 = x11;
        f32 t1_3 = *(p0 + v4*400L + v2 + 3*100L);
        const auto x12 = wl_fma(wl_splat<f32v>(t1_3), t2_0, t0_9);
        t0_9 = x12;
        const auto x13 = wl_fma(wl_splat<f32v>(t1_3), t2_1, t0_10);
        t0_10 = x13;
        const auto x14 = wl_fma(wl_splat<f32v>(t1_3), t2_2, t0_11);
        t0_11 = x14;
      }
      f32v t3_0 = wl_load<f32v>(p2 + v4*288L + v1*36L + v3*12L);
      const auto x15 = wl_add(t0_0, t3_0);
      f32v t4_0 = x15;
      wl_store(p3 + v4*288L + v1*36L + v3*12L, t4_0);
      f32v t3_1 = wl_load<f32v>(p2 + v4*288L + v1*36L + v3*12L + 4);
      const auto x16 = wl_add(t0_1, t3_1);
      f32v t4_1 = x16;
      wl_store(p3 + v4*288L + v1*36L + v3*12L + 4, t4_1);
      f32v t3_2 = wl_load<f32v>(p2 + v4*288L + v1*36L + v3*12L + 8);
      const auto x17 = wl_add(t0_2, t3_2);
      f32v t4_2 = x17;
      wl_store(p3 + v4*288L + v1*36L + v3*12L + 8, t4_2);
      f32v t3_3 = wl_load<f32v>(p2 + v4*288L + v1*36L + v3*12L + 1*72L);
      const auto x18 = wl_add(t0_3, t3_3);
      f32v t4_3 = x18;
      wl_store(p3 + v4*288L + v1*36L + v3*12L + 1*72L, t4_3);
      f32v t3_4 = wl_load<f32v>(p2 + v4*288L + v1*36L + v3*12L + 1*72L + 4);
      const auto x19 = wl_add(t0_4, t3_4);
      f32v t4_4 = x19;
      wl_store(p3 + v4*288L + v1*36L + v3*12L + 1*72L + 4, t4_4);
      f32v t3_5 = wl_load<f32v>(p2 + v4*288L + v1*36L + v3*12L + 1*72L + 8);
      const auto x20 = wl_add(t0_5, t3_5);
      f32v t4_5 = x20;
      wl_store(p3 + v4*288L + v1*36L + v3*12L + 1*72L + 8, t4_5);
      f32v t3_6 = wl_load<f32v>(p2 + v4*288L + v1*36L + v3*12L + 2*72L);
      const auto x21 = wl_add(t0_6, t3_6);
      f32v t4_6 = x21;
      wl_store(p3 + v4*288L + v1*36L + v3*12L + 2*72L, t4_6);
      f32v t3_7 = wl_load<f32v>(p2 + v4*288L + v1*36L + v3*12L + 2*72L + 4);
      const auto x22 = wl_add(t0_7, t3_7);
      f32v t4_7 = x22;
      wl_store(p3 + v4*288L + v1*36L + v3*12L + 2*72L + 4, t4_7);
      f32v t3_8 = wl_load<f32v>(p2 + v4*288L + v1*36L + v3*12L + 2*72L + 8);
      const auto x23 = wl_add(t0_8, t3_8);
      f32v t4_8 = x23;
      wl_store(p3 + v4*288L + v1*36L + v3*12L + 2*72L + 8, t4_8);
      f32v t3_9 = wl_load<f32v>(p2 + v4*288L + v1*36L + v3*12L + 3*72L);
      const auto x24 = wl_add(t0_9, t3_9);
      f32v t4_9 = x24;
      wl_store(p3 + v4*288L + v1*36L + v3*12L + 3*72L, t4_9);
      f32v t3_10 = wl_load<f32v>(p2 + v4*288L + v1*36L + v3*12L + 3*72L + 4);
      const auto x25 = wl_add(t0_10, t3_10);
      f32v t4_10 = x25;
      wl_store(p3 + v4*288L + v1*36L + v3*12L + 3*72L + 4, t4_10);
      f32v t3_11 = wl_load<f32v>(p2 + v4*288L + v1*36L + v3*12L + 3*72L + 8);
      const auto x26 = wl_add(t0_11, t3_11);
      f32v t4_11 = x26;
      wl_store(p3 + v4*288L + v1*36L + v3*12L + 3*72L + 8, t4_11);
    }
  }
}

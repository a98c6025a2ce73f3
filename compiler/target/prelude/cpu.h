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

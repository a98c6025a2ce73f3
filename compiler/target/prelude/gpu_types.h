// The GPU preludes, first part, the same for CUDA, HIP and their simulators: types. A tile element is a scalar or a
// wl_vec of WL_LANES elements that one thread holds; every function takes either. No include, no library.
#ifndef WL_FN
#define WL_FN static inline __attribute__((always_inline, unused))
#endif
#define WL_SPLIT 0
#define WL_NATIVE 16
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

// What as many bytes are moved as at once; of more than four each family has its own vectors.
template <int BYTES>
struct wl_words;
template <>
struct wl_words<4> {
  typedef u32 t;
};
template <>
struct wl_words<2> {
  typedef u16 t;
};
template <>
struct wl_words<1> {
  typedef u8 t;
};

template <class T, int N>
struct wl_vec {
  T e[N];
};
template <class T, int N>
struct wl_vec_of {
  typedef wl_vec<T, N> t;
};
template <class T>
struct wl_vec_of<T, 1> {
  typedef T t;
};
template <class T, int N>
using wl_v = typename wl_vec_of<T, N>::t;
// Names of vectors, here of the widest; a loop whose vectors are narrower says so for its own scope.
#define WL_VECTORS(n)                                                               \
  typedef wl_v<f32, n> f32v __attribute__((unused));                                \
  typedef wl_v<f64, n> f64v __attribute__((unused));                                \
  typedef wl_v<i32, n> i32v __attribute__((unused));                                \
  typedef wl_v<i64, n> i64v __attribute__((unused));                                \
  typedef wl_v<b1, n> u8v __attribute__((unused)); /* booleans in memory: 0 or 1 */ \
  typedef wl_v<i8, n> i8v __attribute__((unused));                                  \
  typedef wl_v<i16, n> i16v __attribute__((unused));                                \
  typedef wl_v<u16, n> u16v __attribute__((unused));                                \
  typedef wl_v<u32, n> u32v __attribute__((unused));                                \
  typedef wl_v<u64, n> u64v __attribute__((unused))
WL_VECTORS(WL_LANES);

template <class V>
struct wl_elem {
  typedef V t;
  static constexpr int n = 1;
};
template <class T, int N>
struct wl_elem<wl_vec<T, N>> {
  typedef T t;
  static constexpr int n = N;
};
template <class V>
using wl_e = typename wl_elem<V>::t;
template <class V>
constexpr int wl_n = wl_elem<V>::n;
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
  typedef signed char t;
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
constexpr bool wl_bool = wl_same<wl_e<V>, b1> || wl_same<wl_e<V>, bool>;
template <class A, class B>
using wl_r = decltype(A() + B());  // of scalars
template <class V, class... T>
WL_FN V wl_pack(T... e) {
  return {{e...}};
}
// A wave of 32 loads words of two 16-bit elements from N blocks of eight by eight, whose rows are `gap` apart; blocks 1
// and 2 are d1 and d2 elements behind block 0, block 3 both. Along rows lane L has word L % 4 of row L / 4; across them
// elements L / 4 of rows 2 * (L % 4) and the next. From its place in block 0 to the row that it names: row L % 8 of
// block L / 8, modulo N.
template <int N>
struct wl_blocks_of {
  u32 e[N];
};
template <int N>
WL_FN long wl_to_block(int lane, long d1, long d2) {
  return (N > 1 && (lane & 8) ? d1 : 0) + (N > 2 && (lane & 16) ? d2 : 0);
}
template <class T, int N>
WL_FN long wl_to_row_along(int lane, long gap, long d1, long d2) {
  return ((lane & 7) - lane / 4) * gap - 4 / (int)sizeof(T) * (lane & 3) + wl_to_block<N>(lane, d1, d2);
}
template <int N>
WL_FN long wl_to_row_across(int lane, long gap, long d1, long d2) {
  return ((lane & 7) - 2 * (lane & 3)) * gap - lane / 4 + wl_to_block<N>(lane, d1, d2);
}
template <class V, class X>
WL_FN V wl_up(X x) {
  return (V)x;
}
template <class V>
WL_FN V wl_splat(wl_e<V> s) {
  if constexpr (wl_n<V> == 1) {
    return s;
  } else {
    V v;
    WL_UNROLL for (int i = 0; i < wl_n<V>; ++i) v.e[i] = s;
    return v;
  }
}
template <class V>
WL_FN V wl_iota() {
  if constexpr (wl_n<V> == 1) {
    return 0;
  } else {
    V v;
    WL_UNROLL for (int i = 0; i < wl_n<V>; ++i) v.e[i] = (wl_e<V>)i;
    return v;
  }
}
// What the CPU's functions ask for in branches that scalars do not take.
template <class V>
V wl_lo(V);
template <class V>
V wl_hi(V);
template <class V, class H>
V wl_join(H, H);
template <class V, class F>
WL_FN V wl_each(V x, F f) {
  return f(x);
}

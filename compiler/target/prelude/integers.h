// Integers, as every target computes with them.

// What sums and products of integers are computed in: unsigned numbers wrap, where signed ones are undefined in C++.
template <class T>
struct wl_wrapping {
  typedef T t;
};
template <>
struct wl_wrapping<i32> {
  typedef u32 t;
};
template <>
struct wl_wrapping<i64> {
  typedef u64 t;
};
template <class V>
using wl_w = wl_v<typename wl_wrapping<wl_e<V>>::t, wl_n<V>>;
template <class V>
constexpr bool wl_signed = (wl_e<V>)-1 < (wl_e<V>)0;

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
  if (sizeof(wl_e<V>) == 4 && low > -(1 << 20) && high < (1 << 20)) {  // both are exact in f32
    if (low < 0) x = wl_select(wl_eq(x, x), x, wl_splat<X>(0));
    return wl_cast<V>(wl_minx(wl_maxx(x, lo), hi));
  }
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
    return wl_convert<V>(x);
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
// As wl_place(), which leaves a word of an index outside its axis: the extent, which is not 0 then, and the index.
WL_FN long wl_place(long index, long extent, i64* outside) {
  const long at = wl_wrap(index, extent);
  if (__builtin_expect(wl_within(at, extent), 1)) return at;
  outside[0] = extent;
  outside[1] = index;
  return wl_place(index, extent);
}
// Element l is p[l * along + place(index[l]) * stride], for l < left; the rest is zero. The index may be one number.
template <class V, class I, class... Outside>
WL_FN V wl_take(const wl_e<V>* p, long along, I index, long stride, long extent, int left, Outside... outside) {
  V out = wl_splat<V>(0);
  for (int l = 0; l < wl_n<V>; ++l)
    if (l < left) {
      if constexpr (sizeof...(outside) == 0)
        out[l] = p[l * along + wl_wrap(wl_lane(index, l), extent) * stride];
      else
        out[l] = p[l * along + wl_place(wl_lane(index, l), extent, outside...) * stride];
    }
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

// The GPU preludes, memory: vectors move in pieces of W elements, each aligned to its size. Elements past `left` are
// not touched, and hold nothing that a kernel may use (WL_OUTSIDE; the simulator makes that NaN); a piece is moved
// whole, so `left` is a multiple of W (or more than the vector has).
#define WL_LOADS(load, load_n, read)                                                                \
  template <class V, int W, class P>                                                                \
  WL_FN V load(P p WL_LINE) {                                                                       \
    V v;                                                                                            \
    if constexpr (wl_n<V> == 1) {                                                                   \
      read<1>(&v, p WL_PASS);                                                                       \
    } else {                                                                                        \
      WL_UNROLL for (int i = 0; i < wl_n<V>; i += W) read<W>(v.e + i, p + i WL_PASS);               \
    }                                                                                               \
    return v;                                                                                       \
  }                                                                                                 \
  template <class V, int W, class P>                                                                \
  WL_FN V load_n(P p, int left, wl_e<V> fill WL_LINE) {                                             \
    V v = WL_OUTSIDE(V, fill);                                                                      \
    if constexpr (wl_n<V> == 1) {                                                                   \
      if (left > 0) read<1>(&v, p WL_PASS);                                                         \
    } else {                                                                                        \
      WL_UNROLL for (int i = 0; i < wl_n<V>; i += W) if (i < left) read<W>(v.e + i, p + i WL_PASS); \
    }                                                                                               \
    return v;                                                                                       \
  }
WL_LOADS(wl_load, wl_load_n, wl_read)
WL_LOADS(wl_load_past, wl_load_past_n, wl_read_past)  // caches need not keep it
#define WL_STORES(store, store_n, write)                                                             \
  template <int W, class P, class V>                                                                 \
  WL_FN void store(P p, V v WL_LINE) {                                                               \
    if constexpr (wl_n<V> == 1) {                                                                    \
      write<1>(p, &v WL_PASS);                                                                       \
    } else {                                                                                         \
      WL_UNROLL for (int i = 0; i < wl_n<V>; i += W) write<W>(p + i, v.e + i WL_PASS);               \
    }                                                                                                \
  }                                                                                                  \
  template <int W, class P, class V>                                                                 \
  WL_FN void store_n(P p, V v, int left WL_LINE) {                                                   \
    if constexpr (wl_n<V> == 1) {                                                                    \
      if (left > 0) write<1>(p, &v WL_PASS);                                                         \
    } else {                                                                                         \
      WL_UNROLL for (int i = 0; i < wl_n<V>; i += W) if (i < left) write<W>(p + i, v.e + i WL_PASS); \
    }                                                                                                \
  }
WL_STORES(wl_store, wl_store_n, wl_write)
WL_STORES(wl_stream, wl_stream_n, wl_write_past)
// The word of neighbouring elements, the first in the lowest bits; aligned to its size.
template <class T, class P>
WL_FN u32 wl_word(P p WL_LINE) {
  u32 word;
  wl_read<sizeof(u32) / sizeof(T)>((T*)&word, p WL_PASS);
  return word;
}
// N neighbouring elements on their way to shared memory, in pieces of W; zeros when they are not inside. Nobody may
// touch them before a wait of this thread has covered their group, others not before a barrier after it.
template <int N, int W, class S, class P>
WL_FN void wl_async(S to, P from WL_LINE) {
  WL_UNROLL for (int i = 0; i < N; i += W) wl_send<W>(to + i, from + i WL_PASS);
}
template <int N, int W, class S, class P>
WL_FN void wl_async_in(S to, P from, bool inside WL_LINE) {
  WL_UNROLL for (int i = 0; i < N; i += W) wl_send_in<W>(to + i, from + i, inside WL_PASS);
}
template <int N, int W, class S, class P>
WL_FN void wl_async_n(S to, P from, int left WL_LINE) {
  WL_UNROLL for (int i = 0; i < N; i += W) if (i < left) wl_send<W>(to + i, from + i WL_PASS);
}
template <int N, int W, class S, class P>
WL_FN void wl_async_in_n(S to, P from, bool inside, int left WL_LINE) {
  WL_UNROLL for (int i = 0; i < N; i += W) if (i < left) wl_send_in<W>(to + i, from + i, inside WL_PASS);
}
// Where an element of a swizzled buffer lies: B bits from bit M on are XORed with those that lie S higher.
template <int B, int M, int S>
WL_FN long wl_swizzle(long at) {
  return at ^ ((at >> S) & (((1L << B) - 1) << M));
}
// Where an element of a buffer of panels lies: N bits from bit C on change places with the R above them.
template <int C, int N, int R>
WL_FN long wl_panels(long at) {
  const long rows = (1L << R) - 1, panels = (1L << N) - 1;
  return (at & ~(((1L << (N + R)) - 1) << C)) | (at >> (C + N) & rows) << C | (at >> C & panels) << (C + R);
}
// Strided moves, in elements.
template <class V, class P>
WL_FN V wl_gather_n(P p, long stride, int left, wl_e<V> fill WL_LINE) {
  V v = WL_OUTSIDE(V, fill);
  WL_UNROLL for (int i = 0; i < wl_n<V>; ++i) if (i < left) wl_read<1>(v.e + i, p + i * stride WL_PASS);
  return v;
}
template <class V, class P>
WL_FN V wl_gather(P p, long stride WL_LINE) {
  return wl_gather_n<V>(p, stride, wl_n<V>, 0 WL_PASS);
}
template <class P, class V>
WL_FN void wl_scatter_n(P p, long stride, V v, int left WL_LINE) {
  WL_UNROLL for (int i = 0; i < wl_n<V>; ++i) if (i < left) wl_write<1>(p + i * stride, v.e + i WL_PASS);
}
template <class P, class V>
WL_FN void wl_scatter(P p, long stride, V v WL_LINE) {
  wl_scatter_n(p, stride, v, wl_n<V> WL_PASS);
}
// Lanes outside [low, high) become those of `other`, and their memory is not read.
template <class V, class P>
WL_FN V wl_gather_in(P p, long stride, int low, int high, V other WL_LINE) {
  WL_UNROLL for (int i = 0; i < wl_n<V>; ++i) if (i >= low && i < high) wl_read<1>(other.e + i, p + i * stride WL_PASS);
  return other;
}
template <class V, class P>
WL_FN V wl_load_in(P p, int low, int high, V other WL_LINE) {
  return wl_gather_in(p, 1, low, high, other WL_PASS);
}
// Element l is p[l * along + place(index[l]) * stride], for l < left. Inside: no index lies outside the axis.
template <bool Inside>
WL_FN long wl_place_of(long index, long extent) {
  return Inside ? wl_wrap(index, extent) : wl_place(index, extent);
}
template <class V, bool Inside = false, class P, class I>
WL_FN V wl_take(P p, long along, I index, long stride, long extent, int left WL_LINE) {
  V v = WL_OUTSIDE(V, 0);
  if constexpr (wl_n<V> == 1) {
    if (left > 0) wl_read<1>(&v, p + wl_place_of<Inside>((long)index, extent) * stride WL_PASS);
  } else {
    WL_UNROLL for (int i = 0; i < wl_n<V>; ++i) if (i < left)
        wl_read<1>(v.e + i, p + i * along + wl_place_of<Inside>((long)wl_lane(index, i), extent) * stride WL_PASS);
  }
  return v;
}
WL_FN void wl_fence() {}
// Whether this block is the last of N to come here, which all its threads are told; what the others stored in the
// workspace before is there then. Of the first Threads threads of the block, if not of all.
template <int N, int Threads = 0, class W, class S>
WL_FN bool wl_last(W workspace, long group, int thread, S told WL_LINE) {
  wl_release();
  wl_barrier_of<Threads>(WL_HERE);
  if (thread == 0) {
    const u32 last = wl_count<N>(workspace, group);
    wl_write<1>(told, &last WL_PASS);
  }
  wl_barrier_of<Threads>(WL_HERE);
  u32 last;
  wl_read<1>(&last, told WL_PASS);
  wl_acquire();
  return last != 0;
}

// The CUDA half, second part: memory and what lanes do together.
WL_FN void wl_barrier() {
  __syncthreads();
}
template <int M, class T>
WL_FN T wl_shuffle_xor(T x) {
  if constexpr (sizeof(T) == 8)
    return __builtin_bit_cast(T, __shfl_xor_sync(0xffffffffu, __builtin_bit_cast(long long, x), M));
  else if constexpr (sizeof(T) == 4)
    return __builtin_bit_cast(T, __shfl_xor_sync(0xffffffffu, __builtin_bit_cast(int, x), M));
  else
    return (T)__shfl_xor_sync(0xffffffffu, (int)x, M);
}
template <int BYTES>
struct alignas(BYTES) wl_chunk {
  u32 x[BYTES / 4];
};
template <>
struct wl_chunk<2> {
  u16 x;
};
template <>
struct wl_chunk<1> {
  u8 x;
};
template <int W, class T>
WL_FN void wl_read(T* to, const T* from) {
  *(wl_chunk<W * sizeof(T)>*)to = *(const wl_chunk<W * sizeof(T)>*)from;
}
template <int W, class T>
WL_FN void wl_write(T* to, const T* from) {
  *(wl_chunk<W * sizeof(T)>*)to = *(const wl_chunk<W * sizeof(T)>*)from;
}
// Not kept in cache.
template <int W, class T>
WL_FN void wl_write_past(T* to, const T* from) {
  if constexpr (W * sizeof(T) == 16) {
    const wl_chunk<16> c = *(const wl_chunk<16>*)from;
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(c.x[0]), "r"(c.x[1]), "r"(c.x[2]),
                 "r"(c.x[3])
                 : "memory");
  } else if constexpr (W * sizeof(T) == 8) {
    const wl_chunk<8> c = *(const wl_chunk<8>*)from;
    asm volatile("st.global.cs.v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(c.x[0]), "r"(c.x[1]) : "memory");
  } else if constexpr (W * sizeof(T) == 4) {
    asm volatile("st.global.cs.u32 [%0], %1;" ::"l"(to), "r"(*(const u32*)from) : "memory");
  } else {
    wl_write<W>(to, from);
  }
}

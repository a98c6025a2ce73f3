// The HIP half, second part: memory and what lanes do together.
#pragma clang force_cuda_host_device end
WL_FN void wl_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
WL_FN int wl_permute_lanes(int x, int lane) {
  return __builtin_amdgcn_ds_bpermute(lane << 2, x);
}
template <class T>
WL_FN T wl_take_from(T x, int lane) {
  if constexpr (sizeof(T) == 8) {
    const u64 bits = __builtin_bit_cast(u64, x);
    const u32 low = (u32)wl_permute_lanes((int)(u32)bits, lane),
              high = (u32)wl_permute_lanes((int)(u32)(bits >> 32), lane);
    return __builtin_bit_cast(T, (u64)high << 32 | low);
  } else if constexpr (sizeof(T) == 4) {
    return __builtin_bit_cast(T, wl_permute_lanes(__builtin_bit_cast(int, x), lane));
  } else {
    return (T)wl_permute_lanes((int)x, lane);
  }
}
// The simulator looks whether lanes whose numbers differ in these bits have the same.
template <int Bits, class T>
WL_FN void wl_agree(T) {}
template <int M, class T>
WL_FN T wl_shuffle_xor(T x) {
  return wl_take_from(x, (int)__builtin_amdgcn_workitem_id_x() ^ M);
}
// What a lane has among the N, a power of two, that this one is of.
template <int N, class T>
WL_FN T wl_shuffle(T x, int lane) {
  return wl_take_from(x, ((int)__builtin_amdgcn_workitem_id_x() & ~(N - 1)) | lane);
}
// Clang's vectors: of a struct the compiler loads only what is used, in pieces.
template <int BYTES>
struct wl_words {
  typedef u32 t __attribute__((ext_vector_type(BYTES / 4)));
};
template <int W, class T>
WL_FN void wl_read(T* to, const T* from) {
  typedef typename wl_words<W * sizeof(T)>::t C;
  *(C*)to = *(const C*)from;
}
template <int W, class T>
WL_FN void wl_read_past(T* to, const T* from) {
  typedef typename wl_words<W * sizeof(T)>::t C;
  *(C*)to = __builtin_nontemporal_load((const C*)from);
}
template <int W, class T>
WL_FN void wl_write(T* to, const T* from) {
  typedef typename wl_words<W * sizeof(T)>::t C;
  *(C*)to = *(const C*)from;
}
template <int W, class T>
WL_FN void wl_write_past(T* to, const T* from) {
  if constexpr (W * sizeof(T) >= 4) {
    typedef u32 words __attribute__((ext_vector_type(W * sizeof(T) / 4)));
    __builtin_nontemporal_store(*(const words*)from, (words*)to);
  } else {
    wl_write<W>(to, from);
  }
}
// Copies pass through registers, and have landed when they are sent.
template <int W, class T>
WL_FN void wl_send(T* to, const T* from) {
  typedef typename wl_words<W * sizeof(T)>::t C;
  *(C*)to = *(const C*)from;
}
template <int W, class T>
WL_FN void wl_send_in(T* to, const T* from, bool inside) {
  typedef typename wl_words<W * sizeof(T)>::t C;
  C c = (C)0;
  if (inside) c = *(const C*)from;
  *(C*)to = c;
}
WL_FN void wl_commit() {}
template <int N>
WL_FN void wl_wait() {}
// Matrix instructions, which multiply what the lanes of a wave hold together (compiler/target/matrix.def).
#define WL_MFMA_16(name, type, multiply)                                                                          \
  WL_FN void name(wl_vec<f32, 4>& c, u32 a0, u32 a1, u32 b0, u32 b1) {                                            \
    typedef type factor __attribute__((ext_vector_type(4)));                                                      \
    typedef u32 words __attribute__((ext_vector_type(2)));                                                        \
    typedef f32 sums __attribute__((ext_vector_type(4)));                                                         \
    const words a = {a0, a1}, b = {b0, b1};                                                                       \
    c = __builtin_bit_cast(wl_vec<f32, 4>, multiply(__builtin_bit_cast(factor, b), __builtin_bit_cast(factor, a), \
                                                    __builtin_bit_cast(sums, c), 0, 0, 0));                       \
  }
#if defined(__gfx908__) || defined(__gfx942__) || defined(__gfx950__)
WL_MFMA_16(wl_mma_mfma16_f16, _Float16, __builtin_amdgcn_mfma_f32_16x16x16f16)
#endif
#if defined(__gfx90a__) || defined(__gfx942__) || defined(__gfx950__)
WL_MFMA_16(wl_mma_mfma16_bf16, short, __builtin_amdgcn_mfma_f32_16x16x16bf16_1k)
#endif
#if defined(__gfx1100__)
#define WL_WMMA_16(name, type, multiply)                                                                          \
  WL_FN void name(f32& c0, f32& c1, f32& c2, f32& c3, f32& c4, f32& c5, f32& c6, f32& c7, u32 a0, u32 a1, u32 a2, \
                  u32 a3, u32 a4, u32 a5, u32 a6, u32 a7, u32 b0, u32 b1, u32 b2, u32 b3, u32 b4, u32 b5, u32 b6, \
                  u32 b7) {                                                                                       \
    typedef type factor __attribute__((ext_vector_type(16)));                                                     \
    typedef u32 words __attribute__((ext_vector_type(8)));                                                        \
    typedef f32 sums __attribute__((ext_vector_type(8)));                                                         \
    const words a = {a0, a1, a2, a3, a4, a5, a6, a7}, b = {b0, b1, b2, b3, b4, b5, b6, b7};                       \
    const sums c = multiply(__builtin_bit_cast(factor, a), __builtin_bit_cast(factor, b),                         \
                            (sums){c0, c1, c2, c3, c4, c5, c6, c7});                                              \
    c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3], c4 = c[4], c5 = c[5], c6 = c[6], c7 = c[7];                       \
  }
WL_WMMA_16(wl_mma_wmma16_f16, _Float16, __builtin_amdgcn_wmma_f32_16x16x16_f16_w32)
WL_WMMA_16(wl_mma_wmma16_bf16, short, __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32)
#endif
#if defined(__gfx1201__)
#define WL_WMMA_16_HALVES(name, type, multiply)                                                                   \
  WL_FN void name(wl_vec<f32, 4>& c0, wl_vec<f32, 4>& c1, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1, u32 b2, \
                  u32 b3) {                                                                                       \
    typedef type factor __attribute__((ext_vector_type(8)));                                                      \
    typedef u32 words __attribute__((ext_vector_type(4)));                                                        \
    typedef f32 sums __attribute__((ext_vector_type(8)));                                                         \
    const words a = {a0, a1, a2, a3}, b = {b0, b1, b2, b3};                                                       \
    const sums c = multiply(__builtin_bit_cast(factor, b), __builtin_bit_cast(factor, a),                         \
                            (sums){c0.e[0], c0.e[1], c0.e[2], c0.e[3], c1.e[0], c1.e[1], c1.e[2], c1.e[3]});      \
    for (int i = 0; i < 4; ++i) c0.e[i] = c[i], c1.e[i] = c[4 + i];                                               \
  }
WL_WMMA_16_HALVES(wl_mma_wmma16_halves_f16, _Float16, __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12)
WL_WMMA_16_HALVES(wl_mma_wmma16_halves_bf16, short, __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12)
#endif
// Blocks that count each other.
WL_FN void wl_release() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
}
WL_FN void wl_acquire() {
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
}
template <int N>
WL_FN bool wl_count(char* counters, long group) {
  u32* const counter = (u32*)counters + group;
  if (__atomic_fetch_add(counter, 1u, __ATOMIC_ACQ_REL) != N - 1) return false;
  __atomic_store_n(counter, 0u, __ATOMIC_RELAXED);
  return true;
}

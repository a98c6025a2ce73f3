// The HIP half, second part: memory and what lanes do together.
#pragma clang force_cuda_host_device end
WL_FN void wl_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
template <int N>
WL_FN void wl_barrier_of() {
  static_assert(N == 0, "barriers are of all threads of a block");
  wl_barrier();
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

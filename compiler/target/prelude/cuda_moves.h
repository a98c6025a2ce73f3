// The CUDA half, second part: memory and what lanes do together.
WL_FN void wl_barrier() {
  __syncthreads();
}
// Of the first threads of the block; 0: of all.
template <int N>
WL_FN void wl_barrier_of() {
  if constexpr (N == 0)
    wl_barrier();
  else
    asm volatile("bar.sync 1, %0;" ::"n"(N) : "memory");
}
// The simulator looks whether lanes whose numbers differ in these bits have the same.
template <int Bits, class T>
WL_FN void wl_agree(T) {}
template <class T, class F>
WL_FN T wl_with_bits(T x, F shuffle) {
  if constexpr (sizeof(T) == 8)
    return __builtin_bit_cast(T, shuffle(__builtin_bit_cast(long long, x)));
  else if constexpr (sizeof(T) == 4)
    return __builtin_bit_cast(T, shuffle(__builtin_bit_cast(int, x)));
  else
    return (T)shuffle((int)x);
}
template <int M, class T>
WL_FN T wl_shuffle_xor(T x) {
  return wl_with_bits(x, [](auto bits) { return __shfl_xor_sync(0xffffffffu, bits, M); });
}
// What a lane has among the N, a power of two, that this one is of.
template <int N, class T>
WL_FN T wl_shuffle(T x, int lane) {
  return wl_with_bits(x, [lane](auto bits) { return __shfl_sync(0xffffffffu, bits, lane, N); });
}
// Shared memory is small, so places in it are bytes in 32 bits, which take half of the instructions.
template <class T>
struct wl_shared {
  T* p;
  int bytes = 0;
  wl_shared operator+(long d) const { return {p, bytes + (int)d * (int)sizeof(T)}; }
  T* pointer() const { return (T*)((char*)p + bytes); }
  u32 address() const { return (u32)__cvta_generic_to_shared(p) + (u32)bytes; }
};
// CUDA's own vector types.
template <int BYTES>
struct wl_words {
  typedef uint4 t;
};
template <>
struct wl_words<8> {
  typedef uint2 t;
};
template <int W, class T>
WL_FN void wl_copy(T* to, const T* from) {
  typedef typename wl_words<W * sizeof(T)>::t C;
  *(C*)to = *(const C*)from;
}
template <int W, class T>
WL_FN void wl_read(T* to, const T* from) {
  wl_copy<W>(to, from);
}
template <int W, class T>
WL_FN void wl_read(T* to, wl_shared<T> from) {
  wl_copy<W>(to, from.pointer());
}
// Of what no thread reads again: the first cache keeps nothing of it.
template <int W, class T>
WL_FN void wl_read_past(T* to, const T* from) {
  if constexpr (W * sizeof(T) == 16) {
    uint4 c;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(c.x), "=r"(c.y), "=r"(c.z), "=r"(c.w)
        : "l"(from));
    *(uint4*)to = c;
  } else if constexpr (W * sizeof(T) == 8) {
    uint2 c;
    asm("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(c.x), "=r"(c.y) : "l"(from));
    *(uint2*)to = c;
  } else if constexpr (W * sizeof(T) == 4) {
    asm("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(*(u32*)to) : "l"(from));
  } else if constexpr (W * sizeof(T) == 2) {
    asm("ld.global.nc.L1::no_allocate.u16 %0, [%1];" : "=h"(*(u16*)to) : "l"(from));
  } else {
    wl_copy<W>(to, from);
  }
}
template <int W, class T>
WL_FN void wl_write(wl_shared<T> to, const T* from) {
  wl_copy<W>(to.pointer(), from);
}
// Spelled out: the compiler takes some vector stores apart. Nothing reads what a kernel stores to device memory.
#define WL_STORE_GLOBAL(name, how)                                                                            \
  template <int W, class T>                                                                                   \
  WL_FN void name(T* to, const T* from) {                                                                     \
    if constexpr (W * sizeof(T) == 16) {                                                                      \
      const uint4 c = *(const uint4*)from;                                                                    \
      asm volatile("st.global" how ".v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(c.x), "r"(c.y), "r"(c.z), \
                   "r"(c.w));                                                                                 \
    } else if constexpr (W * sizeof(T) == 8) {                                                                \
      const uint2 c = *(const uint2*)from;                                                                    \
      asm volatile("st.global" how ".v2.u32 [%0], {%1, %2};" ::"l"(to), "r"(c.x), "r"(c.y));                  \
    } else if constexpr (W * sizeof(T) == 4) {                                                                \
      asm volatile("st.global" how ".u32 [%0], %1;" ::"l"(to), "r"(*(const u32*)from));                       \
    } else {                                                                                                  \
      wl_copy<W>(to, from);                                                                                   \
    }                                                                                                         \
  }
WL_STORE_GLOBAL(wl_write, "")
WL_STORE_GLOBAL(wl_write_past, ".cs")  // not kept in cache
// Copies that need no registers, from sm_80 on; elsewhere they have landed when they are sent.
#if __CUDA_ARCH__ >= 800
template <int W, class T>
WL_FN void wl_send_in(wl_shared<T> to, const T* from, bool inside) {
  constexpr int bytes = W * sizeof(T);
  const u32 at = to.address();
  const int some = inside ? bytes : 0;
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(some) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(at), "l"(from), "r"(some), "n"(bytes)
                 : "memory");
}
template <int W, class T>
WL_FN void wl_send(wl_shared<T> to, const T* from) {
  constexpr int bytes = W * sizeof(T);
  const u32 at = to.address();
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(bytes) : "memory");
}
WL_FN void wl_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int N>
WL_FN void wl_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
#else
template <int W, class T>
WL_FN void wl_send(wl_shared<T> to, const T* from) {
  wl_copy<W>(to.pointer(), from);
}
template <int W, class T>
WL_FN void wl_send_in(wl_shared<T> to, const T* from, bool inside) {
  typedef typename wl_words<W * sizeof(T)>::t C;
  C c = {};
  if (inside) c = *(const C*)from;
  *(C*)to.pointer() = c;
}
WL_FN void wl_commit() {}
template <int N>
WL_FN void wl_wait() {}
#endif
// Phases (compiler/kernel/instrs.def): PTX's mbarriers.
#if __CUDA_ARCH__ >= 800
template <int Count, int Arrivals, int Computing, class T>
WL_FN void wl_begin_phases(wl_shared<T> p, int thread) {
  if (thread != 0) return;
  WL_UNROLL for (int i = 0; i < Count; ++i) asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"((p + i).address()),
                                                         "n"(Arrivals) : "memory");
}
template <class T>
WL_FN void wl_arrive(wl_shared<T> p) {
  __syncwarp();
  if ((threadIdx.x & 31) != 0) return;
  asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.shared.b64 state, [%0];\n\t}" ::"r"(p.address()) : "memory");
}
template <class T>
WL_FN void wl_arrive_copied(wl_shared<T> p) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(p.address()) : "memory");
}
#if __CUDA_ARCH__ >= 900
#define WL_TRY_WAIT "mbarrier.try_wait"  // sleeps for a while
#else
#define WL_TRY_WAIT "mbarrier.test_wait"
#endif
template <class T>
WL_FN void wl_await(wl_shared<T> p, long parity) {
  const u32 at = p.address(), odd = (u32)parity;
  u32 ended;
  do {
    asm volatile("{\n\t.reg .pred ended;\n\t" WL_TRY_WAIT
                 ".parity.shared.b64 ended, [%1], %2;\n\tselp.u32 %0, 1, 0, ended;\n\t}"
                 : "=r"(ended)
                 : "r"(at), "r"(odd)
                 : "memory");
  } while (ended == 0);
}
#endif
// Blocks that count each other.
WL_FN void wl_release() {
  __threadfence();
}
WL_FN void wl_acquire() {
  __threadfence();
}
template <int N>
WL_FN bool wl_count(char* counters, long group) {
  return atomicInc((u32*)counters + group, N - 1) == N - 1;  // and is zero again
}
// Clusters. A buffer has a part of n elements in every block; an element's number says which.
WL_FN void wl_meet() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
#endif
}
template <class T, long N>
struct wl_cluster {
  u32 base;
  long at;
  wl_cluster operator+(long d) const { return {base, at + d}; }
  u32 address() const {
    u32 out;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(out)
        : "r"(base + (u32)(at % N * (long)sizeof(T))), "r"((u32)(at / N)));
    return out;
  }
};
template <int W, class T, long N>
WL_FN void wl_read(T* to, wl_cluster<T, N> from) {
  const u32 a = from.address();
  if constexpr (W * sizeof(T) == 16) {
    uint4 c;
    asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(c.x), "=r"(c.y), "=r"(c.z), "=r"(c.w)
                 : "r"(a));
    *(uint4*)to = c;
  } else if constexpr (W * sizeof(T) == 8) {
    uint2 c;
    asm volatile("ld.shared::cluster.v2.u32 {%0, %1}, [%2];" : "=r"(c.x), "=r"(c.y) : "r"(a));
    *(uint2*)to = c;
  } else if constexpr (W * sizeof(T) == 4) {
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(*(u32*)to) : "r"(a));
  } else if constexpr (W * sizeof(T) == 2) {
    asm volatile("ld.shared::cluster.u16 %0, [%1];" : "=h"(*(unsigned short*)to) : "r"(a));
  } else {
    u32 c;
    asm volatile("ld.shared::cluster.u8 %0, [%1];" : "=r"(c) : "r"(a));
    *(unsigned char*)to = (unsigned char)c;
  }
}
template <int W, class T, long N>
WL_FN void wl_write(wl_cluster<T, N> to, const T* from) {
  const u32 a = to.address();
  if constexpr (W * sizeof(T) == 16) {
    const uint4 c = *(const uint4*)from;
    asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(a), "r"(c.x), "r"(c.y), "r"(c.z), "r"(c.w)
                 : "memory");
  } else if constexpr (W * sizeof(T) == 8) {
    const uint2 c = *(const uint2*)from;
    asm volatile("st.shared::cluster.v2.u32 [%0], {%1, %2};" ::"r"(a), "r"(c.x), "r"(c.y) : "memory");
  } else if constexpr (W * sizeof(T) == 4) {
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(a), "r"(*(const u32*)from) : "memory");
  } else if constexpr (W * sizeof(T) == 2) {
    asm volatile("st.shared::cluster.u16 [%0], %1;" ::"r"(a), "h"(*(const unsigned short*)from) : "memory");
  } else {
    asm volatile("st.shared::cluster.u8 [%0], %1;" ::"r"(a), "r"((u32) * (const unsigned char*)from) : "memory");
  }
}

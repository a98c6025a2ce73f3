// The CUDA half, third part: matrix instructions.
// Matrix instructions, which multiply what the 32 lanes of a wave hold together (compiler/target/matrix.def).
#if __CUDA_ARCH__ >= 800
#define WL_MMA_16X8(name, sum, how, letter)                                                                 \
  WL_FN void name(wl_vec<sum, 2>& c0, wl_vec<sum, 2>& c1, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) { \
    asm volatile("mma.sync.aligned." how                                                                    \
                 " {%0, %1, %2, %3}, "                                                                      \
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                                            \
                 : "+" letter(c0.e[0]), "+" letter(c0.e[1]), "+" letter(c1.e[0]), "+" letter(c1.e[1])       \
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));                                   \
  }
WL_MMA_16X8(wl_mma_m16n8k16_bf16, f32, "m16n8k16.row.col.f32.bf16.bf16.f32", "f")
WL_MMA_16X8(wl_mma_m16n8k16_f16, f32, "m16n8k16.row.col.f32.f16.f16.f32", "f")
WL_MMA_16X8(wl_mma_m16n8k8_tf32, f32, "m16n8k8.row.col.f32.tf32.tf32.f32", "f")
WL_MMA_16X8(wl_mma_m16n8k32_u8i8, i32, "m16n8k32.row.col.s32.u8.s8.s32", "r")
WL_MMA_16X8(wl_mma_m16n8k32_i8u8, i32, "m16n8k32.row.col.s32.s8.u8.s32", "r")
// Blocks of shared memory (gpu_types.h): lanes 8 b to 8 b + 7 name the rows of block b.
#define WL_LDMATRIX(name, how)                                                               \
  template <int N>                                                                           \
  WL_FN wl_blocks_of<N> name(u32 row) {                                                      \
    wl_blocks_of<N> w;                                                                       \
    if constexpr (N == 4)                                                                    \
      asm volatile("ldmatrix.sync.aligned.m8n8.x4" how ".shared.b16 {%0, %1, %2, %3}, [%4];" \
                   : "=r"(w.e[0]), "=r"(w.e[1]), "=r"(w.e[2]), "=r"(w.e[3])                  \
                   : "r"(row)                                                                \
                   : "memory");                                                              \
    else if constexpr (N == 2)                                                               \
      asm volatile("ldmatrix.sync.aligned.m8n8.x2" how ".shared.b16 {%0, %1}, [%2];"         \
                   : "=r"(w.e[0]), "=r"(w.e[1])                                              \
                   : "r"(row)                                                                \
                   : "memory");                                                              \
    else                                                                                     \
      asm volatile("ldmatrix.sync.aligned.m8n8.x1" how ".shared.b16 {%0}, [%1];"             \
                   : "=r"(w.e[0])                                                            \
                   : "r"(row)                                                                \
                   : "memory");                                                              \
    return w;                                                                                \
  }
WL_LDMATRIX(wl_ldmatrix, "")
WL_LDMATRIX(wl_ldmatrix_across, ".trans")
template <class T, int N, long G, long D1, long D2>
WL_FN wl_blocks_of<N> wl_blocks(wl_shared<T> p) {
  return wl_ldmatrix<N>((p + wl_to_row_along<T, N>(threadIdx.x & 31, G, D1, D2)).address());
}
template <class T, int N, long G, long D1, long D2>
WL_FN wl_blocks_of<N> wl_blocks_across(wl_shared<T> p) {
  return wl_ldmatrix_across<N>((p + wl_to_row_across<N>(threadIdx.x & 31, G, D1, D2)).address());
}
#endif
// Products of factors in shared memory, which the 128 threads of a group of waves compute together, in 16 bits, for 64
// rows and 64, 128 or 256 columns (compiler/kernel/near.h). Across: along rows or columns, not along k.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
// What threads have stored is there for the instructions that multiply in memory, and for copies of boxes.
WL_FN void wl_fence_near() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
WL_FN void wl_barrier_near() {
  wl_fence_near();
  __syncthreads();
}
template <int N>
WL_FN void wl_barrier_near_of() {
  wl_fence_near();
  wl_barrier_of<N>();
}
template <class T>
WL_FN void wl_await_near(wl_shared<T> p, long parity) {
  wl_await(p, parity);
  wl_fence_near();
}
// Boxes of matrices (compiler/kernel/near.h), by maps of 128 bytes that describe the matrix. The values of the fields
// are those of PTX ISA, "tensormap.replace"; ptxas before CUDA 12.7 took a stride in pieces of 16 bytes, not in bytes.
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ < 1207
#define WL_MAP_STRIDE(bytes) ((bytes) >> 4)
#else
#define WL_MAP_STRIDE(bytes) (bytes)
#endif
#define WL_MAP_FIELD(field, how, value, constraint) \
  asm volatile("tensormap.replace.tile." field ".shared::cta.b1024." how ";" ::"r"(at), constraint(value) : "memory")
// Made by the first wave, in the shared memory `by`, which nothing else uses yet.
template <int Rows, int Columns, bool Bf16, class T, class S>
WL_FN const char* wl_box_map(const T* from, char* workspace, long place_of_map, S by, int place, long rows,
                             long columns, long pitch) {
  char* const map = workspace + place_of_map;
  if (place >= 32) return map;
  const u32 at = by.address();
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(at + 4 * place), "r"(0) : "memory");
  __syncwarp();
  if (place == 0) {
    WL_MAP_FIELD("global_address", "b64 [%0], %1", (u64)from, "l");
    WL_MAP_FIELD("rank", "b32 [%0], %1", 1, "r");  // of a matrix; that of a vector is 0
    WL_MAP_FIELD("box_dim", "b32 [%0], 0, %1", Columns, "r");
    WL_MAP_FIELD("box_dim", "b32 [%0], 1, %1", Rows, "r");
    WL_MAP_FIELD("global_dim", "b32 [%0], 0, %1", (u32)columns, "r");
    WL_MAP_FIELD("global_dim", "b32 [%0], 1, %1", (u32)rows, "r");
    WL_MAP_FIELD("global_stride", "b64 [%0], 0, %1", (u64)WL_MAP_STRIDE(pitch * sizeof(T)), "l");
    WL_MAP_FIELD("element_stride", "b32 [%0], 0, %1", 1, "r");
    WL_MAP_FIELD("element_stride", "b32 [%0], 1, %1", 1, "r");
    WL_MAP_FIELD("elemtype", "b32 [%0], %1", sizeof(T) == 1 ? 0 : Bf16 ? 10 : 6, "n");
    WL_MAP_FIELD("interleave_layout", "b32 [%0], %1", 0, "n");
    WL_MAP_FIELD("swizzle_mode", "b32 [%0], %1", 3, "n");  // of 128 bytes
    WL_MAP_FIELD("fill_mode", "b32 [%0], %1", 0, "n");     // zeros
  }
  __syncwarp();
  asm volatile(
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(
          map),
      "r"(at)
      : "memory");
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
  return map;
}
// What made the maps is overwritten by copies next.
WL_FN void wl_maps_are_made() {
  wl_fence_near();
}
// The phase counts the bytes; that the thread arrives there comes later.
template <int Rows, int Boxes, int Copiers, class S, class P>
WL_FN void wl_box_load(const char* map, int place, long column, long row, S to, P phase) {
  if (place != 0) return;
  const u32 at = to.address(), counts = phase.address();
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(counts), "r"(Rows * Boxes * 128)
               : "memory");
  WL_UNROLL for (int i = 0; i < Boxes; ++i) asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
          "r"(at + i * Rows * 128),
      "l"(map), "r"((int)column + i * (128 / (int)sizeof(*to.p))), "r"((int)row), "r"(counts) : "memory");
}
WL_FN void wl_mma_begin() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
WL_FN void wl_mma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
WL_FN void wl_mma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
// Swizzled by 128 bytes; 1024 bytes from eight rows to the next, and 8192 from a panel to the next.
WL_FN unsigned long long wl_matrix_descriptor(u32 address) {
  return (unsigned long long)((address & 0x3ffff) >> 4) | 512ULL << 16 | 64ULL << 32 | 1ULL << 62;
}
#define WL_8(m, p) m(p##0), m(p##1), m(p##2), m(p##3), m(p##4), m(p##5), m(p##6), m(p##7)
#define WL_SUM(i) wl_vec<f32, 2>& c##i
#define WL_INOUT(i) "+f"(c##i.e[0]), "+f"(c##i.e[1])
#define WL_16(m) WL_8(m, 0), WL_8(m, 1)
#define WL_32(m) WL_16(m), WL_8(m, 2), WL_8(m, 3)
#define WL_64(m) WL_32(m), WL_8(m, 4), WL_8(m, 5), WL_8(m, 6), WL_8(m, 7)
#define WL_R64                                                             \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define WL_R128                                                                        \
  WL_R64                                                                               \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define WL_R256                                                                                  \
  WL_R128                                                                                        \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "           \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "             \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define WL_WGMMA(name, type, n, sums, registers, a_at, b_at, across_a, across_b)                                    \
  template <int AcrossA, int AcrossB, class T>                                                                      \
  WL_FN void name(wl_shared<T> a, wl_shared<T> b, sums(WL_SUM)) {                                                   \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" n "k16.f32." type "." type " {" registers "}, " a_at ", " b_at \
                 ", 1, 1, 1, " across_a ", " across_b ";"                                                           \
                 : sums(WL_INOUT)                                                                                   \
                 : "l"(wl_matrix_descriptor(a.address())), "l"(wl_matrix_descriptor(b.address())), "n"(AcrossA),    \
                   "n"(AcrossB));                                                                                   \
  }
// The left factor in registers.
#define WL_WGMMA_HELD(name, type, n, sums, registers, words, b_at, across_b)                                           \
  template <int AcrossB, class T>                                                                                      \
  WL_FN void name(u32 a0, u32 a1, u32 a2, u32 a3, wl_shared<T> b, sums(WL_SUM)) {                                      \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" n "k16.f32." type "." type " {" registers "}, {" words "}, " b_at \
                 ", 1, 1, 1, " across_b ";"                                                                            \
                 : sums(WL_INOUT)                                                                                      \
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(wl_matrix_descriptor(b.address())), "n"(AcrossB));          \
  }
#define WL_WGMMAS_HELD(name, type)                                                     \
  WL_WGMMA_HELD(name, type, "64", WL_16, WL_R64, "%32, %33, %34, %35", "%36", "%37")   \
  WL_WGMMA_HELD(name, type, "128", WL_32, WL_R128, "%64, %65, %66, %67", "%68", "%69") \
  WL_WGMMA_HELD(name, type, "256", WL_64, WL_R256, "%128, %129, %130, %131", "%132", "%133")
WL_WGMMAS_HELD(wl_mma_wgmma64_held_bf16, "bf16")
WL_WGMMAS_HELD(wl_mma_wgmma64_held_f16, "f16")
#define WL_WGMMAS(name, type)                                             \
  WL_WGMMA(name, type, "64", WL_16, WL_R64, "%32", "%33", "%34", "%35")   \
  WL_WGMMA(name, type, "128", WL_32, WL_R128, "%64", "%65", "%66", "%67") \
  WL_WGMMA(name, type, "256", WL_64, WL_R256, "%128", "%129", "%130", "%131")
WL_WGMMAS(wl_mma_wgmma64_bf16, "bf16")
WL_WGMMAS(wl_mma_wgmma64_f16, "f16")
// Of bytes, along k; sums are i32.
#define WL_WHOLE_SUM(i) wl_vec<i32, 2>& c##i
#define WL_WHOLE_INOUT(i) "+r"(c##i.e[0]), "+r"(c##i.e[1])
#define WL_WGMMA_BYTES(name, types, n, sums, registers, a_at, b_at)                                                \
  template <int AcrossA, int AcrossB, class A, class B>                                                            \
  WL_FN void name(wl_shared<A> a, wl_shared<B> b, sums(WL_WHOLE_SUM)) {                                            \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" n "k32.s32." types " {" registers "}, " a_at ", " b_at ", 1;" \
                 : sums(WL_WHOLE_INOUT)                                                                            \
                 : "l"(wl_matrix_descriptor(a.address())), "l"(wl_matrix_descriptor(b.address())));                \
  }
#define WL_WGMMAS_BYTES(name, types)                               \
  WL_WGMMA_BYTES(name, types, "64", WL_16, WL_R64, "%32", "%33")   \
  WL_WGMMA_BYTES(name, types, "128", WL_32, WL_R128, "%64", "%65") \
  WL_WGMMA_BYTES(name, types, "256", WL_64, WL_R256, "%128", "%129")
WL_WGMMAS_BYTES(wl_mma_wgmma64_u8i8, "u8.s8")
WL_WGMMAS_BYTES(wl_mma_wgmma64_i8u8, "s8.u8")
#endif

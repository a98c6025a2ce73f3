// The HIP half: clang's builtins alone, so that it compiles without ROCm (-nogpuinc -nogpulib).
#define WL_FN static inline __attribute__((always_inline, unused, device))
#define WL_LINE
#define WL_PASS
#define WL_HERE
#define WL_OUTSIDE(V, fill) wl_splat<V>(fill)
#define WL_UNROLL _Pragma("unroll")
#define WL_SERIAL _Pragma("nounroll")
#define WL_KERNEL(name, grid, threads, ...)                                                              \
  extern "C" __attribute__((global)) void __attribute__((amdgpu_flat_work_group_size(threads, threads))) \
  name(__VA_ARGS__)
#define WL_RESIDENT_KERNEL(waves, name, grid, threads, ...)                                              \
  extern "C" __attribute__((global)) void __attribute__((amdgpu_flat_work_group_size(threads, threads))) \
  __attribute__((amdgpu_waves_per_eu(waves))) name(__VA_ARGS__)
#define WL_IN(T, p, n) const T* __restrict__ p
#define WL_OUT(T, p, n) T* __restrict__ p
#define WL_ONCE WL_OUT
#define WL_PASSES(bytes) char *workspace, const int pass
#define WL_WORK(T, p, at, n) T* p = (T*)(workspace + at)
#define WL_OWN(T, p, first, bytes, at, n) T* __restrict__ p = (T*)(workspace + first + block * bytes + at)
#define WL_SHARED(T, p, at, n) T* __restrict__ p = (T*)(wl_arena + at)
#define WL_ENTER                                        \
  const long block = __builtin_amdgcn_workgroup_id_x(); \
  const int thread = __builtin_amdgcn_workitem_id_x();  \
  (void)block;                                          \
  (void)thread
#define WL_EX2 __builtin_amdgcn_exp2f
extern __attribute__((shared, aligned(128))) char wl_arena[];
#pragma clang force_cuda_host_device begin

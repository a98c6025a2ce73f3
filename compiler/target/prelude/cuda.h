// The CUDA half: everything that CUDA spells its own way. For NVRTC with --device-as-default-execution-space and
// --device-int128.
#define WL_FN static __forceinline__
#define WL_LINE
#define WL_PASS
#define WL_HERE
#define WL_OUTSIDE(V, fill) wl_splat<V>(fill)
#define WL_UNROLL _Pragma("unroll")
#define WL_SERIAL _Pragma("unroll 1")
#define WL_KERNEL(name, grid, threads, ...) extern "C" __global__ void __launch_bounds__(threads) name(__VA_ARGS__)
#define WL_RESIDENT_KERNEL(blocks, name, grid, threads, ...) \
  extern "C" __global__ void __launch_bounds__(threads, blocks) name(__VA_ARGS__)
#define WL_CLUSTER_KERNEL(cluster, shared, name, grid, threads, ...) \
  extern "C" __global__ void __cluster_dims__(cluster, 1, 1) __launch_bounds__(threads) name(__VA_ARGS__)
#define WL_IN(T, p, n) const T* __restrict__ p
#define WL_OUT(T, p, n) T* __restrict__ p
#define WL_ONCE WL_OUT
#define WL_PASSES(bytes) char *workspace, const int pass
#define WL_WORK(T, p, at, n) T* p = (T*)(workspace + at)
#define WL_OWN(T, p, first, bytes, at, n) T* __restrict__ p = (T*)(workspace + first + block * bytes + at)
#define WL_SHARED(T, p, at, n) \
  const wl_shared<T> p {       \
    (T*)(wl_arena + at)        \
  }
#define WL_CLUSTER(T, p, at, n)                      \
  const wl_cluster<T, n> p {                         \
    (u32) __cvta_generic_to_shared(wl_arena + at), 0 \
  }
#define WL_ENTER                  \
  const long block = blockIdx.x;  \
  const int thread = threadIdx.x; \
  (void)block;                    \
  (void)thread
extern __shared__ __align__(1024) char wl_arena[];

#define __builtin_convertvector(x, ...) wl_cast<__VA_ARGS__>(x)
#define __builtin_inff() __int_as_float(0x7f800000)
#define __builtin_inf() __longlong_as_double(0x7ff0000000000000LL)
#define __builtin_nanf(s) __int_as_float(0x7fc00000)
#define __builtin_nan(s) __longlong_as_double(0x7ff8000000000000LL)
#define __builtin_fabsf fabsf
#define __builtin_fabs fabs
#define __builtin_copysignf copysignf
#define __builtin_copysign copysign
#define __builtin_sqrtf sqrtf
#define __builtin_sqrt sqrt
#define __builtin_rintf rintf
#define __builtin_rint rint
#define __builtin_floorf floorf
#define __builtin_floor floor
#define __builtin_ceilf ceilf
#define __builtin_ceil ceil
#define __builtin_truncf truncf
#define __builtin_trunc trunc
#define __builtin_fmod fmod
#define __builtin_fmaf fmaf
#define __builtin_fma fma
#define __builtin_exp exp
#define __builtin_exp2 exp2
#define __builtin_expm1 expm1
#define __builtin_log log
#define __builtin_log2 log2
#define __builtin_log1p log1p
#define __builtin_erf erf
#define __builtin_tanh tanh
#define __builtin_sin sin
#define __builtin_cos cos
#define __builtin_tan tan
#define __builtin_atan atan
#define __builtin_pow pow
// CUDA's own, of half as many instructions as those of cpu_math.h or fewer, and exact to two units in the last place.
#define WL_EXP expf
#define WL_EXP2 exp2f
#define WL_ERF erff
#define WL_TANH tanhf
WL_FN float wl_ex2(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}
#define WL_EX2 wl_ex2
// Conversions by instructions, from sm_80 on; NaN becomes one of NaN's bit patterns.
#if __CUDA_ARCH__ >= 800
#define WL_NARROW_FLOAT(name, type)                                              \
  WL_FN unsigned short name(float x) {                                           \
    unsigned short h;                                                            \
    asm("cvt.rn." type ".f32 %0, %1;" : "=h"(h) : "f"(x));                       \
    return h;                                                                    \
  }                                                                              \
  WL_FN unsigned name##_pair(float low, float high) {                            \
    unsigned both;                                                               \
    asm("cvt.rn." type "x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low)); \
    return both;                                                                 \
  }
WL_NARROW_FLOAT(wl_nearest_bf16, "bf16")
WL_NARROW_FLOAT(wl_nearest_f16, "f16")
WL_FN float wl_exact_f16(unsigned short h) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
  return x;
}
#define WL_NAN_OR(name, what)                                    \
  WL_FN float name(float a, float b) {                           \
    float r;                                                     \
    asm(what ".NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); \
    return r;                                                    \
  }
WL_NAN_OR(wl_nan_or_max, "max")
WL_NAN_OR(wl_nan_or_min, "min")
#define WL_MAX wl_nan_or_max
#define WL_MIN wl_nan_or_min
#define WL_TO_BF16 wl_nearest_bf16
#define WL_TO_F16 wl_nearest_f16
#define WL_FROM_F16 wl_exact_f16
#endif

// The HIP half, third part: matrix instructions.
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
#if defined(__gfx950__)
#define WL_MFMA_32(name, type, multiply)                                                                          \
  WL_FN void name(wl_vec<f32, 4>& c, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1, u32 b2, u32 b3) {            \
    typedef type factor __attribute__((ext_vector_type(8)));                                                      \
    typedef u32 words __attribute__((ext_vector_type(4)));                                                        \
    typedef f32 sums __attribute__((ext_vector_type(4)));                                                         \
    const words a = {a0, a1, a2, a3}, b = {b0, b1, b2, b3};                                                       \
    c = __builtin_bit_cast(wl_vec<f32, 4>, multiply(__builtin_bit_cast(factor, b), __builtin_bit_cast(factor, a), \
                                                    __builtin_bit_cast(sums, c), 0, 0, 0));                       \
  }
WL_MFMA_32(wl_mma_mfma32_f16, _Float16, __builtin_amdgcn_mfma_f32_16x16x32_f16)
WL_MFMA_32(wl_mma_mfma32_bf16, __bf16, __builtin_amdgcn_mfma_f32_16x16x32_bf16)
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
// Of bytes: whether the left and the right factor have signs.
#define WL_WMMA_16_BYTES(name, left, right)                                                                           \
  WL_FN void name(i32& c0, i32& c1, i32& c2, i32& c3, i32& c4, i32& c5, i32& c6, i32& c7, u32 a0, u32 a1, u32 a2,     \
                  u32 a3, u32 b0, u32 b1, u32 b2, u32 b3) {                                                           \
    typedef i32 words __attribute__((ext_vector_type(4)));                                                            \
    typedef i32 sums __attribute__((ext_vector_type(8)));                                                             \
    const words a = {(i32)a0, (i32)a1, (i32)a2, (i32)a3}, b = {(i32)b0, (i32)b1, (i32)b2, (i32)b3};                   \
    const sums c =                                                                                                    \
        __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(left, a, right, b, (sums){c0, c1, c2, c3, c4, c5, c6, c7}, false); \
    c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3], c4 = c[4], c5 = c[5], c6 = c[6], c7 = c[7];                           \
  }
WL_WMMA_16_BYTES(wl_mma_wmma16_u8i8, false, true)
WL_WMMA_16_BYTES(wl_mma_wmma16_i8u8, true, false)
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
#define WL_WMMA_16_HALVES_BYTES(name, left, right)                                                                 \
  WL_FN void name(wl_vec<i32, 4>& c0, wl_vec<i32, 4>& c1, u32 a0, u32 a1, u32 b0, u32 b1) {                        \
    typedef i32 words __attribute__((ext_vector_type(2)));                                                         \
    typedef i32 sums __attribute__((ext_vector_type(8)));                                                          \
    const words a = {(i32)a0, (i32)a1}, b = {(i32)b0, (i32)b1};                                                    \
    const sums c = __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(                                               \
        right, b, left, a, (sums){c0.e[0], c0.e[1], c0.e[2], c0.e[3], c1.e[0], c1.e[1], c1.e[2], c1.e[3]}, false); \
    for (int i = 0; i < 4; ++i) c0.e[i] = c[i], c1.e[i] = c[4 + i];                                                \
  }
WL_WMMA_16_HALVES_BYTES(wl_mma_wmma16_halves_u8i8, false, true)
WL_WMMA_16_HALVES_BYTES(wl_mma_wmma16_halves_i8u8, true, false)
#endif

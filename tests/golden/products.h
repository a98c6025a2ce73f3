// The groups of the goldens that have a contraction. They are small enough to read, one for each shape of kernel.
#pragma once

#include <vector>

#include "tests/golden/golden.h"

namespace wl::testing {

inline const std::vector<Golden> kProducts = {
    {"gemm_bias_gelu",
     "cpu:generic",
     {},
     R"(graph {
  %0 = input "a" : f32[96,64] normal(0,1)
  %1 = input "b" : f32[64,80] normal(0,1)
  %2 = input "bias" : f32[80] normal(0,1)
  %3 = contract %0 %1 "mk,kn->mn" : f32[96,80]
  %4 = broadcast %2 dims=[1] : f32[96,80]
  %5 = add %3 %4 : f32[96,80]
  %6 = constant 0.70710677 : f32[96,80]
  %7 = mul %5 %6 : f32[96,80]
  %8 = erf %7 : f32[96,80]
  %9 = constant 1 : f32[96,80]
  %10 = add %8 %9 : f32[96,80]
  %11 = mul %5 %10 : f32[96,80]
  output "y" %11
})"},
    {"byte_product",  // a product of bytes by bytes, whose results are scaled by column and rounded to bytes
     "cpu:avx512_vnni",
     {},
     R"(graph {
  %0 = input "a" : u8[96,16,4] uniform(0,255)
  %1 = input "w" : i8[2,16,32,4] uniform(-128,127)
  %2 = input "sums" : i32[2,32] uniform(-9999,9999)
  %3 = input "scale" : f32[2,32] normal(0,1)
  %4 = contract %0 %1 "mkj,pkqj->mpq" : i32[96,2,32]
  %5 = broadcast %2 dims=[1,2] : i32[96,2,32]
  %6 = sub %4 %5 : i32[96,2,32]
  %7 = cast %6 : f32[96,2,32]
  %8 = broadcast %3 dims=[1,2] : f32[96,2,32]
  %9 = mul %7 %8 : f32[96,2,32]
  %10 = round %9 : f32[96,2,32]
  %11 = constant 7 : f32[96,2,32]
  %12 = add %10 %11 : f32[96,2,32]
  %13 = constant 0 : f32[96,2,32]
  %14 = max %12 %13 : f32[96,2,32]
  %15 = constant 255 : f32[96,2,32]
  %16 = min %14 %15 : f32[96,2,32]
  %17 = cast %16 : u8[96,2,32]
  output "y" %17
})"},
    {"byte_convolution",  // the image is copied in words of four channels, padded with its zero point
     "cpu:avx512_vnni",
     {{"turn_tiles", 1}, {"copy_image", 2}, {"mr", 14}, {"nv", 2}, {"pack_b", 0}, {"pack_a", 0}},
     R"(graph {
  %0 = input "x" : u8[8,12,14] uniform(0,255)
  %1 = input "w" : i8[2,3,3,32,4] uniform(-128,127)
  %2 = pad %0 low=[0,1,1] high=[0,1,1] value=3 : u8[8,14,16]
  %3 = window %2 axes=[1,2] params=[3,1,1,3,1,1] : u8[8,12,14,3,3]
  %4 = reshape %3 : u8[2,4,12,14,3,3]
  %5 = contract %4 %1 "kjhwrs,krsqj->qhw" : i32[32,12,14]
  output "y" %5
})"},
    {"bf16_product",  // two bf16 elements along k are multiplied at a time
     "cpu:avx512_bf16",
     {{"widen", 0}, {"pack_a", 0}},
     R"(graph {
  %0 = input "a" : bf16[96,66] normal(0,1)
  %1 = input "b" : bf16[66,80] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : bf16[96,80]
  output "y" %2
})"},
    {"bf16_parts",  // pairs of bf16 elements in panels are widened to f32
     "cpu:avx512_bf16",
     {{"widen", 1}},
     R"(graph {
  %0 = input "a" : bf16[51,24,2] normal(0,1)
  %1 = input "w" : bf16[2,24,32,2] normal(0,1)
  %2 = contract %0 %1 "mkj,pkqj->mpq" : bf16[51,2,32]
  output "y" %2
})"},
    {"bf16_tiles",  // 51 rows and 24 pairs along k are no multiples of a tile's 16; with an epilogue
     "cpu:amx",
     {},
     R"(graph {
  %0 = input "a" : bf16[51,24,2] normal(0,1)
  %1 = input "w" : bf16[2,24,64,2] normal(0,1)
  %2 = input "bias" : bf16[2,64] normal(0,1)
  %3 = contract %0 %1 "mkj,pkqj->mpq" : bf16[51,2,64]
  %4 = broadcast %2 dims=[1,2] : bf16[51,2,64]
  %5 = add %3 %4 : bf16[51,2,64]
  %6 = abs %5 : bf16[51,2,64]
  output "y" %6
})"},
    {"byte_tiles",  // both operands are copied to scratch in the order that tile registers take
     "cpu:amx",
     {{"kc", 256}},
     R"(graph {
  %0 = input "a" : u8[512,64] uniform(0,255)
  %1 = input "b" : i8[512,80] uniform(-128,127)
  %2 = contract %0 %1 "km,kn->mn" : i32[64,80]
  output "y" %2
})"},
    {"narrow_weight",  // weights of i8 in the panel layout are widened and multiplied by a scale for each column
     "cpu:avx512",
     {},
     R"(graph {
  %0 = input "x" : f32[4,96] normal(0,1)
  %1 = input "w" : i8[2,96,32] uniform(-128,127)
  %2 = input "scale" : f32[2,32] normal(0,1)
  %3 = cast %1 : f32[2,96,32]
  %4 = broadcast %2 dims=[0,2] : f32[2,96,32]
  %5 = mul %3 %4 : f32[2,96,32]
  %6 = contract %0 %5 "mk,pkq->mpq" : f32[4,2,32]
  output "y" %6
})"},
    {"triangular_product",  // a factor is zero above its diagonal, so products with these zeros are left out
     "cpu:avx512",
     {},
     R"(graph {
  %0 = input "a" : f32[64,64] normal(0,1)
  %1 = input "b" : f32[64,80] normal(0,1)
  %2 = iota axis=[0] : i64[64,64]
  %3 = iota axis=[1] : i64[64,64]
  %4 = ge %2 %3 : b1[64,64]
  %5 = constant 0 : f32[64,64]
  %6 = select %4 %0 %5 : f32[64,64]
  %7 = contract %6 %1 "mk,kn->mn" : f32[64,80]
  output "y" %7
})"},
    {"batched_q_kt",
     "cpu:generic",
     {},
     R"(graph {
  %0 = input "q" : f32[32,128] normal(0,1)
  %1 = input "k" : f32[32,128] normal(0,1)
  %2 = reshape %0 : f32[32,4,32]
  %3 = transpose %2 perm=[1,0,2] : f32[4,32,32]
  %4 = reshape %1 : f32[32,4,32]
  %5 = transpose %4 perm=[1,2,0] : f32[4,32,32]
  %6 = contract %3 %5 "hmk,hkn->hmn" : f32[4,32,32]
  %7 = constant 0.17677669 : f32[4,32,32]
  %8 = mul %6 %7 : f32[4,32,32]
  output "s" %8
})"},
    {"strided_convolution",
     "cpu:avx2",
     {{"mr", 4}, {"nv", 2}},
     R"(graph {
  %0 = input "x" : f32[6,19,19] normal(0,1)
  %1 = input "w" : f32[8,6,3,3] normal(0,1)
  %2 = input "bias" : f32[8] normal(0,1)
  %3 = pad %0 low=[0,1,1] high=[0,1,1] value=0 : f32[6,21,21]
  %4 = window %3 axes=[1,2] params=[3,2,1,3,2,1] : f32[6,10,10,3,3]
  %5 = contract %4 %1 "kmoli,nkli->nmo" : f32[8,10,10]
  %6 = broadcast %2 dims=[0] : f32[8,10,10]
  %7 = add %5 %6 : f32[8,10,10]
  output "y" %7
})"},
    {"convolution_in_panels",
     "cpu:avx512",
     {{"turn_tiles", 1}},
     R"(graph {
  %0 = input "x" : f32[24,7,7] normal(0,1)
  %1 = input "w" : f32[2,24,3,3,32] normal(0,1)
  %2 = input "bias" : f32[2,32] normal(0,1)
  %3 = input "residual" : f32[2,32,7,7] normal(0,1)
  %4 = pad %0 low=[0,1,1] high=[0,1,1] value=0 : f32[24,9,9]
  %5 = window %4 axes=[1,2] params=[3,1,1,3,1,1] : f32[24,7,7,3,3]
  %6 = contract %5 %1 "kmoli,nkliu->numo" : f32[2,32,7,7]
  %7 = broadcast %2 dims=[0,1] : f32[2,32,7,7]
  %8 = add %6 %7 : f32[2,32,7,7]
  %9 = add %8 %3 : f32[2,32,7,7]
  %10 = constant 0 : f32[2,32,7,7]
  %11 = max %9 %10 : f32[2,32,7,7]
  output "y" %11
})"},
    {"convolution_channels_last",
     "cpu:avx512",
     {},
     R"(graph {
  %0 = input "x" : f32[7,7,24] normal(0,1)
  %1 = input "w" : f32[24,3,3,64] normal(0,1)
  %2 = input "bias" : f32[64] normal(0,1)
  %3 = input "residual" : f32[7,7,64] normal(0,1)
  %4 = pad %0 low=[1,1,0] high=[1,1,0] value=0 : f32[9,9,24]
  %5 = window %4 axes=[0,1] params=[3,1,1,3,1,1] : f32[7,7,24,3,3]
  %6 = contract %5 %1 "mokli,klin->mon" : f32[7,7,64]
  %7 = broadcast %2 dims=[2] : f32[7,7,64]
  %8 = add %6 %7 : f32[7,7,64]
  %9 = add %8 %3 : f32[7,7,64]
  %10 = constant 0 : f32[7,7,64]
  %11 = max %9 %10 : f32[7,7,64]
  output "y" %11
})"},
    {"attention",
     "cpu:avx512",
     {},
     R"(graph {
  %0 = input "q" : f32[12,128,64] normal(0,1)
  %1 = input "k" : f32[12,128,64] normal(0,1)
  %2 = input "v" : f32[12,128,64] normal(0,1)
  %3 = input "mask" : f32[128] normal(0,1)
  %4 = contract %0 %1 "bmk,bnk->bmn" : f32[12,128,128]
  %5 = constant 0.125 : f32[12,128,128]
  %6 = mul %4 %5 : f32[12,128,128]
  %7 = broadcast %3 dims=[2] : f32[12,128,128]
  %8 = add %6 %7 : f32[12,128,128]
  %9 = reduce_max %8 axes=[2] : f32[12,128]
  %10 = broadcast %9 dims=[0,1] : f32[12,128,128]
  %11 = sub %8 %10 : f32[12,128,128]
  %12 = exp %11 : f32[12,128,128]
  %13 = reduce_sum %12 axes=[2] : f32[12,128]
  %14 = broadcast %13 dims=[0,1] : f32[12,128,128]
  %15 = div %12 %14 : f32[12,128,128]
  %16 = contract %15 %2 "bmn,bnd->mbd" : f32[128,12,64]
  %17 = reshape %16 : f32[128,768]
  output "y" %17
})"},
    {"attention_in_turns",
     "cpu:avx512",
     {{"block_rows", 64}, {"turn_length", 128}, {"s1.nv", 2}, {"s1.pack_b", 0}, {"s2.tile_vectors", 4}},
     R"(graph {
  %0 = input "q" : f32[2,512,64] normal(0,1)
  %1 = input "k" : f32[2,512,64] normal(0,1)
  %2 = input "v" : f32[2,512,64] normal(0,1)
  %3 = contract %0 %1 "bmk,bnk->bmn" : f32[2,512,512]
  %4 = reduce_max %3 axes=[2] : f32[2,512]
  %5 = broadcast %4 dims=[0,1] : f32[2,512,512]
  %6 = sub %3 %5 : f32[2,512,512]
  %7 = exp %6 : f32[2,512,512]
  %8 = reduce_sum %7 axes=[2] : f32[2,512]
  %9 = broadcast %8 dims=[0,1] : f32[2,512,512]
  %10 = div %7 %9 : f32[2,512,512]
  %11 = contract %10 %2 "bmn,bnd->bmd" : f32[2,512,64]
  output "y" %11
})"},
    {"attention_in_registers",
     "cuda:sm_80",
     {},
     R"(graph {
  %0 = input "q" : bf16[4,128,32] normal(0,1)
  %1 = input "k" : bf16[4,128,32] normal(0,1)
  %2 = input "v" : bf16[4,128,16] normal(0,1)
  %3 = contract %0 %1 "bmk,bnk->bmn" : f32[4,128,128]
  %4 = reduce_max %3 axes=[2] : f32[4,128]
  %5 = broadcast %4 dims=[0,1] : f32[4,128,128]
  %6 = sub %3 %5 : f32[4,128,128]
  %7 = exp %6 : f32[4,128,128]
  %8 = reduce_sum %7 axes=[2] : f32[4,128]
  %9 = broadcast %8 dims=[0,1] : f32[4,128,128]
  %10 = div %7 %9 : f32[4,128,128]
  %11 = cast %10 : bf16[4,128,128]
  %12 = contract %11 %2 "bmn,bnd->bmd" : bf16[4,128,16]
  output "y" %12
})"},
    {"layer_norm_gemm",
     "cpu:avx512",
     {},
     R"(graph {
  %0 = input "x" : f32[128,64] normal(0,1)
  %1 = input "gamma" : f32[64] normal(0,1)
  %2 = input "w" : f32[64,96] normal(0,1)
  %3 = reduce_sum %0 axes=[1] : f32[128]
  %4 = constant 0.015625 : f32[128]
  %5 = mul %3 %4 : f32[128]
  %6 = broadcast %5 dims=[0] : f32[128,64]
  %7 = sub %0 %6 : f32[128,64]
  %8 = mul %7 %7 : f32[128,64]
  %9 = reduce_sum %8 axes=[1] : f32[128]
  %10 = mul %9 %4 : f32[128]
  %11 = constant 1e-05 : f32[128]
  %12 = add %10 %11 : f32[128]
  %13 = rsqrt %12 : f32[128]
  %14 = broadcast %13 dims=[0] : f32[128,64]
  %15 = mul %7 %14 : f32[128,64]
  %16 = broadcast %1 dims=[1] : f32[128,64]
  %17 = mul %15 %16 : f32[128,64]
  %18 = contract %17 %2 "mk,kn->mn" : f32[128,96]
  output "y" %18
})"},
    {"feed_forward",
     "cpu:avx512",
     {},
     R"(graph {
  %0 = input "x" : f32[128,64] normal(0,1)
  %1 = input "up" : f32[64,256] normal(0,1)
  %2 = input "bias" : f32[256] normal(0,1)
  %3 = input "down" : f32[256,64] normal(0,1)
  %4 = contract %0 %1 "mk,kn->mn" : f32[128,256]
  %5 = broadcast %2 dims=[1] : f32[128,256]
  %6 = add %4 %5 : f32[128,256]
  %7 = constant 0.70710678 : f32[128,256]
  %8 = mul %6 %7 : f32[128,256]
  %9 = erf %8 : f32[128,256]
  %10 = constant 1 : f32[128,256]
  %11 = add %9 %10 : f32[128,256]
  %12 = mul %6 %11 : f32[128,256]
  %13 = contract %12 %3 "mk,kn->mn" : f32[128,64]
  output "y" %13
})"},
    {"gemm_async",
     "sim:cuda",
     {{"async_copies", 1},
      {"stages", 3},
      {"tile_rows", 32},
      {"tile_columns", 32},
      {"thread_rows", 4},
      {"thread_columns", 4},
      {"k_step", 8},
      {"k_unroll", 2}},
     R"(graph {
  %0 = input "a" : f32[96,64] normal(0,1)
  %1 = input "b" : f32[64,80] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : f32[96,80]
  output "y" %2
})",
     true},
    {"packed_products",
     "cpu:avx512",
     {{"m0.nv", 1}, {"m1.nv", 1}},
     R"(graph {
  %0 = input "x" : f32[4,64] normal(0,1)
  %1 = input "q" : f32[64,16] normal(0,1)
  %2 = input "k" : f32[64,16] normal(0,1)
  %3 = input "v" : f32[64,64] normal(0,1)
  %4 = contract %0 %1 "mk,kn->mn" : f32[4,16]
  %5 = contract %0 %2 "mk,kn->mn" : f32[4,16]
  %6 = contract %0 %3 "mk,kn->mn" : f32[4,64]
  output "a" %4
  output "b" %5
  output "c" %6
})"},
};

}  // namespace wl::testing

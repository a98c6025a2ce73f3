// The groups of the goldens: small enough to read, one for each shape of kernel.
#pragma once

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace wl::testing {

inline std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Golden {
  const char* name;
  const char* target;
  std::vector<std::pair<const char*, int64_t>> choices;  // by the names of plans, beside the default schedule
  const char* graph;
  bool everywhere = false;  // GPUs' choices are the golden's too
};

inline const std::vector<Golden> kGoldens = {
    {"softmax",
     "cpu:avx512",
     {{"pipeline", 1}, {"prefetch", 2}, {"stream_stores", 1}},
     R"(graph {
  %0 = input "x" : f32[512,1024] normal(0,1)
  %1 = reduce_max %0 axes=[1] : f32[512]
  %2 = broadcast %1 dims=[0] : f32[512,1024]
  %3 = sub %0 %2 : f32[512,1024]
  %4 = exp %3 : f32[512,1024]
  %5 = reduce_sum %4 axes=[1] : f32[512]
  %6 = broadcast %5 dims=[0] : f32[512,1024]
  %7 = div %4 %6 : f32[512,1024]
  output "y" %7
})"},
    {"rotary",
     "cpu:avx512",
     {{"unroll", 1}},
     R"(graph {
  %0 = input "x" : f32[8,2048,64] normal(0,1)
  %1 = input "sin" : f32[2048,64] normal(0,1)
  %2 = input "cos" : f32[2048,64] normal(0,1)
  %3 = iota axis=[2] : i32[8,2048,64]
  %4 = constant 32 : i32[8,2048,64]
  %5 = lt %3 %4 : b1[8,2048,64]
  %6 = slice %0 starts=[0,0,32] steps=[1,1,1] : f32[8,2048,32]
  %7 = pad %6 low=[0,0,0] high=[0,0,32] value=0 : f32[8,2048,64]
  %8 = neg %7 : f32[8,2048,64]
  %9 = slice %0 starts=[0,0,0] steps=[1,1,1] : f32[8,2048,32]
  %10 = pad %9 low=[0,0,32] high=[0,0,0] value=0 : f32[8,2048,64]
  %11 = select %5 %8 %10 : f32[8,2048,64]
  %12 = broadcast %1 dims=[1,2] : f32[8,2048,64]
  %13 = mul %11 %12 : f32[8,2048,64]
  %14 = broadcast %2 dims=[1,2] : f32[8,2048,64]
  %15 = mul %14 %0 : f32[8,2048,64]
  %16 = add %13 %15 : f32[8,2048,64]
  output "y" %16
})"},
    {"residual_layer_norm",
     "cpu:avx2",
     {},
     R"(graph {
  %0 = input "x" : f32[32,768] normal(0,1)
  %1 = input "residual" : f32[32,768] normal(0,1)
  %2 = input "gamma" : f32[768] normal(0,1)
  %3 = input "beta" : f32[768] normal(0,1)
  %4 = add %0 %1 : f32[32,768]
  %5 = reduce_sum %4 axes=[1] : f32[32]
  %6 = constant 0.0013020833 : f32[32]
  %7 = mul %5 %6 : f32[32]
  %8 = broadcast %7 dims=[0] : f32[32,768]
  %9 = sub %4 %8 : f32[32,768]
  %10 = mul %9 %9 : f32[32,768]
  %11 = reduce_sum %10 axes=[1] : f32[32]
  %12 = mul %11 %6 : f32[32]
  %13 = constant 1e-05 : f32[32]
  %14 = add %12 %13 : f32[32]
  %15 = rsqrt %14 : f32[32]
  %16 = broadcast %15 dims=[0] : f32[32,768]
  %17 = mul %9 %16 : f32[32,768]
  %18 = broadcast %2 dims=[1] : f32[32,768]
  %19 = mul %17 %18 : f32[32,768]
  %20 = broadcast %3 dims=[1] : f32[32,768]
  %21 = add %19 %20 : f32[32,768]
  output "y" %21
})"},
    {"log_sum_exp",  // one walk over rows that the first cache does not hold
     "cpu:avx512",
     {},
     R"(graph {
  %0 = input "x" : f32[16,32000] normal(0,1)
  %1 = reduce_max %0 axes=[1] : f32[16]
  %2 = broadcast %1 dims=[0] : f32[16,32000]
  %3 = sub %0 %2 : f32[16,32000]
  %4 = exp %3 : f32[16,32000]
  %5 = reduce_sum %4 axes=[1] : f32[16]
  %6 = log %5 : f32[16]
  %7 = add %1 %6 : f32[16]
  output "y" %7
})"},
    {"log_softmax_gather",
     "cpu:avx512",
     {},
     R"(graph {
  %0 = input "x" : f32[16,1000] normal(0,1)
  %1 = input "label" : i64[16,1] uniform(0,1000)
  %2 = reduce_max %0 axes=[1] : f32[16]
  %3 = broadcast %2 dims=[0] : f32[16,1000]
  %4 = sub %0 %3 : f32[16,1000]
  %5 = exp %4 : f32[16,1000]
  %6 = reduce_sum %5 axes=[1] : f32[16]
  %7 = log %6 : f32[16]
  %8 = take_along %0 %1 axis=[1] : f32[16,1]
  %9 = reshape %8 : f32[16]
  %10 = sub %9 %2 : f32[16]
  %11 = sub %10 %7 : f32[16]
  output "y" %11
})"},
    {"group_norm_silu",
     "cpu:avx512",
     {},
     R"(graph {
  %0 = input "x" : f32[2,8,6,20] normal(0,1)
  %1 = input "gamma" : f32[8] normal(0,1)
  %2 = reshape %0 : f32[2,2,4,120]
  %3 = reduce_sum %2 axes=[2,3] : f32[2,2]
  %4 = constant 0.0020833334 : f32[2,2]
  %5 = mul %3 %4 : f32[2,2]
  %6 = broadcast %5 dims=[0,1] : f32[2,2,4,120]
  %7 = sub %2 %6 : f32[2,2,4,120]
  %8 = mul %7 %7 : f32[2,2,4,120]
  %9 = reduce_sum %8 axes=[2,3] : f32[2,2]
  %10 = mul %9 %4 : f32[2,2]
  %11 = rsqrt %10 : f32[2,2]
  %12 = broadcast %11 dims=[0,1] : f32[2,2,4,120]
  %13 = mul %7 %12 : f32[2,2,4,120]
  %14 = reshape %1 : f32[2,4]
  %15 = broadcast %14 dims=[1,2] : f32[2,2,4,120]
  %16 = mul %13 %15 : f32[2,2,4,120]
  %17 = sigmoid %16 : f32[2,2,4,120]
  %18 = mul %16 %17 : f32[2,2,4,120]
  %19 = reshape %18 : f32[2,8,6,20]
  output "y" %19
})"},
    {"bias_gelu",
     "cpu:avx512",
     {},
     R"(graph {
  %0 = input "x" : f32[64,3072] normal(0,1)
  %1 = input "bias" : f32[3072] normal(0,1)
  %2 = broadcast %1 dims=[1] : f32[64,3072]
  %3 = add %0 %2 : f32[64,3072]
  %4 = constant 0.70710677 : f32[64,3072]
  %5 = mul %3 %4 : f32[64,3072]
  %6 = erf %5 : f32[64,3072]
  %7 = constant 1 : f32[64,3072]
  %8 = add %6 %7 : f32[64,3072]
  %9 = mul %3 %8 : f32[64,3072]
  %10 = constant 0.5 : f32[64,3072]
  %11 = mul %9 %10 : f32[64,3072]
  output "y" %11
})"},
    {"transpose_add",
     "cpu:generic",
     {},
     R"(graph {
  %0 = input "x" : f32[48,64] normal(0,1)
  %1 = input "z" : f32[64,48] normal(0,1)
  %2 = transpose %0 perm=[1,0] : f32[64,48]
  %3 = add %2 %1 : f32[64,48]
  output "y" %3
})"},
    {"column_sum",
     "cpu:avx512",
     {},
     R"(graph {
  %0 = input "x" : f32[500,96] normal(0,1)
  %1 = reduce_sum %0 axes=[0] : f32[96]
  output "y" %1
})"},
    {"shared_softmax",  // a row that all threads and units share
     "cpu:avx512",
     {},
     R"(graph {
  %0 = input "x" : f32[1,65536] normal(0,1)
  %1 = reduce_max %0 axes=[1] : f32[1]
  %2 = broadcast %1 dims=[0] : f32[1,65536]
  %3 = sub %0 %2 : f32[1,65536]
  %4 = exp %3 : f32[1,65536]
  %5 = reduce_sum %4 axes=[1] : f32[1]
  %6 = broadcast %5 dims=[0] : f32[1,65536]
  %7 = div %4 %6 : f32[1,65536]
  output "y" %7
})"},
    {"counted_sum",  // the block that comes last combines what all left
     "cpu:avx512",
     {{"last_block_combines", 1}},
     R"(graph {
  %0 = input "x" : f32[262144] normal(0,1)
  %1 = abs %0 : f32[262144]
  %2 = reduce_sum %1 axes=[0] : f32[]
  %3 = sqrt %2 : f32[]
  output "y" %3
})"},
    {"cluster_softmax",  // rows that eight units each keep in their registers
     "cpu:avx2",
     {},
     R"(graph {
  %0 = input "x" : f32[48,32768] normal(0,1)
  %1 = reduce_max %0 axes=[1] : f32[48]
  %2 = broadcast %1 dims=[0] : f32[48,32768]
  %3 = sub %0 %2 : f32[48,32768]
  %4 = exp %3 : f32[48,32768]
  %5 = reduce_sum %4 axes=[1] : f32[48]
  %6 = broadcast %5 dims=[0] : f32[48,32768]
  %7 = div %4 %6 : f32[48,32768]
  output "y" %7
})"},
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
    {"byte_product",  // quantised: bytes to bytes, scaled by column
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
    {"byte_convolution",  // an image that is copied in words of four channels, its zero point around it
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
    {"bf16_product",
     "cpu:avx512_bf16",
     {},
     R"(graph {
  %0 = input "a" : bf16[96,66] normal(0,1)
  %1 = input "b" : bf16[66,80] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : bf16[96,80]
  output "y" %2
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
    {"causal_mask",
     "cpu:avx2",
     {},
     R"(graph {
  %0 = input "s" : f32[40,40] normal(0,1)
  %1 = iota axis=[0] : i32[40,40]
  %2 = iota axis=[1] : i32[40,40]
  %3 = ge %1 %2 : b1[40,40]
  %4 = constant -inf : f32[40,40]
  %5 = select %3 %0 %4 : f32[40,40]
  output "y" %5
})"},
    {"padded_average_pool",
     "cpu:avx512",
     {},
     R"(graph {
  %0 = input "x" : f32[8,20,48] normal(0,1)
  %1 = pad %0 low=[0,1,1] high=[0,1,1] value=0 : f32[8,22,50]
  %2 = window %1 axes=[1,2] params=[3,1,1,3,1,1] : f32[8,20,48,3,3]
  %3 = reduce_sum %2 axes=[3,4] : f32[8,20,48]
  %4 = constant 0.11111111 : f32[8,20,48]
  %5 = mul %3 %4 : f32[8,20,48]
  output "y" %5
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
    {"concat_add",
     "cpu:avx2",
     {},
     R"(graph {
  %0 = input "past" : f32[4,30,16] normal(0,1)
  %1 = input "new" : f32[4,2,16] normal(0,1)
  %2 = input "bias" : f32[16] normal(0,1)
  %3 = concat %0 %1 axis=[1] : f32[4,32,16]
  %4 = broadcast %2 dims=[2] : f32[4,32,16]
  %5 = add %3 %4 : f32[4,32,16]
  output "y" %5
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
    {"two_reductions",
     "cpu:avx512",
     {},
     R"(graph {
  %0 = input "x" : f32[64,32,48] normal(0,1)
  %1 = reduce_sum %0 axes=[2] : f32[64,32]
  %2 = broadcast %1 dims=[0,1] : f32[64,32,48]
  %3 = sub %0 %2 : f32[64,32,48]
  %4 = reduce_max %3 axes=[1] : f32[64,48]
  output "y" %4
})"},
    {"scalar",
     "cpu:avx512",
     {},
     R"(graph {
  %0 = input "x" : f32[] normal(0,1)
  %1 = exp %0 : f32[]
  output "y" %1
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

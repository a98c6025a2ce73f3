// The groups of the goldens that have no contraction. They are small enough to read, one for each shape of kernel.
#pragma once

#include <vector>

#include "tests/golden/golden.h"

namespace wl::testing {

inline const std::vector<Golden> kLoops = {
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
    {"log_sum_exp",  // each row, which is larger than the first-level cache, is walked once
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
    {"shared_softmax",  // all threads compute one row together
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
    {"counted_sum",  // the last block to end combines the partial results of all blocks
     "cpu:avx512",
     {{"last_block_combines", 1}},
     R"(graph {
  %0 = input "x" : f32[262144] normal(0,1)
  %1 = abs %0 : f32[262144]
  %2 = reduce_sum %1 axes=[0] : f32[]
  %3 = sqrt %2 : f32[]
  output "y" %3
})"},
    {"cluster_softmax",  // on GPUs eight blocks share a row and keep it in registers
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
};

}  // namespace wl::testing

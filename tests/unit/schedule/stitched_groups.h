// Groups that are no single loop nest but still one kernel.
#pragma once

namespace wl::testing {

inline constexpr const char* kAttention = R"(graph {
  %0 = input "q" : f32[2,32,8] normal(0,1)
  %1 = input "k" : f32[2,48,8] normal(0,1)
  %2 = input "v" : f32[2,48,20] normal(0,1)
  %3 = contract %0 %1 "bmk,bnk->bmn" : f32[2,32,48]
  %4 = reduce_max %3 axes=[2] : f32[2,32]
  %5 = broadcast %4 dims=[0,1] : f32[2,32,48]
  %6 = sub %3 %5 : f32[2,32,48]
  %7 = exp %6 : f32[2,32,48]
  %8 = reduce_sum %7 axes=[2] : f32[2,32]
  %9 = broadcast %8 dims=[0,1] : f32[2,32,48]
  %10 = div %7 %9 : f32[2,32,48]
  %11 = contract %10 %2 "bmn,bnd->bmd" : f32[2,32,20]
  output "y" %11
})";

// Attention as in models, where heads are stored within tokens before and after.
inline constexpr const char* kHeads = R"(graph {
  %0 = input "q" : f32[32,24] normal(0,1)
  %1 = input "k" : f32[16,24] normal(0,1)
  %2 = input "v" : f32[16,24] normal(0,1)
  %3 = reshape %0 : f32[32,3,8]
  %4 = reshape %1 : f32[16,3,8]
  %5 = reshape %2 : f32[16,3,8]
  %6 = contract %3 %4 "mhk,nhk->hmn" : f32[3,32,16]
  %7 = reduce_max %6 axes=[2] : f32[3,32]
  %8 = broadcast %7 dims=[0,1] : f32[3,32,16]
  %9 = sub %6 %8 : f32[3,32,16]
  %10 = exp %9 : f32[3,32,16]
  %11 = contract %10 %5 "hmn,nhd->mhd" : f32[32,3,8]
  %12 = reshape %11 : f32[32,24]
  output "y" %12
})";

// q, k and v from one projection: blocks divide the heads, which only the reshape of the input shows.
inline constexpr const char* kHeadsOfOneInput = R"(graph {
  %0 = input "qkv" : f32[16,72] normal(0,1)
  %1 = reshape %0 : f32[16,3,3,8]
  %2 = slice %1 starts=[0,0,0,0] steps=[1,1,1,1] : f32[16,1,3,8]
  %3 = slice %1 starts=[0,1,0,0] steps=[1,1,1,1] : f32[16,1,3,8]
  %4 = slice %1 starts=[0,2,0,0] steps=[1,1,1,1] : f32[16,1,3,8]
  %5 = reshape %2 : f32[16,3,8]
  %6 = reshape %3 : f32[16,3,8]
  %7 = reshape %4 : f32[16,3,8]
  %8 = contract %5 %6 "mhk,nhk->hmn" : f32[3,16,16]
  %9 = reduce_max %8 axes=[2] : f32[3,16]
  %10 = broadcast %9 dims=[0,1] : f32[3,16,16]
  %11 = sub %8 %10 : f32[3,16,16]
  %12 = exp %11 : f32[3,16,16]
  %13 = contract %12 %7 "hmn,nhd->mhd" : f32[16,3,8]
  %14 = reshape %13 : f32[16,24]
  output "y" %14
})";

inline constexpr const char* kFeedForward = R"(graph {
  %0 = input "x" : f32[32,24] normal(0,1)
  %1 = input "a" : f32[24,40] normal(0,1)
  %2 = input "b" : f32[40] normal(0,1)
  %3 = input "c" : f32[40,24] normal(0,1)
  %4 = contract %0 %1 "mk,kn->mn" : f32[32,40]
  %5 = broadcast %2 dims=[1] : f32[32,40]
  %6 = add %4 %5 : f32[32,40]
  %7 = tanh %6 : f32[32,40]
  %8 = contract %7 %3 "mk,kn->mn" : f32[32,24]
  %9 = add %8 %0 : f32[32,24]
  output "y" %9
})";

inline constexpr const char* kNormThenProduct = R"(graph {
  %0 = input "x" : f32[32,24] normal(0,1)
  %1 = input "w" : f32[24,40] normal(0,1)
  %2 = reduce_sum %0 axes=[1] : f32[32]
  %3 = broadcast %2 dims=[0] : f32[32,24]
  %4 = sub %0 %3 : f32[32,24]
  %5 = mul %4 %4 : f32[32,24]
  %6 = reduce_sum %5 axes=[1] : f32[32]
  %7 = rsqrt %6 : f32[32]
  %8 = broadcast %7 dims=[0] : f32[32,24]
  %9 = mul %4 %8 : f32[32,24]
  %10 = contract %9 %1 "mk,kn->mn" : f32[32,40]
  output "y" %10
})";

// The norm's vectors have two elements, the product's have four.
inline constexpr const char* kTwoWidths = R"(graph {
  %0 = input "x" : f32[32,22] normal(0,1)
  %1 = input "w" : f32[22,40] normal(0,1)
  %2 = reduce_sum %0 axes=[1] : f32[32]
  %3 = broadcast %2 dims=[0] : f32[32,22]
  %4 = sub %0 %3 : f32[32,22]
  %5 = contract %4 %1 "mk,kn->mn" : f32[32,40]
  output "y" %5
})";

// Two reductions over different axes of one value.
inline constexpr const char* kTwoAxes = R"(graph {
  %0 = input "x" : f32[16,12,20] normal(0,1)
  %1 = reduce_sum %0 axes=[2] : f32[16,12]
  %2 = broadcast %1 dims=[0,1] : f32[16,12,20]
  %3 = sub %0 %2 : f32[16,12,20]
  %4 = reduce_max %3 axes=[1] : f32[16,20]
  output "y" %4
})";

// A sum that later kernels read, and a norm of it. The constant has the same shape whether the graph is cut or not.
inline constexpr const char* kStoredAndRead = R"(graph {
  %0 = input "x" : f32[32,24] normal(0,1)
  %1 = input "w" : f32[24,24] normal(0,1)
  %2 = constant 0.5 : f32[24,24]
  %3 = mul %1 %2 : f32[24,24]
  %4 = contract %0 %3 "mk,kn->mn" : f32[32,24]
  %5 = add %4 %0 : f32[32,24]
  %6 = reduce_sum %5 axes=[1] : f32[32]
  %7 = broadcast %6 dims=[0] : f32[32,24]
  %8 = sub %5 %7 : f32[32,24]
  output "y" %8
  output "sum" %5
})";

inline constexpr const char* kStitched[] = {kAttention,       kHeads,     kHeadsOfOneInput, kFeedForward,
                                            kNormThenProduct, kTwoWidths, kTwoAxes,         kStoredAndRead};

}  // namespace wl::testing

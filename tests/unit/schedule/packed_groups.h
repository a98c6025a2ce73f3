// Groups of unconnected parts that are not one loop nest, but one kernel (packed groups).
#pragma once

namespace wl::testing {

// Three products of one kind, which pack into one kernel.
inline constexpr const char* kThreeProducts = R"(graph {
  %0 = input "x" : f32[40,24] normal(0,1)
  %1 = input "a" : f32[24,48] normal(0,1)
  %2 = input "b" : f32[24,48] normal(0,1)
  %3 = input "c" : f32[24,20] normal(0,1)
  %4 = contract %0 %1 "mk,kn->mn" : f32[40,48]
  %5 = contract %0 %2 "mk,kn->mn" : f32[40,48]
  %6 = contract %0 %3 "mk,kn->mn" : f32[40,20]
  %7 = tanh %6 : f32[40,20]
  output "q" %4
  output "k" %5
  output "v" %7
})";

inline constexpr const char* kRowsAndColumns = R"(graph {
  %0 = input "x" : f32[33,70] normal(0,1)
  %1 = reduce_max %0 axes=[1] : f32[33]
  %2 = broadcast %1 dims=[0] : f32[33,70]
  %3 = sub %0 %2 : f32[33,70]
  %4 = exp %3 : f32[33,70]
  %5 = reduce_sum %0 axes=[0] : f32[70]
  output "y" %4
  output "z" %5
})";

inline constexpr const char* kMapAndProduct = R"(graph {
  %0 = input "x" : f32[35,30] normal(0,1)
  %1 = input "w" : f32[30,36] normal(0,1)
  %2 = input "u" : f32[200] normal(0,1)
  %3 = contract %0 %1 "mk,kn->mn" : f32[35,36]
  %4 = neg %2 : f32[200]
  output "y" %4
  output "z" %3
})";

inline constexpr const char* kTwoMaps = R"(graph {
  %0 = input "x" : f32[37,5] normal(0,1)
  %1 = input "u" : bf16[600] normal(0,1)
  %2 = exp %0 : f32[37,5]
  %3 = neg %1 : bf16[600]
  output "y" %2
  output "z" %3
})";

inline constexpr const char* kPacked[] = {kThreeProducts, kRowsAndColumns, kMapAndProduct, kTwoMaps};

// Scores and a product that reads their exponentials, as in attention; and another product of the same inputs. On
// machines with lanes, the former are stitched and then packed with the latter.
inline constexpr const char* kScoresAndProduct = R"(graph {
  %0 = input "q" : f32[2,32,8] normal(0,1)
  %1 = input "k" : f32[2,48,8] normal(0,1)
  %2 = input "v" : f32[2,48,20] normal(0,1)
  %3 = contract %0 %1 "bmk,bnk->bmn" : f32[2,32,48]
  %4 = reduce_max %3 axes=[2] : f32[2,32]
  %5 = broadcast %4 dims=[0,1] : f32[2,32,48]
  %6 = sub %3 %5 : f32[2,32,48]
  %7 = exp %6 : f32[2,32,48]
  %8 = contract %7 %2 "bmn,bnd->bmd" : f32[2,32,20]
  %9 = contract %0 %1 "bmk,bnk->mn" : f32[32,48]
  output "y" %8
  output "z" %9
})";

}  // namespace wl::testing

// The groups of the goldens that use matrix instructions of GPUs.
#pragma once

#include <vector>

#include "tests/golden/golden.h"

namespace wl::testing {

inline const std::vector<Golden> kMatrixProducts = {
    {"bf16_matrices",  // bf16 operands that are contiguous along k; rows, columns and k have tails
     "sim:cuda",
     {{"matrix", 1},
      {"async_copies", 1},
      {"stages", 3},
      {"tile_rows", 32},
      {"tile_columns", 16},
      {"thread_rows", 2},
      {"thread_columns", 2},
      {"k_step", 16},
      {"vector", 8},
      {"k_unroll", 8},
      {"min_blocks", 0}},
     R"(graph {
  %0 = input "a" : bf16[40,72] normal(0,1)
  %1 = input "b" : bf16[24,72] normal(0,1)
  %2 = input "bias" : bf16[24] normal(0,1)
  %3 = contract %0 %1 "mk,nk->mn" : bf16[40,24]
  %4 = broadcast %2 dims=[1] : bf16[40,24]
  %5 = add %3 %4 : bf16[40,24]
  output "y" %5
})"},
    {"convolution_in_runs",  // tiles of four rows of four pixels of two images; padding is copied as zeros
     "sim:cuda",
     {{"matrix", 1},
      {"async_copies", 1},
      {"stages", 3},
      {"tile_rows", 4},
      {"row_runs", 4},
      {"row_planes", 2},
      {"tile_columns", 32},
      {"thread_rows", 2},
      {"thread_columns", 4},
      {"k_step", 16},
      {"min_blocks", 0}},
     R"(graph {
  %0 = input "x" : bf16[2,7,7,16] normal(0,1)
  %1 = input "w" : bf16[3,3,16,32] normal(0,1)
  %2 = pad %0 low=[0,1,1,0] high=[0,1,1,0] value=0 : bf16[2,9,9,16]
  %3 = window %2 axes=[1,2] params=[3,1,1,3,1,1] : bf16[2,7,7,16,3,3]
  %4 = contract %3 %1 "bhwcrs,rscf->bhwf" : bf16[2,7,7,32]
  output "y" %4
})"},
    {"boxes",  // TMA: a copying wave starts one copy for the tile of each operand
     "sim:cuda",
     {{"matrix", 12},
      {"async_copies", 1},
      {"copying_waves", 1},
      {"tma", 1},
      {"stages", 2},
      {"tile_rows", 64},
      {"tile_columns", 128},
      {"thread_rows", 2},
      {"thread_columns", 32},
      {"k_step", 64},
      {"vector", 8},
      {"k_unroll", 8},
      {"register_stages", 1},
      {"min_blocks", 0}},
     R"(graph {
  %0 = input "a" : bf16[96,320] normal(0,1)
  %1 = input "b" : bf16[320,136] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : bf16[96,136]
  output "y" %2
})"},
    {"last_round",  // two persistent blocks each compute tile after tile, and share the ninth tile
     "sim:cuda",
     {{"matrix", 12},
      {"async_copies", 1},
      {"copying_waves", 0},
      {"persistent", 1},
      {"min_blocks", 1},
      {"reduction_blocks", 2},
      {"raster_rows", 1},
      {"stages", 2},
      {"tile_rows", 64},
      {"tile_columns", 64},
      {"thread_rows", 2},
      {"thread_columns", 16},
      {"k_step", 64},
      {"vector", 8},
      {"k_unroll", 8},
      {"register_stages", 1}},
     R"(graph {
  %0 = input "a" : bf16[136,256] normal(0,1)
  %1 = input "b" : bf16[256,136] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : bf16[136,136]
  output "y" %2
})"},
    {"copying_waves",  // waves that only copy are up to two slots of the ring ahead of the others
     "sim:cuda",
     {{"matrix", 12},
      {"async_copies", 1},
      {"copying_waves", 4},
      {"stages", 3},
      {"tile_rows", 64},
      {"tile_columns", 64},
      {"thread_rows", 2},
      {"thread_columns", 16},
      {"k_step", 64},
      {"vector", 8},
      {"k_unroll", 8},
      {"register_stages", 1},
      {"min_blocks", 0}},
     R"(graph {
  %0 = input "a" : bf16[96,320] normal(0,1)
  %1 = input "b" : bf16[320,136] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : bf16[96,136]
  output "y" %2
})"},
    {"near_matrices",  // factors in shared memory: one contiguous along k, one in panels across k
     "sim:cuda",
     {{"matrix", 12},
      {"async_copies", 1},
      {"stages", 2},
      {"tile_rows", 64},
      {"tile_columns", 128},
      {"thread_rows", 2},
      {"thread_columns", 32},
      {"k_step", 64},
      {"vector", 8},
      {"k_unroll", 8},
      {"register_stages", 1},
      {"min_blocks", 0}},
     R"(graph {
  %0 = input "a" : bf16[96,200] normal(0,1)
  %1 = input "b" : bf16[200,136] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : bf16[96,136]
  output "y" %2
})"},
    {"tf32_product",  // f32 multiplied as tf32: one operand contiguous along k, one across k, both copied
     "sim:cuda",
     {{"matrix", 26},
      {"async_copies", 1},
      {"stages", 2},
      {"tile_rows", 32},
      {"tile_columns", 16},
      {"thread_rows", 2},
      {"thread_columns", 2},
      {"k_step", 16},
      {"vector", 4},
      {"k_unroll", 8},
      {"register_stages", 1},
      {"min_blocks", 0}},
     R"(graph {
  %0 = input "a" : f32[40,36] normal(0,1)
  %1 = input "b" : f32[36,28] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" tf32 : f32[40,28]
  output "y" %2
})"},
};

}  // namespace wl::testing

// Small groups of every loop class, machines, and samples of the points of a space.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/base/splitmix.h"
#include "compiler/schedule/space.h"

namespace wl::testing {

// The fewest elements that a part (one block's share of a row) may have; so few that even the small groups below are
// divided into parts.
inline constexpr int64_t kPartElements = 2;

// Returns a machine with the target in row `target` of targets(), two threads, and both GCC and clang.
inline Machine machine_with(int target) {
  Machine machine;
  machine.target = &targets()[target];
  machine.threads = 2;
  machine.clang = true;
  machine.part_elements = kPartElements;
  return machine;
}

inline Machine machine_with(std::string_view target) {
  Machine machine;
  machine.target = target_named(target).value();
  machine.units = 3;  // number of multiprocessors; so few that even small groups keep all of them busy
  machine.threads = 2;
  machine.clang = true;
  machine.part_elements = kPartElements;
  return machine;
}

// Most extents are no multiples of the extents of tiles, so that kernels have all kinds of partial tiles.
inline constexpr const char* kGroups[] = {
    R"(graph {
  %0 = input "x" : f32[2,5,2] normal(0,1)
  %1 = sign %0 : f32[2,5,2]
  %2 = broadcast %1 dims=[0,1,2] : f32[2,5,2,3]
  %3 = reduce_max %2 axes=[3] : f32[2,5,2]
  output "y" %1
  output "z" %3
})",
    R"(graph {
  %0 = input "x" : f32[7,37] normal(0,1)
  %1 = reduce_max %0 axes=[1] : f32[7]
  %2 = broadcast %1 dims=[0] : f32[7,37]
  %3 = sub %0 %2 : f32[7,37]
  %4 = exp %3 : f32[7,37]
  %5 = reduce_sum %4 axes=[1] : f32[7]
  %6 = broadcast %5 dims=[0] : f32[7,37]
  %7 = div %4 %6 : f32[7,37]
  output "y" %7
})",
    R"(graph {
  %0 = input "x" : bf16[300,7] normal(0,1)
  %1 = sigmoid %0 : bf16[300,7]
  %2 = reduce_max %1 axes=[0] : bf16[7]
  output "y" %2
})",
    R"(graph {
  %0 = input "x" : f32[19,45] normal(0,1)
  %1 = reduce_sum %0 axes=[0] : f32[45]
  %2 = reduce_max %0 axes=[0] : f32[45]
  %3 = add %1 %2 : f32[45]
  output "y" %3
})",
    R"(graph {
  %0 = input "x" : f32[3,6,5,20] normal(0,1)
  %1 = input "g" : f32[6] normal(0,1)
  %2 = reshape %0 : f32[3,2,3,100]
  %3 = reduce_sum %2 axes=[2,3] : f32[3,2]
  %4 = broadcast %3 dims=[0,1] : f32[3,2,3,100]
  %5 = sub %2 %4 : f32[3,2,3,100]
  %6 = reshape %1 : f32[2,3]
  %7 = broadcast %6 dims=[1,2] : f32[3,2,3,100]
  %8 = mul %5 %7 : f32[3,2,3,100]
  output "y" %8
})",
    R"(graph {
  %0 = input "x" : f32[32,48] normal(0,1)
  %1 = input "z" : f32[48,32] normal(0,1)
  %2 = transpose %0 perm=[1,0] : f32[48,32]
  %3 = add %2 %1 : f32[48,32]
  output "y" %3
})",
    // Transposes without arithmetic, of floats and of booleans.
    R"(graph {
  %0 = input "x" : f32[3,32,48] normal(0,1)
  %1 = transpose %0 perm=[2,0,1] : f32[48,3,32]
  output "y" %1
})",
    R"(graph {
  %0 = input "x" : b1[32,48]
  %1 = transpose %0 perm=[1,0] : b1[48,32]
  output "y" %1
})",
    R"(graph {
  %0 = input "a" : f32[2,23,40] normal(0,1)
  %1 = input "b" : f32[40,3,19] normal(0,1)
  %2 = input "c" : f32[3,19] normal(0,1)
  %3 = contract %0 %1 "bmk,knj->bmnj" : f32[2,23,3,19]
  %4 = broadcast %2 dims=[2,3] : f32[2,23,3,19]
  %5 = add %3 %4 : f32[2,23,3,19]
  %6 = erf %5 : f32[2,23,3,19]
  output "y" %6
})",
    R"(graph {
  %0 = input "a" : f32[5,9,13,8] normal(0,1)
  %1 = input "b" : f32[5,17,13,8] normal(0,1)
  %2 = exp %1 : f32[5,17,13,8]
  %3 = contract %0 %2 "bmkl,bnkl->bnm" : f32[5,17,9]
  output "y" %3
})",
    R"(graph {
  %0 = input "x" : f32[11,33] normal(0,1)
  %1 = input "l" : i64[11,1] uniform(-33,33)
  %2 = reduce_max %0 axes=[1] : f32[11]
  %3 = take_along %0 %1 axis=[1] : f32[11,1]
  %4 = reshape %2 : f32[11,1]
  %5 = sub %3 %4 : f32[11,1]
  output "y" %5
})",
    // Convolutions: one of two padded images, with a bias for each channel; one in which each channel has its own
    // filter, with stride and dilation; and one with a single tap, of every second pixel.
    R"(graph {
  %0 = input "x" : f32[2,3,9,11] normal(0,1)
  %1 = input "w" : f32[19,3,3,3] normal(0,1)
  %2 = input "b" : f32[19] normal(0,1)
  %3 = pad %0 low=[0,0,1,1] high=[0,0,1,2] value=0 : f32[2,3,11,14]
  %4 = window %3 axes=[2,3] params=[3,1,1,3,1,1] : f32[2,3,9,12,3,3]
  %5 = contract %4 %1 "acpqhi,ochi->aopq" : f32[2,19,9,12]
  %6 = broadcast %2 dims=[1] : f32[2,19,9,12]
  %7 = add %5 %6 : f32[2,19,9,12]
  output "y" %7
})",
    R"(graph {
  %0 = input "x" : f32[1,8,15,17] normal(0,1)
  %1 = input "w" : f32[8,1,1,3,3] normal(0,1)
  %2 = input "r" : f32[1,8,1,7,8] normal(0,1)
  %3 = pad %0 low=[0,0,1,1] high=[0,0,1,1] value=0 : f32[1,8,17,19]
  %4 = reshape %3 : f32[1,8,1,17,19]
  %5 = window %4 axes=[3,4] params=[3,2,2,3,2,2] : f32[1,8,1,7,8,3,3]
  %6 = contract %5 %1 "agcpqhi,gochi->agopq" : f32[1,8,1,7,8]
  %7 = add %6 %2 : f32[1,8,1,7,8]
  %8 = erf %7 : f32[1,8,1,7,8]
  output "y" %8
})",
    R"(graph {
  %0 = input "x" : f32[5,12,12] normal(0,1)
  %1 = input "w" : f32[7,5] normal(0,1)
  %2 = slice %0 starts=[0,1,0] steps=[1,2,2] : f32[5,6,6]
  %3 = contract %2 %1 "cpq,oc->opq" : f32[7,6,6]
  output "y" %3
})",
    // A row with two results, long enough for unrolled steps, single vectors and a tail.
    R"(graph {
  %0 = input "x" : f32[3,5,277] normal(0,1)
  %1 = input "r" : f32[3,5,277] normal(0,1)
  %2 = add %0 %1 : f32[3,5,277]
  %3 = reduce_sum %2 axes=[2] : f32[3,5]
  %4 = constant 0.0036101083 : f32[3,5]
  %5 = mul %3 %4 : f32[3,5]
  %6 = broadcast %5 dims=[0,1] : f32[3,5,277]
  %7 = sub %2 %6 : f32[3,5,277]
  %8 = mul %7 %7 : f32[3,5,277]
  %9 = reduce_sum %8 axes=[2] : f32[3,5]
  %10 = mul %9 %4 : f32[3,5]
  %11 = rsqrt %10 : f32[3,5]
  %12 = broadcast %11 dims=[0,1] : f32[3,5,277]
  %13 = mul %7 %12 : f32[3,5,277]
  output "sum" %2
  output "y" %13
})",
    // A reduction over an axis that is neither the first nor the last.
    R"(graph {
  %0 = input "x" : f32[3,29,70] normal(0,1)
  %1 = exp %0 : f32[3,29,70]
  %2 = reduce_sum %1 axes=[1] : f32[3,70]
  %3 = log %2 : f32[3,70]
  output "y" %3
})",
    // A convolution whose rows are the pixels of several images. Then a product whose columns are three loops, one of
    // which lies outside of the rows in the result.
    R"(graph {
  %0 = input "x" : f32[3,7,9,10] normal(0,1)
  %1 = input "w" : f32[3,3,10,18] normal(0,1)
  %2 = pad %0 low=[0,1,1,0] high=[0,1,1,0] value=0 : f32[3,9,11,10]
  %3 = window %2 axes=[1,2] params=[3,1,1,3,1,1] : f32[3,7,9,10,3,3]
  %4 = contract %3 %1 "bhwcrs,rscf->bhwf" : f32[3,7,9,18]
  output "y" %4
})",
    R"(graph {
  %0 = input "x" : f32[17,24] normal(0,1)
  %1 = input "w" : f32[24,3,5,12] normal(0,1)
  %2 = contract %0 %1 "mk,khrd->rhmd" : f32[5,3,17,12]
  %3 = tanh %2 : f32[5,3,17,12]
  output "y" %3
})",
    // A batch of transposes with tails; a conversion before and after a transpose; a reversed slice.
    R"(graph {
  %0 = input "x" : f32[2,45,67] normal(0,1)
  %1 = input "z" : f32[67,2,45] normal(0,1)
  %2 = transpose %0 perm=[2,0,1] : f32[67,2,45]
  %3 = slice %1 starts=[66,0,0] steps=[-1,1,1] : f32[67,2,45]
  %4 = mul %2 %3 : f32[67,2,45]
  output "y" %4
})",
    // A matrix product of odd sizes, with a transposed second operand and a residual.
    R"(graph {
  %0 = input "a" : f32[67,131] normal(0,1)
  %1 = input "b" : f32[53,131] normal(0,1)
  %2 = input "r" : f32[67,53] normal(0,1)
  %3 = contract %0 %1 "mk,nk->mn" : f32[67,53]
  %4 = add %3 %2 : f32[67,53]
  output "y" %4
})",
    // Products in which rows, columns or the batch are missing.
    R"(graph {
  %0 = input "a" : f32[37,45] normal(0,1)
  %1 = input "b" : f32[45] normal(0,1)
  %2 = contract %0 %1 "mk,k->m" : f32[37]
  output "y" %2
})",
    R"(graph {
  %0 = input "a" : f32[9,31] normal(0,1)
  %1 = input "b" : f32[9,31] normal(0,1)
  %2 = contract %0 %1 "bk,bk->b" : f32[9]
  output "y" %2
})",
    // Reductions of columns: of narrow floats, with elementwise work before and after; and of integers.
    R"(graph {
  %0 = input "a" : f16[45,87] normal(0,1)
  %1 = input "b" : f16[45] normal(0,1)
  %2 = input "c" : f16[87] normal(0,1)
  %3 = abs %1 : f16[45]
  %4 = contract %0 %3 "km,k->m" : f16[87]
  %5 = add %4 %2 : f16[87]
  output "y" %5
})",
    R"(graph {
  %0 = input "a" : f16[23,87] normal(0,1)
  %1 = input "b" : f16[23,87] normal(0,1)
  %2 = contract %0 %1 "bk,bk->b" : f16[23]
  output "y" %2
})",
    R"(graph {
  %0 = input "a" : u8[37,45] uniform(0,256)
  %1 = input "b" : u8[45] uniform(0,256)
  %2 = contract %0 %1 "mk,k->m" : i32[37]
  output "y" %2
})",
    // A convolution of each channel with its own filter, and a weighted gather of rows.
    R"(graph {
  %0 = input "x" : f32[5,9,21] normal(0,1)
  %1 = input "w" : f32[5,3,3] normal(0,1)
  %2 = pad %0 low=[0,2,2] high=[0,2,2] value=0 : f32[5,13,25]
  %3 = window %2 axes=[1,2] params=[3,1,2,3,1,2] : f32[5,9,21,3,3]
  %4 = contract %3 %1 "cpqhi,chi->cpq" : f32[5,9,21]
  %5 = tanh %4 : f32[5,9,21]
  output "y" %5
})",
    R"(graph {
  %0 = input "table" : f32[30,44] normal(0,1)
  %1 = input "index" : i64[6,1] uniform(0,30)
  %2 = input "w" : f32[6] normal(0,1)
  %3 = broadcast %0 dims=[1,2] : f32[6,30,44]
  %4 = reshape %1 : i64[6]
  %5 = broadcast %4 dims=[0] : i64[6,1,44]
  %6 = take_along %3 %5 axis=[1] : f32[6,1,44]
  %7 = reshape %6 : f32[6,44]
  %8 = contract %7 %2 "kn,k->n" : f32[44]
  output "y" %8
})",
    R"(graph {
  %0 = input "a" : f32[21] normal(0,1)
  %1 = input "b" : f32[35] normal(0,1)
  %2 = contract %0 %1 "m,n->mn" : f32[21,35]
  %3 = tanh %2 : f32[21,35]
  output "y" %3
})",
    R"(graph {
  %0 = input "x" : f32[] normal(0,1)
  %1 = exp %0 : f32[]
  output "y" %1
})",
    // A row that consists of several loops and is read three times.
    R"(graph {
  %0 = input "x" : f32[7,3,37] normal(0,1)
  %1 = input "g" : f32[3] normal(0,1)
  %2 = reduce_sum %0 axes=[1,2] : f32[7]
  %3 = broadcast %2 dims=[0] : f32[7,3,37]
  %4 = sub %0 %3 : f32[7,3,37]
  %5 = mul %4 %4 : f32[7,3,37]
  %6 = reduce_sum %5 axes=[1,2] : f32[7]
  %7 = rsqrt %6 : f32[7]
  %8 = broadcast %7 dims=[0] : f32[7,3,37]
  %9 = mul %4 %8 : f32[7,3,37]
  %10 = broadcast %1 dims=[1] : f32[7,3,37]
  %11 = mul %9 %10 : f32[7,3,37]
  output "y" %11
})",
    // Reductions of columns in which neighbouring columns read the same values (the weights of an involution, a mask,
    // the factors of gathered elements), with elementwise work before and after them or in several phases.
    R"(graph {
  %0 = input "x" : f32[8,10,20] normal(0,1)
  %1 = input "w" : f32[3,3,10,20] normal(0,1)
  %2 = input "b" : f32[8] normal(0,1)
  %3 = pad %0 low=[0,1,1] high=[0,1,1] value=0.5 : f32[8,12,22]
  %4 = window %3 axes=[1,2] params=[3,1,1,3,1,1] : f32[8,10,20,3,3]
  %5 = iota axis=[0] : f32[8,10,20,3,3]
  %6 = add %4 %5 : f32[8,10,20,3,3]
  %7 = exp %1 : f32[3,3,10,20]
  %8 = transpose %7 perm=[2,3,0,1] : f32[10,20,3,3]
  %9 = broadcast %8 dims=[1,2,3,4] : f32[8,10,20,3,3]
  %10 = mul %6 %9 : f32[8,10,20,3,3]
  %11 = reduce_sum %10 axes=[3,4] : f32[8,10,20]
  %12 = broadcast %2 dims=[0] : f32[8,10,20]
  %13 = add %11 %12 : f32[8,10,20]
  output "y" %13
})",
    R"(graph {
  %0 = input "x" : f32[4,12,37] normal(0,1)
  %1 = input "m" : f32[12,37] normal(0,1)
  %2 = broadcast %1 dims=[1,2] : f32[4,12,37]
  %3 = add %0 %2 : f32[4,12,37]
  %4 = reduce_max %3 axes=[1] : f32[4,37]
  %5 = broadcast %4 dims=[0,2] : f32[4,12,37]
  %6 = sub %3 %5 : f32[4,12,37]
  %7 = exp %6 : f32[4,12,37]
  %8 = reduce_sum %7 axes=[1] : f32[4,37]
  %9 = broadcast %8 dims=[0,2] : f32[4,12,37]
  %10 = div %7 %9 : f32[4,12,37]
  output "y" %10
  output "z" %8
})",
    R"(graph {
  %0 = input "x" : f32[4,12,37] normal(0,1)
  %1 = input "m" : f16[12,37] normal(0,1)
  %2 = input "i" : i64[4,12,37] uniform(-12,12)
  %3 = take_along %0 %2 axis=[1] : f32[4,12,37]
  %4 = cast %1 : f32[12,37]
  %5 = broadcast %4 dims=[1,2] : f32[4,12,37]
  %6 = mul %3 %5 : f32[4,12,37]
  %7 = reduce_max %6 axes=[1] : f32[4,37]
  output "y" %7
})",
    // Groups with empty rows; and a group that stores %1, which depends only on the inner of two loops, so it is
    // computed again in every iteration of the outer loop.
    R"(graph {
  %0 = input "x" : f32[0] normal(0,1)
  %1 = reduce_max %0 axes=[0] : f32[]
  output "y" %1
})",
    R"(graph {
  %0 = input "x" : f32[5] normal(0,1)
  %1 = neg %0 : f32[5]
  %2 = broadcast %1 dims=[0] : f32[5,6]
  %3 = transpose %2 perm=[1,0] : f32[6,5]
  %4 = reduce_max %3 axes=[0,1] : f32[]
  output "y" %1
  output "z" %4
})",
    R"(graph {
  %0 = input "x" : f32[0,4] normal(0,1)
  %1 = exp %0 : f32[0,4]
  output "y" %1
})",
};

// Returns the seeds of a space and `points` other legal points, drawn at random.
inline std::vector<Point> sample_points(const Space& space, int points, uint64_t seed = 1) {
  std::vector<Point> out = space.seeds;
  const auto draw = [&seed](size_t n) { return static_cast<int>(split_mix(seed) % n); };
  for (int attempt = 0, found = 0; attempt < 200 * points && found < points; ++attempt) {
    Point point;
    for (const Axis& axis : space.axes) point.push_back(draw(axis.values.size()));
    if (!space.is_legal(point)) continue;
    out.push_back(std::move(point));
    ++found;
  }
  return out;
}

}  // namespace wl::testing

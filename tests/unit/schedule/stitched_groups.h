// Groups that are not one loop nest, but one kernel (stitched groups).
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "compiler/base/splitmix.h"
#include "compiler/base/status.h"
#include "compiler/ir/build.h"
#include "compiler/schedule/axes.h"
#include "compiler/schedule/space.h"

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

// Attention as in models: in inputs and output, each token's heads are adjacent.
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

// Attention whose q, k and v are slices of one projection. Blocks divide the heads among them, although the input has
// no axis of heads before the reshape.
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

// A norm of rows, which uses vectors of two elements, and a product, which uses vectors of four.
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

// The value %5 is stored as an output and read again: the sum of each of its rows is subtracted from the row. The
// constant %2 has the same shape in every block, however the group is divided among blocks.
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

// The next groups can be computed in one pass over the keys, 32 keys at a time (a turn). The first one is causal
// attention: a row sees only the keys up to its own position. The division comes after the product.
inline constexpr const char* kCausal = R"(graph {
  %0 = input "q" : f32[2,64,8] normal(0,1)
  %1 = input "k" : f32[2,96,8] normal(0,1)
  %2 = input "v" : f32[2,96,20] normal(0,1)
  %3 = iota axis=[0] : i64[96]
  %4 = broadcast %3 dims=[1] : i64[64,96]
  %5 = iota axis=[0] : i64[64]
  %6 = broadcast %5 dims=[0] : i64[64,96]
  %7 = le %4 %6 : b1[64,96]
  %8 = broadcast %7 dims=[1,2] : b1[2,64,96]
  %9 = contract %0 %1 "bmk,bnk->bmn" : f32[2,64,96]
  %10 = constant -1e+09 : f32[2,64,96]
  %11 = select %8 %9 %10 : f32[2,64,96]
  %12 = reduce_max %11 axes=[2] : f32[2,64]
  %13 = broadcast %12 dims=[0,1] : f32[2,64,96]
  %14 = sub %11 %13 : f32[2,64,96]
  %15 = exp %14 : f32[2,64,96]
  %16 = reduce_sum %15 axes=[2] : f32[2,64]
  %17 = contract %15 %2 "bmn,bnd->bmd" : f32[2,64,20]
  %18 = broadcast %16 dims=[0,1] : f32[2,64,20]
  %19 = div %17 %18 : f32[2,64,20]
  output "y" %19
})";

// Attention in which a row sees only keys that are at least 40 positions before it. The first 40 rows see no key, so
// their results are NaN. There is no division by the sum.
inline constexpr const char* kRowsWithoutKeys = R"(graph {
  %0 = input "q" : f32[64,8] normal(0,1)
  %1 = input "k" : f32[64,8] normal(0,1)
  %2 = input "v" : f32[64,20] normal(0,1)
  %3 = iota axis=[1] : i32[64,64]
  %4 = iota axis=[0] : i32[64,64]
  %5 = constant 40 : i32[64,64]
  %6 = sub %4 %5 : i32[64,64]
  %7 = gt %3 %6 : b1[64,64]
  %8 = contract %0 %1 "mk,nk->mn" : f32[64,64]
  %9 = constant -inf : f32[64,64]
  %10 = select %7 %9 %8 : f32[64,64]
  %11 = reduce_max %10 axes=[1] : f32[64]
  %12 = broadcast %11 dims=[0] : f32[64,64]
  %13 = sub %10 %12 : f32[64,64]
  %14 = exp %13 : f32[64,64]
  %15 = contract %14 %2 "mn,nd->md" : f32[64,20]
  output "y" %15
})";

// Attention with two heads of queries for each head of keys. Scores are scaled, and a mask of positions is added to
// them.
inline constexpr const char* kGroupedHeads = R"(graph {
  %0 = input "q" : f32[64,4,8] normal(0,1)
  %1 = input "k" : f32[64,2,8] normal(0,1)
  %2 = input "v" : f32[64,2,16] normal(0,1)
  %3 = reshape %0 : f32[64,2,2,8]
  %4 = contract %3 %1 "mhgk,nhk->hgmn" : f32[2,2,64,64]
  %5 = constant 0.35 : f32[2,2,64,64]
  %6 = mul %4 %5 : f32[2,2,64,64]
  %7 = iota axis=[0] : i32[64,64]
  %8 = iota axis=[1] : i32[64,64]
  %9 = ge %7 %8 : b1[64,64]
  %10 = constant 0 : f32[64,64]
  %11 = constant -inf : f32[64,64]
  %12 = select %9 %10 %11 : f32[64,64]
  %13 = broadcast %12 dims=[2,3] : f32[2,2,64,64]
  %14 = add %6 %13 : f32[2,2,64,64]
  %15 = reduce_max %14 axes=[3] : f32[2,2,64]
  %16 = broadcast %15 dims=[0,1,2] : f32[2,2,64,64]
  %17 = sub %14 %16 : f32[2,2,64,64]
  %18 = exp2 %17 : f32[2,2,64,64]
  %19 = reduce_sum %18 axes=[3] : f32[2,2,64]
  %20 = rcp %19 : f32[2,2,64]
  %21 = broadcast %20 dims=[0,1,2] : f32[2,2,64,64]
  %22 = mul %21 %18 : f32[2,2,64,64]
  %23 = contract %22 %2 "hgmn,nhd->mhgd" : f32[64,2,2,16]
  %24 = reshape %23 : f32[64,64]
  output "y" %24
})";

// Attention over 149 keys, a prime number, so the last turn has fewer keys than the others. One mask is over rows and
// keys, and each turn transposes its part of this mask; another mask is over keys.
inline constexpr const char* kOddKeysAndMasks = R"(graph {
  %0 = input "q" : f32[1,128,3] normal(0,1)
  %1 = input "k" : f32[1,149,3] normal(0,1)
  %2 = input "v" : f32[1,149,5] normal(0,1)
  %3 = input "seen" : b1[128,149]
  %4 = input "bias" : f32[149] normal(0,1)
  %5 = contract %0 %1 "bmk,bnk->bmn" : f32[1,128,149]
  %6 = constant 0.3 : f32[1,128,149]
  %7 = mul %5 %6 : f32[1,128,149]
  %8 = broadcast %4 dims=[2] : f32[1,128,149]
  %9 = add %7 %8 : f32[1,128,149]
  %10 = broadcast %3 dims=[1,2] : b1[1,128,149]
  %11 = constant -1e+09 : f32[1,128,149]
  %12 = select %10 %9 %11 : f32[1,128,149]
  %13 = reduce_max %12 axes=[2] : f32[1,128]
  %14 = broadcast %13 dims=[0,1] : f32[1,128,149]
  %15 = sub %12 %14 : f32[1,128,149]
  %16 = exp %15 : f32[1,128,149]
  %17 = reduce_sum %16 axes=[2] : f32[1,128]
  %18 = broadcast %17 dims=[0,1] : f32[1,128,149]
  %19 = div %16 %18 : f32[1,128,149]
  %20 = contract %19 %2 "bmn,bnd->bmd" : f32[1,128,5]
  output "y" %20
})";

// Returns attention with products of 16-bit floats. `type`: "bf16" or "f16".
inline std::string attention_of_halves(const std::string& type, int64_t queries, int64_t keys, int64_t depth,
                                       int64_t width) {
  const std::string rows = cat("[2,", queries, "]"), all = cat("[2,", queries, ",", keys, "]");
  return cat("graph {\n  %0 = input \"q\" : ", type, "[2,", queries, ",", depth, "] normal(0,1)\n",
             "  %1 = input \"k\" : ", type, "[2,", keys, ",", depth, "] normal(0,1)\n", "  %2 = input \"v\" : ", type,
             "[2,", keys, ",", width, "] normal(0,1)\n", "  %3 = contract %0 %1 \"bmk,bnk->bmn\" : ", type, all,
             "\n  %4 = cast %3 : f32", all, "\n  %5 = reduce_max %4 axes=[2] : f32", rows,
             "\n  %6 = broadcast %5 dims=[0,1] : f32", all, "\n  %7 = sub %4 %6 : f32", all, "\n  %8 = exp %7 : f32",
             all, "\n  %9 = reduce_sum %8 axes=[2] : f32", rows, "\n  %10 = rcp %9 : f32", rows,
             "\n  %11 = broadcast %10 dims=[0,1] : f32", all, "\n  %12 = mul %8 %11 : f32", all,
             "\n  %13 = cast %12 : ", type, all, "\n  %14 = contract %13 %2 \"bmn,bnd->bmd\" : ", type, "[2,", queries,
             ",", width, "]\n  output \"y\" %14\n}\n");
}

inline std::string drawn_attention_of_halves(uint64_t seed) {
  uint64_t state = seed;
  const auto draw = [&](std::initializer_list<int64_t> of) { return of.begin()[split_mix(state) % of.size()]; };
  const int64_t queries = draw({32, 64, 96}), keys = draw({32, 48, 72, 100, 128, 256});
  return attention_of_halves(seed % 2 == 0 ? "bf16" : "f16", queries, keys, draw({16, 20, 64}), draw({16, 24, 40}));
}

// Draws attention of 16-bit floats whose rows, keys and features fill fragments of matrix instructions. Draws also the
// number of heads, and whether scores are f32 or rounded, scaled, causal, masked or biased, and divided before the
// second product.
inline Graph drawn_resident_attention(uint64_t seed) {
  uint64_t state = seed;
  const auto draw = [&](std::initializer_list<int64_t> of) { return of.begin()[split_mix(state) % of.size()]; };
  Builder out;
  const DType type = draw({0, 1}) == 0 ? DType::bf16 : DType::f16;
  const int64_t heads = draw({1, 2}), rows = draw({64, 128}), keys = draw({64, 128, 256});
  // Half of the draws have so many features that matrix instructions can read the factors from shared memory.
  const bool wide = seed / 5 % 2 == 0;
  const int64_t depth = wide ? draw({64, 128}) : draw({16, 32, 64}),
                features = wide ? draw({64, 128}) : draw({16, 32, 64});
  const Shape shape = {heads, rows, keys};
  const NodeId q = out.input("q", type, {heads, rows, depth});
  const bool turned = draw({0, 1}) == 0;
  const NodeId k = out.input("k", type, turned ? Shape{heads, depth, keys} : Shape{heads, keys, depth});
  NodeId scores = out.contract(q, k, turned ? "bmk,bkn->bmn" : "bmk,bnk->bmn", draw({0, 1}) == 0 ? DType::f32 : type);
  if (out.node(scores).dtype != DType::f32) scores = out.cast(scores, DType::f32);
  if (draw({0, 1}) == 0) scores = out.mul(scores, out.constant_like(0.25, scores));
  switch (draw({0, 1, 2, 3})) {
    case 0: {  // scores with a causal mask
      const Shape plane = {rows, keys};
      const NodeId row = out.iota(DType::i32, plane, 0), key = out.iota(DType::i32, plane, 1);
      const NodeId seen = out.broadcast(out.elementwise(Op::le, {key, row}), shape, {1, 2});
      scores = out.elementwise(Op::select, {seen, scores, out.constant_like(-INFINITY, scores)});
      break;
    }
    case 1:
      scores = out.add(scores, out.broadcast(out.input("bias", DType::f32, {keys}), shape, {2}));
      break;
    case 2: {
      const NodeId seen = out.broadcast(out.input("seen", DType::b1, {rows, keys}), shape, {1, 2});
      scores = out.elementwise(Op::select, {seen, scores, out.constant_like(-1e9, scores)});
      break;
    }
    default:
      break;
  }
  const auto along = [&](NodeId value) { return out.broadcast(value, shape, {0, 1}); };
  const NodeId largest = out.reduce(Op::reduce_max, scores, {2});
  NodeId weights = out.elementwise(Op::exp, {out.sub(scores, along(largest))});
  if (draw({0, 1}) == 0) weights = out.div(weights, along(out.reduce(Op::reduce_sum, weights, {2})));
  const NodeId v = out.input("v", type, {heads, keys, features});
  out.output("y", out.contract(out.cast(weights, type), v, "bmn,bnd->bmd", type));
  return out.finish().value();
}

// Returns those of the points whose stages pass values on in registers.
inline std::vector<Point> with_resident_values(const Space& space, std::vector<Point> points) {
  std::erase_if(points, [&](const Point& point) {
    return axis_of(space.axes, kTurnValues) == nullptr || space.schedule(point)[kTurnValues] == 0;
  });
  return points;
}

// Returns those of the points in which at least one stage uses a matrix instruction.
inline std::vector<Point> with_matrix_stages(const Space& space, std::vector<Point> points) {
  std::erase_if(points, [&](const Point& point) {
    const std::string plan = space.text(point), choice = ".matrix=";
    for (size_t at = plan.find(choice); at != std::string::npos; at = plan.find(choice, at + 1))
      if (plan.compare(at + choice.size(), 3, "no ") != 0) return false;
    return true;
  });
  return points;
}

inline constexpr const char* kOnePass[] = {kAttention, kCausal, kRowsWithoutKeys, kGroupedHeads, kOddKeysAndMasks};

inline constexpr const char* kStitched[] = {kAttention,       kHeads,     kHeadsOfOneInput, kFeedForward,
                                            kNormThenProduct, kTwoWidths, kTwoAxes,         kStoredAndRead};

}  // namespace wl::testing

// Contractions that are computed in tile registers (Intel AMX): every schedule computes its graph. Kernels that were
// damaged on purpose are refused or compute wrong results.
#include "compiler/schedule/contract/tiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "compiler/kernel/builder.h"
#include "compiler/kernel/tile_registers.h"
#include "compiler/schedule/contract/contract.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/compare.h"
#include "tests/unit/schedule/groups.h"
#include "tests/unit/schedule/instrs_in.h"
#include "tests/unit/schedule/points.h"
#include "tests/unit/schedule/tile_products.h"

namespace wl {
namespace {

using testing::each_of;
using ::testing::HasSubstr;
using testing::instrs_in;
using testing::machine_with;
using testing::parsed;
using testing::Searched;

std::vector<Point> points_in_tiles(const Space& space, size_t count, uint64_t seed) {
  return testing::drawn_points(space, count, seed,
                               [&](const Point& point) { return space.schedule(point)[kMatrix] != kNoMatrix; });
}

// A product whose kernel reads both operands in place, in steps of 12 words along k. Its 51 rows are computed in two
// tiles of at most 26 rows, each with two by two accumulator registers that are partly filled.
const char* const kProduct = R"(graph {
  %0 = input "a" : bf16[51,24,2] normal(0,1)
  %1 = input "b" : bf16[2,24,32,2] normal(0,1)
  %2 = contract %0 %1 "mkj,pkqj->mpq" : bf16[51,2,32]
  output "y" %2
})";

Searched lowered(const std::string& text) {
  return {text, "cpu:amx"};
}

Kernel seed_kernel(const Searched& one) {
  return one.lowered(one.space.seeds[0]);
}

TEST(Tiles, RandomProductsMeanTheirGraphs) {
  int kernels = 0, refused = 0, in_place = 0, packed = 0, blocks = 0;
  const uint64_t first = testing::test_seed(20261203);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(120)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Searched one = lowered(testing::tile_product(seed));
    const auto steps =
        tile_steps(one.graph, one.domain, one.machine, dot_of(one.graph, one.domain, one.machine, false));
    ASSERT_EQ(axis_of(one.space.axes, kMatrix) != nullptr, steps.has_value());
    refused += !steps;
    testing::expect_meanings(one.graph, one.domain, one.space, one.machine, points_in_tiles(one.space, 3, seed),
                             &kernels, [&](const Kernel& kernel, const Point& point) {
                               const Schedule schedule = one.space.schedule(point);
                               EXPECT_GT(instrs_in(kernel.body, InstrOp::kMma), 0);
                               EXPECT_EQ(instrs_in(kernel.body, InstrOp::kDot), 0);
                               EXPECT_TRUE(shapes_of(kernel, kernel.body).has_value());
                               in_place += instrs_in(kernel.body, InstrOp::kWords) > 1;
                               packed += schedule[kPackB];
                               blocks += schedule[kKc] != 0;
                               testing::expect_reads_back(kernel);
                             });
    if (HasFatalFailure()) return;
  }
  std::printf("%d kernels, %d graphs refused, %d kernels read in place, %d pack, %d in blocks of k\n", kernels, refused,
              in_place, packed, blocks);
  if (testing::scaled(120) >= 60) {
    EXPECT_GT(kernels, 100);
    EXPECT_GT(in_place, 10);
    EXPECT_GT(packed, 10);
  }
}

TEST(Tiles, FirstSeedHasFourRegistersOfSums) {
  const Searched one = lowered(kProduct);
  const Schedule schedule = one.space.schedule(one.space.seeds[0]);
  EXPECT_EQ(matrix_of(schedule), MatrixOp::kM16n16k32Bf16);
  const Kernel kernel = seed_kernel(one);
  SCOPED_TRACE(print(kernel));
  const auto shapes = shapes_of(kernel, kernel.body);
  ASSERT_TRUE(shapes.has_value());
  // Rows and bytes per row of the tile registers: four registers of sums, then four of factors.
  std::vector<std::pair<int64_t, int64_t>> expected = {{16, 64}, {16, 64}, {10, 64}, {10, 64},
                                                       {16, 48}, {10, 48}, {12, 64}, {12, 64}};
  std::vector<std::pair<int64_t, int64_t>> found;
  for (const TileRegister& shape : *shapes) found.emplace_back(shape.rows, shape.bytes);
  EXPECT_EQ(found, expected);
  EXPECT_EQ(kernel.buffers.back().name, "tile");        // no operand is packed
  EXPECT_EQ(instrs_in(kernel.body, InstrOp::kMma), 2);  // one product for each of the two tiles of rows
}

// A kernel that reads, multiplies or stores wrong elements is refused or computes wrong results.
TEST(Tiles, DamagedKernelsAreCaught) {
  const Searched one = lowered(kProduct);
  const Kernel whole = seed_kernel(one);
  ASSERT_EQ(testing::compare(one.graph, whole), "");
  const auto words = [](Kernel& kernel, size_t side, const std::function<void(Slice&)>& damage) {
    std::set<TileId> tiles;
    each_of(kernel, InstrOp::kMma, [&](Instr& mma) { tiles.insert(mma.args[side]); });
    each_of(kernel, InstrOp::kWords, [&](Instr& instr) {
      if (tiles.contains(instr.result)) damage(instr.slice);
    });
  };
  const std::vector<std::pair<const char*, std::function<void(Kernel&)>>> damages = {
      {"a row of the left factor further", [&](Kernel& k) { words(k, 0, [](Slice& s) { s.strides[0] += 2; }); }},
      {"a word of the left factor too early", [&](Kernel& k) { words(k, 0, [](Slice& s) { s.offset.base += 2; }); }},
      {"words of the left factor across rows",
       [&](Kernel& k) { words(k, 0, [](Slice& s) { std::swap(s.strides[0], s.strides[1]); }); }},
      {"rows of the right factor as if a register were a panel",
       [&](Kernel& k) { words(k, 1, [](Slice& s) { s.strides[1] = 32; }); }},
      {"another column of the right factor", [&](Kernel& k) { words(k, 1, [](Slice& s) { s.offset.base += 2; }); }},
      {"the factors in each other's place",
       [](Kernel& k) { each_of(k, InstrOp::kMma, [](Instr& i) { std::swap(i.args[0], i.args[1]); }); }},
      {"a product of other elements",
       [](Kernel& k) { each_of(k, InstrOp::kMma, [](Instr& i) { i.matrix = MatrixOp::kM16n16k64U8I8; }); }},
      {"sums that start elsewhere", [](Kernel& k) { each_of(k, InstrOp::kFill, [](Instr& i) { i.value = 1; }); }},
      {"sums of another row", [](Kernel& k) {
         each_of(k, InstrOp::kStore, [](Instr& i) {
           if (i.slice.strides[0] == 32) i.slice.strides[0] = 31;
         });
       }}};
  for (const auto& [what, damage] : damages) {
    Kernel kernel = whole;
    damage(kernel);
    EXPECT_FALSE(kernel == whole) << what;
    EXPECT_NE(testing::compare(one.graph, kernel), "") << what;
  }
}

TEST(Tiles, RegistersAreRefusedWhereTheyDoNotFit) {
  const Kernel whole = seed_kernel(lowered(kProduct));
  ASSERT_TRUE(verify(whole).ok()) << verify(whole);
  const auto refused = [&](const char* why, const std::function<void(Kernel&)>& damage) {
    Kernel kernel = whole;
    damage(kernel);
    EXPECT_THAT(verify(kernel).ToString(), HasSubstr(why));
  };
  const auto product = [](Kernel& kernel, const std::function<void(Instr&)>& damage) {
    each_of(kernel, InstrOp::kMma, damage);
  };
  refused("has no such matrices", [](Kernel& k) { k.target = "cpu:avx512_bf16"; });
  refused("tile registers start from zero",
          [](Kernel& k) { each_of(k, InstrOp::kFill, [](Instr& i) { i.value = 0.5; }); });
  refused("the rows of tile registers are contiguous", [](Kernel& k) {
    each_of(k, InstrOp::kWords, [](Instr& i) { i.slice.strides = {i.slice.strides[1], i.slice.strides[0]}; });
  });
  refused("not the instruction's fragments",
          [&](Kernel& k) { product(k, [&](Instr& i) { k.tiles[i.args[0]].layout.shape[1] -= 1; }); });
  refused("not the instruction's fragments", [&](Kernel& k) {  // leaves a tile register without rows
    product(k, [&](Instr& i) { k.tiles[i.result].layout.shape[0] = k.tiles[i.args[0]].layout.shape[0] = 16; });
  });
  refused("a tile in tile registers is only moved and multiplied", [&](Kernel& k) {
    TileId sums = -1;
    product(k, [&](Instr& i) { sums = i.result; });
    k.body.insert(k.body.begin(), constant_instr(sums, DType::f32, 0));
  });
}

// Tile registers are not offered if they would be at most half full, because there are few rows or columns or because
// the depth has no suitable divisor.
TEST(Tiles, AreOfferedWhereRegistersAreMoreThanHalfFull) {
  const auto offered = [](const char* target, int m, int n, int k) {
    const Graph group = parsed(
        cat("graph {\n  %0 = input \"a\" : bf16[", m, ",", k, "] normal(0,1)\n  %1 = input \"b\" : bf16[", k, ",", n,
            "] normal(0,1)\n  %2 = contract %0 %1 \"mk,kn->mn\" : bf16[", m, ",", n, "]\n  output \"y\" %2\n}"));
    const Machine machine = machine_with(std::string_view(target));
    return axis_of(space_of(group, analyze(group, machine).value(), machine).value().axes, kMatrix) != nullptr;
  };
  EXPECT_TRUE(offered("cpu:amx", 9, 9, 18));
  EXPECT_FALSE(offered("cpu:avx512_bf16", 64, 64, 64));
  EXPECT_FALSE(offered("cpu:amx", 8, 64, 64));
  EXPECT_FALSE(offered("cpu:amx", 64, 8, 64));
  EXPECT_FALSE(offered("cpu:amx", 64, 64, 2 * 37));
  EXPECT_TRUE(offered("cpu:amx", 64, 64, 2 * 39));  // 39 words along k can be divided into steps of 13 words
}

}  // namespace
}  // namespace wl

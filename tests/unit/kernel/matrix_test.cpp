// Matrix instructions: their table agrees with the vendors' manuals, fragments have the right layouts, and the verifier
// rejects wrong uses.
#include "compiler/target/matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

#include "compiler/kernel/barriers.h"
#include "compiler/kernel/builder.h"
#include "compiler/kernel/verify.h"
#include "compiler/target/target.h"

namespace wl {
namespace {

using ::testing::HasSubstr;
using Place = std::pair<int64_t, int64_t>;

// Returns the coordinates of element `within` of the vector that a lane holds in its register `reg`, computed from the
// definition of layouts.
Place place_of(const Layout& layout, int64_t lane, int64_t reg, int64_t within = 0, int64_t wave = 0) {
  uint64_t vector = 0;
  for (const Layout::Base& base : layout.bases) {
    int64_t& left = base.kind == 'v' ? within : base.kind == 'l' ? lane : base.kind == 'u' ? wave : reg;
    if (left % 2 != 0) vector ^= base.vector;
    left /= 2;
  }
  const uint64_t low = (uint64_t{1} << layout.bits[0]) - 1;
  return {static_cast<int64_t>(vector & low), static_cast<int64_t>(vector >> layout.bits[0])};
}

struct Held {
  int64_t lane, reg;
  Place first;  // row and column of the first of two neighbouring elements
};

// Fragments hold what the PTX ISA says for lanes 0, 5, 18 and 31 in "Matrix Fragments for mma.m16n8k16 with floating
// point type". Coordinates of the right factor are (column, k).
TEST(Matrices, Of16By8By16HoldWhatThePtxManualSays) {
  const std::vector<Held> left = {{0, 0, {0, 0}},  {0, 1, {8, 0}},   {0, 2, {0, 8}},   {0, 3, {8, 8}},
                                  {5, 0, {1, 2}},  {5, 1, {9, 2}},   {5, 2, {1, 10}},  {5, 3, {9, 10}},
                                  {18, 0, {4, 4}}, {18, 1, {12, 4}}, {18, 2, {4, 12}}, {18, 3, {12, 12}},
                                  {31, 0, {7, 6}}, {31, 1, {15, 6}}, {31, 2, {7, 14}}, {31, 3, {15, 14}}};
  const std::vector<Held> right = {{0, 0, {0, 0}},  {0, 1, {0, 8}},   {5, 0, {1, 2}},  {5, 1, {1, 10}},
                                   {18, 0, {4, 4}}, {18, 1, {4, 12}}, {31, 0, {7, 6}}, {31, 1, {7, 14}}};
  const std::vector<Held> sums = {{0, 0, {0, 0}},  {0, 1, {8, 0}},   {5, 0, {1, 2}},  {5, 1, {9, 2}},
                                  {18, 0, {4, 4}}, {18, 1, {12, 4}}, {31, 0, {7, 6}}, {31, 1, {15, 6}}};
  for (const MatrixOp op : {MatrixOp::kM16n8k16Bf16, MatrixOp::kM16n8k16F16}) {
    const Fragments& fragments = fragments_of(op);
    const auto words = [](Place place) { return Place{place.first, place.second / 2}; };
    for (const Held& held : left) EXPECT_EQ(place_of(fragments.a, held.lane, held.reg), words(held.first));
    for (const Held& held : right) EXPECT_EQ(place_of(fragments.b, held.lane, held.reg), words(held.first));
    for (const Held& held : sums)
      for (const int64_t second : {0, 1})
        EXPECT_EQ(place_of(fragments.c, held.lane, held.reg, second),
                  (Place{held.first.first, held.first.second + second}));
  }
}

// Tile registers hold what Intel's Software Developer's Manual says of TDPBF16PS: each row of a register is a row m of
// the left factor or of the accumulator, or a row k of the right factor with one 32-bit word for every column.
TEST(Matrices, OfTileRegistersHaveRowsOfWords) {
  for (const MatrixOp op : {MatrixOp::kM16n16k32Bf16, MatrixOp::kM16n16k64U8I8, MatrixOp::kM16n16k64I8U8}) {
    const Fragments& fragments = fragments_of(op);
    EXPECT_EQ(place_of(fragments.a, 0, 5, 3), (Place{5, 3}));
    EXPECT_EQ(place_of(fragments.b, 0, 5, 3), (Place{3, 5}));
    EXPECT_EQ(place_of(fragments.c, 0, 5, 3), (Place{5, 3}));
    const Layout sums = repeated(fragments.c, {Repeats{1}, Repeats{1}});
    const auto tiles = tiles_of(op, cut_to(sums, {17, 32}), 12);
    ASSERT_TRUE(tiles.has_value());
    EXPECT_EQ(tiles->a.shape, (std::vector<int64_t>{17, 12}));
    EXPECT_EQ(tiles->b.shape, (std::vector<int64_t>{32, 12}));
    EXPECT_EQ(place_of(tiles->a, 0, 16, 3), (Place{16, 3}));
    EXPECT_EQ(place_of(tiles->b, 0, 16, 3), (Place{19, 0}));
    // Refused: with 16 rows, the second of the two registers along the rows would be empty.
    EXPECT_FALSE(tiles_of(op, cut_to(sums, {16, 32}), 12).has_value());
    EXPECT_FALSE(tiles_of(op, sums, 17).has_value());
    EXPECT_FALSE(tiles_of(op, sums, 0).has_value());
  }
}

// AMD's instructions. D is the matrix of sums. The manuals say where element i of lane L lies:
//   MFMA 16x16x16  A and B: row (column) L % 16, k = 4 * (L / 16) + i; D: column L % 16, row 4 * (L / 16) + i
//   WMMA, RDNA3    A and B: row (column) L % 16, all k; D: column L % 16, row 2 * i + L / 16
//   WMMA, RDNA4    A and B: row (column) L % 16, k = 8 * (L / 16) + i; D: column L % 16, row 8 * (L / 16) + i
// Where the factors are exchanged (matrix.def), so are rows and columns of D.
struct AmdMatrix {
  std::vector<MatrixOp> ops;
  int lanes, each;  // number of lanes; elements of a factor in each lane
  std::function<int64_t(int64_t lane, int64_t i)> k;
  std::function<Place(int64_t lane, int64_t i)> sum;
};

TEST(Matrices, OfAmdHoldWhatTheManualsSay) {
  const AmdMatrix all[] = {{{MatrixOp::kMfma16F16, MatrixOp::kMfma16Bf16},
                            64,
                            4,
                            [](int64_t lane, int64_t i) { return 4 * (lane / 16) + i; },
                            [](int64_t lane, int64_t i) {
                              return Place{lane % 16, 4 * (lane / 16) + i};
                            }},
                           {{MatrixOp::kWmma16F16, MatrixOp::kWmma16Bf16},
                            32,
                            16,
                            [](int64_t, int64_t i) { return i; },
                            [](int64_t lane, int64_t i) {
                              return Place{2 * i + lane / 16, lane % 16};
                            }},
                           {{MatrixOp::kWmma16HalvesF16, MatrixOp::kWmma16HalvesBf16},
                            32,
                            8,
                            [](int64_t lane, int64_t i) { return 8 * (lane / 16) + i; },
                            [](int64_t lane, int64_t i) {
                              return Place{lane % 16, 8 * (lane / 16) + i};
                            }}};
  for (const AmdMatrix& matrix : all)
    for (const MatrixOp op : matrix.ops) {
      SCOPED_TRACE(std::string(info(op).name));
      const Fragments& fragments = fragments_of(op);
      const int64_t within = fragments.c.lanes();
      EXPECT_EQ(fragments.c.count('l'), matrix.lanes);
      EXPECT_EQ(2 * fragments.a.count('r'), matrix.each);
      for (int64_t lane = 0; lane < matrix.lanes; ++lane) {
        for (int64_t i = 0; i < matrix.each; i += 2)
          for (const Layout& factor : {fragments.a, fragments.b})
            EXPECT_EQ(place_of(factor, lane, i / 2), (Place{lane % 16, matrix.k(lane, i) / 2}));
        for (int64_t i = 0; i < 256 / matrix.lanes; ++i)
          EXPECT_EQ(place_of(fragments.c, lane, i / within, i % within), matrix.sum(lane, i));
      }
    }
}

// Expects that the registers of all lanes together hold every element of the matrix, and no position outside it.
void expect_whole(const Layout& layout, int64_t rows, int64_t columns, int64_t waves = 1) {
  std::set<Place> met;
  for (int64_t wave = 0; wave < waves; ++wave)
    for (int64_t lane = 0; lane < layout.count('l'); ++lane)
      for (int64_t reg = 0; reg < layout.count('r'); ++reg)
        for (int64_t within = 0; within < layout.lanes(); ++within)
          met.insert(place_of(layout, lane, reg, within, wave));
  EXPECT_EQ(static_cast<int64_t>(met.size()), rows * columns) << layout.text();
  EXPECT_EQ(met.rbegin()->first, rows - 1);
  EXPECT_EQ(layout.shape, (std::vector<int64_t>{rows, columns}));
}

TEST(Matrices, HaveFragmentsOfTheirShape) {
  std::set<std::string_view> names;
  for (const MatrixInfo& row : matrices()) {
    SCOPED_TRACE(std::string(row.name));
    EXPECT_TRUE(names.insert(row.name).second);
    EXPECT_EQ(matrix_named(row.name), row.op);
    EXPECT_EQ(&info(row.op), &row);
    const int64_t words = row.k / elements_of_word(row.left);
    const Fragments& fragments = fragments_of(row.op);
    const int64_t waves = fragments.c.count('u');
    expect_whole(fragments.a, row.m, words, waves);
    expect_whole(fragments.b, row.n, words, waves);
    expect_whole(fragments.c, row.m, row.n, waves);
    for (const Target& target : targets())
      if ((target.features & row.feature) == row.feature) {
        EXPECT_THAT(matrices_for(row.left, row.right, target.features, holds_left(row.op)),
                    ::testing::Contains(row.op));
        EXPECT_GE(target.arithmetic.matrices(row.left, row.right), 1);
        EXPECT_EQ(std::max(1, target.gpu.wave), fragments.c.count('l'));
      }
  }
  EXPECT_EQ(matrix_named("m1n1k1"), std::nullopt);
  EXPECT_TRUE(matrices_for(DType::f64, DType::f64, ~0U).empty());
  EXPECT_TRUE(matrices_for(DType::f16, DType::f16, 0).empty());
}

TEST(Matrices, RepeatOverRegistersAndWaves) {
  const MatrixOp op = MatrixOp::kM16n8k16Bf16;
  const Layout sums = repeated(fragments_of(op).c, {Repeats{2, {1}}, Repeats{1, {0}}});
  expect_whole(sums, 128, 32, 4);
  // Wave 1 computes the right half of the result and wave 2 the lower half. The low bits of a register's number select
  // a register within a fragment.
  EXPECT_EQ(place_of(sums, 0, 0, 0, 1), (Place{0, 16}));
  EXPECT_EQ(place_of(sums, 0, 0, 0, 2), (Place{64, 0}));
  EXPECT_EQ(place_of(sums, 0, 1), (Place{8, 0}));
  EXPECT_EQ(place_of(sums, 0, 2), (Place{16, 0}));
  const auto tiles = tiles_of(op, sums, 16);  // 16 words along k, which are two steps of the instruction
  ASSERT_TRUE(tiles.has_value());
  EXPECT_EQ(tiles->a.shape, (std::vector<int64_t>{128, 16}));
  EXPECT_EQ(tiles->b.shape, (std::vector<int64_t>{32, 16}));
  // Waves 0 and 1 compute the same rows of the result, so they hold the same part of the left factor: the lowest bit of
  // the wave's number does not matter there.
  EXPECT_EQ(place_of(tiles->a, 3, 0, 0, 0), place_of(tiles->a, 3, 0, 0, 1));
  EXPECT_EQ(place_of(tiles->a, 3, 0, 0, 2).first, 64);
  EXPECT_EQ(place_of(tiles->b, 3, 0, 0, 1).first, 16);
  Layout other = sums;
  std::swap(other.bases[0].vector, other.bases[1].vector);
  EXPECT_FALSE(tiles_of(op, other, 16).has_value());
  EXPECT_FALSE(tiles_of(op, fragments_of(op).a, 16).has_value());
  EXPECT_FALSE(tiles_of(op, sums, 4).has_value());
  // A bias that varies only along columns has the layout of the accumulator, reduced to a single row.
  const Layout bias = projected(sums, {false, true});
  EXPECT_EQ(bias.shape, (std::vector<int64_t>{1, 32}));
  EXPECT_EQ(bias.lanes(), 2);
  EXPECT_EQ(place_of(bias, 7, 1, 1, 1), (Place{0, 16 + 8 + 7}));
}

// A kernel in which one wave executes one matrix instruction: y[16,8] = 0.5 + a[16,16] x b[16,8]. All three matrices
// lie in global memory, b transposed.
Kernel one_product() {
  Kernel kernel;
  kernel.name = "product";
  kernel.target = "cuda:sm_80";
  kernel.wave = kernel.team = kernel.threads = 32;
  kernel.teams = 1;
  kernel.vars = {{Var::Kind::kBlock, "block", {}, 1, 0}, {Var::Kind::kTeam, "team", {}, 1, 0}};
  kernel.buffers = {{"a", DType::bf16, {16, 16}, Level::kGlobal, false, false, 0},
                    {"b", DType::bf16, {8, 16}, Level::kGlobal, false, false, 0},
                    {"y", DType::f32, {16, 8}, Level::kGlobal, true, true, 0}};
  const Fragments& fragments = fragments_of(MatrixOp::kM16n8k16Bf16);
  kernel.tiles = {{DType::u32, fragments.a, {}}, {DType::u32, fragments.b, {}}, {DType::f32, fragments.c, {}}};
  kernel.body = {words_instr(0, DType::bf16, {0, {}, {16, 2}}), words_instr(1, DType::bf16, {1, {}, {16, 2}}),
                 fill_instr(2, 0.5), mma_instr(2, MatrixOp::kM16n8k16Bf16, 0, 1),
                 store_instr(2, {2, {}, {8, 1}}, false)};
  return kernel;
}

// Like one_product(), but the right factor is copied to shared memory as 16 rows, one for each k, and each of its words
// is loaded from two neighbouring rows.
Kernel product_across() {
  Kernel kernel = one_product();
  kernel.buffers[1].shape = {16, 8};
  kernel.buffers.push_back({"s", DType::bf16, {16, 16}, Level::kShared, false, false, 0});
  kernel.tiles.push_back({DType::bf16, dealt_layout({16, 8}, {{1, 'r', {2, 3, 4}}, {2, 'v', {0, 1}}}, 32, 32), {}});
  kernel.body[1] = words_across_instr(1, DType::bf16, {3, {}, {1, 32}}, 16);
  kernel.body.insert(kernel.body.begin(), store_instr(3, {3, {}, {16, 1}}, false));
  kernel.body.insert(kernel.body.begin(), load_instr(3, {1, {}, {8, 1}}));
  insert_barriers(kernel);
  return kernel;
}

void expect_product(const Kernel& kernel, int64_t column_stride, int64_t k_stride) {
  std::vector<std::vector<double>> buffers(3);
  for (int i = 0; i < 256; ++i) buffers[0].push_back(i % 7 - 3);
  for (int i = 0; i < 128; ++i) buffers[1].push_back(i % 5 - 2);
  buffers[2].assign(128, -1);
  const std::vector<std::vector<double>> before = buffers;
  ASSERT_TRUE(interpret(kernel, buffers).ok()) << interpret(kernel, buffers);
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      double sum = 0.5;
      for (int k = 0; k < 16; ++k) sum += before[0][row * 16 + k] * before[1][column * column_stride + k * k_stride];
      EXPECT_EQ(buffers[2][row * 8 + column], sum) << row << "," << column;
    }
  const auto again = parse_kernel(print(kernel));
  ASSERT_TRUE(again.ok()) << again.status() << print(kernel);
  EXPECT_EQ(*again, kernel);
}

TEST(Matrices, AreAddedUp) {
  expect_product(one_product(), 16, 1);
  expect_product(product_across(), 1, 8);
}

TEST(Matrices, HaveWordsAcrossWholeRowsOfABlock) {
  const auto refused = [](const std::function<void(Kernel&, Instr&)>& damage, const char* why) {
    Kernel kernel = product_across();
    for (Instr& instr : kernel.body)
      if (instr.op == InstrOp::kWordsAcross) damage(kernel, instr);
    EXPECT_THAT(verify(kernel).ToString(), HasSubstr(why));
  };
  const char *const kRows = "not of whole rows of 16 bytes", *const kBlock = "lanes do not hold a block";
  refused([](Kernel&, Instr& i) { i.gap = 12; }, kRows);
  refused([](Kernel&, Instr& i) { i.gap = 24; }, kRows);  // 24: a multiple of 16 bytes, but not the rows' distance
  refused([](Kernel&, Instr& i) { i.slice.offset.base = 4; }, kRows);
  refused([](Kernel&, Instr& i) { i.slice.strides = {2, 32}; }, kRows);
  refused([](Kernel& k, Instr& i) { std::swap(k.tiles[i.result].layout.bases[0], k.tiles[i.result].layout.bases[1]); },
          kBlock);
  refused([](Kernel&, Instr& i) { i.slice.buffer = 1; }, kBlock);
}

TEST(Matrices, AreRefusedWhereTheTilesAreNotTheirFragments) {
  ASSERT_TRUE(verify(one_product()).ok()) << verify(one_product());
  const auto refused = [](const std::function<void(Kernel&)>& damage, const char* why) {
    Kernel kernel = one_product();
    damage(kernel);
    EXPECT_THAT(verify(kernel).ToString(), HasSubstr(why));
  };
  const char* const kShape = "the tiles are not the instruction's fragments";
  refused([](Kernel& k) { std::swap(k.tiles[0].layout.bases[5], k.tiles[0].layout.bases[6]); }, kShape);
  refused([](Kernel& k) { std::swap(k.tiles[1].layout.bases[0], k.tiles[1].layout.bases[1]); }, kShape);
  refused([](Kernel& k) { k.tiles[2].layout.bases[0].kind = 'r'; }, kShape);
  refused([](Kernel& k) { std::swap(k.body[3].args[0], k.body[3].args[1]); }, kShape);
  refused([](Kernel& k) { k.body[3].args.pop_back(); }, "takes two tiles");
  refused([](Kernel& k) { k.target = "cuda:sm_75"; }, "has no such matrices");
  refused([](Kernel& k) { k.tiles[2].bound = {{Affine{3, {}}}, {}}; }, "fragments have no bounds");
  refused(
      [](Kernel& k) {
        k.tiles[2].dtype = DType::f64;
        k.buffers[2].dtype = DType::f64;
      },
      "adds products of words to f32");
  std::string text = print(one_product());
  text.replace(text.find("m16n8k16_bf16"), 13, "m16n8k16_bf17");
  EXPECT_THAT(parse_kernel(text).status().ToString(), HasSubstr("no matrix instruction is called 'm16n8k16_bf17'"));
}

}  // namespace
}  // namespace wl

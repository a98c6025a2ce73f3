// Products with conditions on coordinates: kernels compute their graphs, and skip products that a mask makes zero.
#include <gtest/gtest.h>

#include <functional>

#include "absl/strings/str_replace.h"
#include "compiler/domain/masks.h"
#include "compiler/kernel/var_values.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/compare.h"
#include "tests/unit/schedule/groups.h"
#include "tests/unit/schedule/masked_products.h"
#include "tests/unit/schedule/traffic.h"

namespace wl {
namespace {

using testing::machine_with;
using testing::parsed;

// Returns how many multiplications a kernel executes. A tile that is only partly needed is counted whole.
int64_t products_of(const Kernel& kernel) {
  VarValues vars(kernel);
  int64_t products = 0;
  for (int64_t block = 0; block < kernel.grid; ++block) {
    vars.set(0, block);
    testing::each_run(kernel.body, vars, [&](const Instr& instr) {
      if (instr.op == InstrOp::kMap && instr.expr.back().op == Op::fma && instr.args.back() == instr.result)
        products += elements(kernel.tiles[instr.result].layout.shape);
    });
  }
  return products;
}

struct Counted {
  int64_t products = 0;
  std::vector<int64_t> moved;  // elements loaded from or stored to each buffer
};

// Counts multiplications and moved elements of the kernel for the space's first seed with these choices.
Counted counted(const Graph& group, std::string_view target, const std::vector<std::pair<Choice, int64_t>>& choices) {
  const Machine machine = machine_with(target);
  const Domain domain = analyze(group, machine).value();
  const Space space = space_of(group, domain, machine).value();
  Schedule schedule = space.schedule(space.seeds[0]);
  for (const auto& [choice, value] : choices) schedule.set(choice, value);
  const auto kernel = lower(group, domain, schedule, machine);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return {products_of(*kernel), testing::elements_moved(*kernel)};
}

// Masks of a square matrix. kLower and kUpper keep the diagonal, kAbove keeps only elements above it, and kBand keeps
// the diagonal and 31 diagonals below it.
enum class Mask { kNone, kLower, kUpper, kAbove, kBand };

// A product of square matrices, with the given masks on the left factor, the right factor and the result.
Graph squares(int64_t n, Mask left, Mask right, Mask result) {
  std::string text = "graph {\n  %0 = input \"a\" : f32[N,N]\n  %1 = input \"c\" : f32[N,N]\n";
  int next = 2;
  const auto add = [&](const std::string& value, const char* dtype) {
    append(&text, "  %", next, " = ", value, " : ", dtype, "[N,N]\n");
    return next++;
  };
  const auto masked = [&](int value, Mask mask) {
    if (mask == Mask::kNone) return value;
    const int row = add("iota axis=[0]", "i64"), column = add("iota axis=[1]", "i64");
    const int apart = add(cat("sub %", row, " %", column), "i64"), none = add("constant 0", "i64");
    const char* op = mask == Mask::kUpper ? "le" : mask == Mask::kAbove ? "lt" : "ge";
    int inside = add(cat(op, " %", apart, " %", none), "b1");
    if (mask == Mask::kBand) {
      const int width = add("constant 32", "i64"), near = add(cat("lt %", apart, " %", width), "b1");
      inside = add(cat("logical_and %", inside, " %", near), "b1");
    }
    const int zero = add("constant 0", "f32");
    return add(cat("select %", inside, " %", value, " %", zero), "f32");
  };
  const int a = masked(0, left), c = masked(1, right);
  const int product = add(cat("contract %", a, " %", c, " \"mk,kn->mn\""), "f32");
  append(&text, "  output \"y\" %", masked(product, result), "\n}");
  return parsed(absl::StrReplaceAll(text, {{"N", cat(n)}}));
}

constexpr Mask kNone = Mask::kNone;

// expect_masked_meaning() lowers a product at some of the points whose schedules are `wanted`, expects that the kernels
// compute the product, and counts in a MaskedCount these kernels and the calls whose product has a mask.
struct MaskedCount {
  int kernels = 0, masks = 0;
};
void expect_masked_meaning(const Graph& group, std::string_view target, uint64_t seed, MaskedCount& tally,
                           const std::function<bool(const Schedule&)>& wanted) {
  const Machine machine = machine_with(target);
  const auto domain = analyze(group, machine);
  ASSERT_TRUE(domain.ok()) << domain.status() << print(group);
  if (domain->cls != LoopClass::kContract) return;
  tally.masks += counted_products(group, *domain).empty() ? 0 : 1;
  const Space space = space_of(group, *domain, machine).value();
  std::vector<Point> drawn = testing::sample_points(space, 12, seed), points;
  std::erase_if(drawn, [&](const Point& point) { return !wanted(space.schedule(point)); });
  for (size_t i = seed % 4; i < drawn.size(); i += 4) points.push_back(drawn[i]);
  testing::expect_meanings(group, *domain, space, machine, points, &tally.kernels,
                           [&](const Kernel& kernel, const Point&) { testing::expect_reads_back(kernel); });
}

TEST(Masked, RandomProductsMeanTheirGraphs) {
  MaskedCount tally;
  const uint64_t first = testing::test_seed(20261125);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(160)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const bool narrow = seed % 5 == 0;
    const Graph group = parsed(testing::MaskedProductText(seed, narrow ? "bf16" : "").text());
    for (const char* target : {narrow ? "cpu:avx512_bf16" : "cpu:avx512", "cpu:generic", "cuda:sm_80"}) {
      expect_masked_meaning(group, target, seed, tally, [](const Schedule&) { return true; });
      if (HasFatalFailure()) return;
    }
  }
  std::printf("%d kernels, %d groups with masks\n", tally.kernels, tally.masks);
  if (testing::scaled(160) >= 40) {
    EXPECT_GT(tally.masks, 40);
  }
}

// If the loop over k is divided into blocks, the range of k that a tile needs may begin or end inside a block.
TEST(Masked, RandomProductsInBlocksOfDepthMeanTheirGraphs) {
  MaskedCount tally;
  const uint64_t first = testing::test_seed(20261124);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(24)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph group = parsed(testing::MaskedProductText(seed, "", 300 + static_cast<int64_t>(seed % 400)).text());
    expect_masked_meaning(group, "cpu:avx512", seed, tally, [](const Schedule& s) { return s[kKc] != 0; });
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(tally.kernels, 0);
}

// A triangular mask leaves half of the products. Tiles that reach beyond the diagonal compute a few more.
TEST(Masked, ATriangleHasHalfOfTheProducts) {
  constexpr int64_t kN = 512;
  for (const char* target : {"cpu:avx512", "cpu:generic"})
    for (const int64_t depth : {0, 256}) {
      const auto count = [&](const Graph& group) { return counted(group, target, {{kKc, depth}, {kNc, 0}}); };
      const auto whole = static_cast<double>(count(squares(kN, kNone, kNone, kNone)).products);
      const auto share = [&](const Graph& group) { return static_cast<double>(count(group).products) / whole; };
      SCOPED_TRACE(cat(target, " kc ", depth));
      for (const Mask mask : {Mask::kLower, Mask::kUpper}) {
        for (const double part : {share(squares(kN, mask, kNone, kNone)), share(squares(kN, kNone, mask, kNone)),
                                  share(squares(kN, kNone, kNone, mask))}) {
          EXPECT_GT(part, 0.5) << static_cast<int>(mask);
          EXPECT_LT(part, 0.58) << static_cast<int>(mask);
        }
      }
      const double both = share(squares(kN, Mask::kLower, Mask::kLower, kNone));
      EXPECT_GT(both, 1.0 / 6);
      EXPECT_LT(both, 0.23) << "n <= k <= m";
      const double nothing = share(squares(kN, Mask::kLower, kNone, Mask::kAbove));
      EXPECT_GT(nothing, 0.16) << "k <= m < n";
      EXPECT_LT(nothing, 0.23);
    }
}

// Elements of a triangular factor that the mask makes zero are not packed, so they are not read.
TEST(Masked, OnlyTheTriangleIsRead) {
  const std::vector<std::pair<Choice, int64_t>> choices = {{kKc, 0}, {kNc, 0}, {kColumnTasks, 1}};
  for (const Mask mask : {Mask::kLower, Mask::kUpper}) {
    const auto left = counted(squares(512, mask, kNone, kNone), "cpu:avx512", choices);
    EXPECT_LT(static_cast<double>(left.moved[0]), 0.52 * 512 * 512) << static_cast<int>(mask);
    EXPECT_GE(left.moved[0], 512 * 513 / 2);
    const auto right = counted(squares(512, kNone, mask, kNone), "cpu:avx512", choices);
    EXPECT_LT(static_cast<double>(right.moved[1]), 0.58 * 512 * 512) << static_cast<int>(mask);
  }
}

// Tiles reach beyond the edges of a band by at most their height or width, so the number of products is proportional
// to the band's width.
TEST(Masked, ABandTakesAsManyProductsAsItIsWide) {
  const auto count = [](Mask left, Mask right, Mask result) {
    return static_cast<double>(
        counted(squares(512, left, right, result), "cpu:avx512", {{kMr, 8}, {kNv, 2}, {kKc, 0}, {kNc, 0}}).products);
  };
  const double whole = count(kNone, kNone, kNone);
  EXPECT_NEAR(count(Mask::kBand, kNone, kNone) / whole, (32 + 8 - 1) / 512.0, 0.005);
  EXPECT_NEAR(count(kNone, Mask::kBand, kNone) / whole, (32 + 32 - 1) / 512.0, 0.005);
  EXPECT_LT(count(kNone, kNone, Mask::kBand) / whole, (32 + 32 + 8) / 512.0);
}

}  // namespace
}  // namespace wl

// Products of narrow elements: with words, and without them, every schedule means the graph.
#include "compiler/schedule/contract/dot.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/fuzz.h"
#include "tests/unit/ir/windows.h"
#include "tests/unit/schedule/compare.h"
#include "tests/unit/schedule/dot_products.h"
#include "tests/unit/schedule/groups.h"

namespace wl {
namespace {

using testing::machine_with;
using testing::parsed;

int dots_in(const std::vector<Instr>& body) {
  int dots = 0;
  for (const Instr& instr : body) dots += (instr.op == InstrOp::kDot ? 1 : 0) + dots_in(instr.body);
  return dots;
}

// At most so many points of a space, of those that `wanted` takes.
std::vector<Point> drawn(const Space& space, int most, uint64_t seed, const std::function<bool(const Point&)>& wanted) {
  std::vector<Point> points, all;
  space.enumerate([&](const Point& point) {
    if (wanted(point)) all.push_back(point);
    return true;
  });
  for (int i = 0; i < most && !all.empty(); ++i) points.push_back(all[split_mix(seed) % all.size()]);
  return points;
}

TEST(Dot, RandomProductsMeanTheirGraphs) {
  int kernels = 0, dots = 0, without = 0, panels = 0;
  const uint64_t first = testing::test_seed(20261126);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(200)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph group = parsed(testing::random_product(seed));
    for (const char* target : {"cpu:avx512_bf16", "cpu:avx512_vnni", "cpu:generic"}) {
      const Machine machine = machine_with(std::string_view(target));
      const auto domain = analyze(group, machine);
      ASSERT_TRUE(domain.ok()) << domain.status() << print(group);
      if (domain->cls != LoopClass::kContract) continue;
      const Space space = space_of(group, *domain, machine).value();
      const std::vector<Point> points = drawn(space, 4, seed, [](const Point&) { return true; });
      const auto dot = dot_of(group, *domain, machine);
      testing::expect_meanings(group, *domain, space, machine, points, &kernels,
                               [&](const Kernel& kernel, const Point& point) {
                                 const bool turn = space.schedule(point)[kTurnTiles] != 0;
                                 const bool words = (turn ? dot_of(group, turned(*domain), machine) : dot).has_value();
                                 EXPECT_EQ(dots_in(kernel.body) > 0, words);
                                 (dot ? dots : without) += 1;
                                 panels += dot && machine.target->name == "cpu:generic";
                                 const auto again = parse_kernel(print(kernel));
                                 ASSERT_TRUE(again.ok()) << again.status();
                                 EXPECT_EQ(*again, kernel);
                               });
      if (HasFatalFailure()) return;
    }
  }
  std::printf("%d kernels, %d with words, %d without, %d of panels on any machine\n", kernels, dots, without, panels);
  if (testing::scaled(200) >= 50) {
    EXPECT_GT(dots, 50);
    EXPECT_GT(without, 20);
    EXPECT_GT(panels, 4);
  }
}

// Images are copied in words, turned or not, with strides, and with channels that do not fill a word.
TEST(Dot, RandomConvolutionsMeanTheirGraphs) {
  int kernels = 0, dots = 0, copied = 0, turns = 0, panels = 0;
  const uint64_t first = testing::test_seed(20261127);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(150)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph group =
        parsed(testing::ConvolutionText(seed, seed % 4 == 0 ? 0 : 32, /*channels_last=*/false, /*bytes=*/true).text());
    for (const char* target : {"cpu:avx512_vnni", "cpu:generic"}) {
      const Machine machine = machine_with(std::string_view(target));
      const auto domain = analyze(group, machine);
      ASSERT_TRUE(domain.ok()) << domain.status() << print(group);
      if (domain->cls != LoopClass::kContract) continue;
      const Space space = space_of(group, *domain, machine).value();
      const std::vector<Point> points =
          drawn(space, 6, seed, [&](const Point& point) { return space.schedule(point)[kCompiler] == 0; });
      testing::expect_meanings(group, *domain, space, machine, points, &kernels,
                               [&](const Kernel& kernel, const Point& point) {
                                 if (dots_in(kernel.body) == 0) return;
                                 const Schedule s = space.schedule(point);
                                 ++dots;
                                 copied += s[kCopyImage] != 0;
                                 turns += s[kTurnTiles] != 0;
                                 panels += machine.target->name == "cpu:generic";
                               });
      if (HasFatalFailure()) return;
    }
  }
  std::printf("%d kernels, %d with words: %d of copied images, %d of turned tiles, %d on any machine\n", kernels, dots,
              copied, turns, panels);
  if (testing::scaled(150) >= 30) {
    EXPECT_GT(copied, 20);
    EXPECT_GT(turns, 20);
    EXPECT_GT(panels, 4);
  }
}

// The words of the second operand lie in memory as the product reads them: nothing is packed.
TEST(Dot, PanelsOfWordsArePackedNowhere) {
  const Machine machine = machine_with(std::string_view("cpu:avx512_bf16"));
  const Graph group = parsed(R"(graph {
  %0 = input "a" : u8[96,16,4] uniform(0,255)
  %1 = input "b" : i8[2,16,32,4] uniform(-128,127)
  %2 = contract %0 %1 "mkj,pkqj->mpq" : i32[96,2,32]
  output "y" %2
})");
  const Domain domain = analyze(group, machine).value();
  const Space space = space_of(group, domain, machine).value();
  for (const Point& seed : space.seeds) {
    const auto kernel = lower(group, domain, space.schedule(seed), machine);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    for (const KernelBuffer& buffer : kernel->buffers) EXPECT_EQ(buffer.level, Level::kGlobal) << print(*kernel);
  }
}

}  // namespace
}  // namespace wl

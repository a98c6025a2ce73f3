// Products of narrow elements: every schedule computes its graph, with dot-product instructions on words of 32 bits and
// without them.
#include "compiler/schedule/contract/dot.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/fuzz.h"
#include "tests/unit/ir/windows.h"
#include "tests/unit/schedule/compare.h"
#include "tests/unit/schedule/dot_products.h"
#include "tests/unit/schedule/groups.h"
#include "tests/unit/schedule/instrs_in.h"
#include "tests/unit/schedule/points.h"

namespace wl {
namespace {

using testing::each_of;
using testing::machine_with;
using testing::parsed;

int dots_in(const std::vector<Instr>& body) {
  return testing::instrs_in(body, InstrOp::kDot);
}

TEST(Dot, RandomProductsMeanTheirGraphs) {
  int kernels = 0, dots = 0, parts = 0, wide = 0, without = 0, panels = 0;
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
      const std::vector<Point> points = testing::drawn_points(space, 4, seed, [](const Point&) { return true; });
      testing::expect_meanings(group, *domain, space, machine, points, &kernels,
                               [&](const Kernel& kernel, const Point& point) {
                                 const Schedule schedule = space.schedule(point);
                                 const bool widen = schedule[kWiden] != 0;
                                 const Domain of = schedule[kTurnTiles] != 0 ? turned(*domain) : *domain;
                                 const bool words = dot_of(group, of, machine, widen).has_value();
                                 EXPECT_EQ(dots_in(kernel.body) > 0, words && !widen);
                                 EXPECT_EQ(testing::instrs_in(kernel.body, InstrOp::kPart) > 0, words && widen);
                                 (!words ? widen ? wide : without : widen ? parts : dots) += 1;
                                 panels += words && machine.target->name == "cpu:generic";
                                 testing::expect_reads_back(kernel);
                               });
      if (HasFatalFailure()) return;
    }
  }
  std::printf(
      "%d kernels, %d with words, %d with words taken apart, %d of bf16 as f32, %d without, %d of panels on any "
      "machine\n",
      kernels, dots, parts, wide, without, panels);
  if (testing::scaled(200) >= 50) {
    EXPECT_GT(dots, 50);
    EXPECT_GT(parts, 10);
    EXPECT_GT(wide, 10);
    EXPECT_GT(without, 20);
    EXPECT_GT(panels, 4);
  }
}

// Convolutions of narrow elements, whose images are copied in words: with transposed tiles or untransposed ones, with
// strides, and with channels that do not fill their last word.
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
      const std::vector<Point> points = testing::drawn_points(
          space, 6, seed, [&](const Point& point) { return space.schedule(point)[kCompiler] == 0; });
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

// The words of the right operand lie in memory in the order in which the kernel reads them, so the kernel does not pack
// this operand.
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

// On a target without dot-product instructions, a kernel splits words into elements and multiplies these. A kernel that
// takes or multiplies wrong elements is refused or computes wrong results.
TEST(Dot, DamagedPartsAreCaught) {
  const Machine machine = machine_with(std::string_view("cpu:avx2"));  // a target that cannot multiply words
  const Graph group = parsed(R"(graph {
  %0 = input "a" : bf16[10,6,2] normal(0,1)
  %1 = input "b" : bf16[2,6,16,2] normal(0,1)
  %2 = contract %0 %1 "mkj,pkqj->mpq" : bf16[10,2,16]
  output "y" %2
})");
  const Domain domain = analyze(group, machine).value();
  const Space space = space_of(group, domain, machine).value();
  const Kernel whole = lower(group, domain, space.schedule(space.seeds[0]), machine).value();
  ASSERT_EQ(testing::instrs_in(whole.body, InstrOp::kPart) % 2, 0);
  ASSERT_EQ(testing::compare(group, whole), "");
  const std::vector<std::pair<const char*, std::function<void(Kernel&)>>> damages = {
      {"the other element", [&](Kernel& k) { each_of(k, InstrOp::kPart, [](Instr& i) { i.part = 1 - i.part; }); }},
      {"an element that no word has", [&](Kernel& k) { each_of(k, InstrOp::kPart, [](Instr& i) { i.part = 2; }); }},
      {"elements of bytes",
       [&](Kernel& k) { each_of(k, InstrOp::kPart, [](Instr& i) { i.elements[0] = DType::u8; }); }},
      {"words that begin with the second element",
       [&](Kernel& k) { each_of(k, InstrOp::kWords, [](Instr& i) { i.slice.offset.base += 1; }); }},
      {"rows of one element each", [&](Kernel& k) {
         each_of(k, InstrOp::kStore, [&](Instr& i) {
           if (k.buffers[i.slice.buffer].level == Level::kShared) i.slice.strides[0] += 1;
         });
       }}};
  for (const auto& [what, damage] : damages) {
    Kernel kernel = whole;
    damage(kernel);
    ASSERT_FALSE(kernel == whole) << what;
    EXPECT_TRUE(!verify(kernel).ok() || !testing::compare(group, kernel).empty()) << what;
  }
}

}  // namespace
}  // namespace wl

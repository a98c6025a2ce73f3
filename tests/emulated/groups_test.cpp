// Runs kernels of fused groups, compiled to AMD machine code, on the emulator and compares their results with the
// oracle's. The groups are those of the goldens and random ones.
#include "tests/golden/groups.h"

#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "compiler/cover/cover.h"
#include "compiler/cover/stitching.h"
#include "compiler/emit/emit.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/emulated/device.h"
#include "tests/simulated/random_group.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/contract/convolutions.h"
#include "tests/unit/schedule/contract/stitched_products.h"
#include "tests/unit/schedule/contractions.h"
#include "tests/unit/schedule/groups.h"
#include "tests/unit/schedule/instrs_in.h"
#include "tests/unit/schedule/stitched_groups.h"

namespace wl {
namespace {

using testing::EmulatedDevice;

// Whether the emulator can execute the group's stores. Clang merges stores to neighbouring elements into words at any
// address, as the hardware allows, but the emulator stores words only at multiples of four bytes.
bool stores_whole_words(const Graph& group) {
  return std::ranges::all_of(group.outputs, [&](const Output& output) {
    const Node& node = group.nodes[output.node];
    return size_of(node.dtype) >= 4 || node.shape.empty() || node.shape.back() % 2 == 0;
  });
}

// Whether the kernel loads bytes at least four at a time, or is not for RDNA3. For RDNA3, clang 22 assembles bytes
// that are loaded one by one in 16-bit halves of registers, with which the emulator computes wrongly while some lanes
// are inactive.
bool loads_bytes_in_words(const Kernel& kernel) {
  if ((target_named(kernel.target).value()->features & kWmma) == 0) return true;
  bool words = true;
  each_instr(kernel.body, [&](const Instr& instr) {
    if (instr.op == InstrOp::kLoad && size_of(kernel.tiles[instr.result].dtype) == 1)
      words = words && kernel.tiles[instr.result].layout.lanes() >= 4;
  });
  return words;
}

// Whether the kernel has no matrix instruction for bytes: the emulator takes the bytes of both factors for signed
// ones. Only BytesByMatricesMeanTheirGraphs runs such instructions, with bytes that are the same signed and unsigned.
bool multiplies_no_bytes(const Kernel& kernel) {
  bool bytes = false;
  each_instr(kernel.body, [&](const Instr& instr) {
    bytes = bytes || (instr.op == InstrOp::kMma && is_byte(info(instr.matrix).left));
  });
  return !bytes;
}

bool is_computed_rightly(const Kernel& kernel) {
  return loads_bytes_in_words(kernel) && multiplies_no_bytes(kernel);
}

class Emulated : public ::testing::Test {
 protected:
  void SetUp() override {
    if (EmulatedDevice::get() == nullptr) GTEST_SKIP() << "not started with the emulator (tests/emulated/emulator.py)";
  }

  // Runs one kernel of a group, if `accepts` returns true for it, and expects that its results are right. Returns
  // whether the kernel was executed.
  bool run(const Graph& group, const Domain& domain, const Space& space, const Point& point, uint64_t seed,
           bool (*accepts)(const Kernel&) = is_computed_rightly) {
    EmulatedDevice& device = *EmulatedDevice::get();
    const Machine machine = device.machine();
    const std::string plan = space.text(point);
    const auto kernel = lower(group, domain, space.schedule(point), machine);
    if (absl::IsUnimplemented(kernel.status())) return false;
    EXPECT_TRUE(kernel.ok()) << kernel.status() << print(group) << plan;
    if (!kernel.ok() || kernel->grid == 0 || !accepts(*kernel)) return false;
    const Source source = emit(*kernel, machine).value();
    const auto wrong = testing::run_group(device, group, source, plan, seed);
    EXPECT_EQ(wrong.value_or(""), "") << plan << "\n" << print(group) << source.text;
    return wrong.has_value();
  }

  // Runs `wanted` kernels with matrix instructions. `text` makes the text of a graph from each seed. `points_of`
  // chooses points of the graph's space, and the last of those with a matrix instruction gives the kernel.
  void products(uint64_t from, int64_t wanted, std::string (*text)(uint64_t),
                std::vector<Point> (*points_of)(const Space&, uint64_t)) {
    const Machine machine = EmulatedDevice::get()->machine();
    int64_t kernels = 0;
    const uint64_t first = testing::test_seed(from);
    for (uint64_t seed = first; kernels < wanted && seed < first + 100 * wanted; ++seed) {
      SCOPED_TRACE(cat("seed ", seed));
      const Graph group = parse(text(seed)).value();
      const Domain domain = analyze(group, machine).value();
      if (domain.cls != LoopClass::kContract || !stores_whole_words(group)) continue;
      const Space space = space_of(group, domain, machine).value();
      std::vector<Point> points = points_of(space, seed);
      std::erase_if(points, [&](const Point& point) { return space.schedule(point)[kMatrix] == kNoMatrix; });
      if (!points.empty()) kernels += run(group, domain, space, points.back(), seed, loads_bytes_in_words) ? 1 : 0;
      if (HasFailure()) return;
    }
    std::printf("%lld products by matrices\n", static_cast<long long>(kernels));
    EXPECT_EQ(kernels, wanted);
  }
};

// The default kernels of the goldens' groups. The printed lines "golden NAME instructions N" have the number of wave
// instructions that each kernel executes, by which tune_test.py chooses the goldens that it tunes.
TEST_F(Emulated, GoldenGroupsMeanTheirGraphs) {
  EmulatedDevice& device = *EmulatedDevice::get();
  const Machine machine = device.machine();
  int kernels = 0;
  for (const testing::Golden& golden : testing::kGoldens) {
    SCOPED_TRACE(golden.name);
    const Graph graph = parse(golden.graph).value();
    int64_t instructions = 0;
    const auto cover = cover_greedy(graph, machine);
    ASSERT_TRUE(cover.ok()) << cover.status();
    for (const Group& group : cover->groups) {
      const Graph extracted = extract(graph, group);
      const Domain domain = analyze(extracted, machine).value();
      const Space space = space_of(extracted, domain, machine).value();
      kernels += run(extracted, domain, space, space.seeds[0], 7) ? 1 : 0;
      instructions += device.instructions();
    }
    std::printf("golden %s instructions %lld\n", golden.name, static_cast<long long>(instructions));
  }
  std::printf("%d kernels of goldens\n", kernels);
  EXPECT_GE(kernels, 20);
}

// Random groups, every third of them a contraction with neighbouring ops, each with a random plan.
TEST_F(Emulated, RandomGroupsMeanTheirGraphs) {
  const Machine machine = EmulatedDevice::get()->machine();
  const int64_t wanted = testing::scaled(24);
  int64_t kernels = 0;
  for (uint64_t seed = testing::test_seed(20261125); kernels < wanted; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph graph = seed % 3 == 0 ? parse(testing::ContractionText(seed, 20'000).text()).value()
                                      : testing::random_group(seed, 3000);
    const auto cover = cover_greedy(graph, machine);
    ASSERT_TRUE(cover.ok()) << cover.status() << print(graph);
    for (const Group& group : cover->groups) {
      const Graph extracted = extract(graph, group);
      const Domain domain = analyze(extracted, machine).value();
      if (!stores_whole_words(extracted)) continue;
      const Space space = space_of(extracted, domain, machine).value();
      kernels += run(extracted, domain, space, testing::sample_points(space, 1, seed).back(), seed) ? 1 : 0;
    }
    if (HasFailure()) return;
  }
  std::printf("%lld random kernels\n", static_cast<long long>(kernels));
}

// Random products by the matrix instruction of the architecture: tails of rows, columns and K, batches, several loops
// over K, operands whose axes have any order, elementwise work on the operands, and epilogues.
TEST_F(Emulated, RandomProductsByMatricesMeanTheirGraphs) {
  products(
      20261127, testing::scaled(16),
      [](uint64_t seed) { return testing::ContractionText(seed, 60'000, seed % 2 == 0 ? "bf16" : "f16").text(); },
      [](const Space& space, uint64_t seed) { return testing::sample_points(space, 6, seed); });
}

constexpr uint64_t kSeed = 20261131;

template <std::vector<Point> (*points)(const Space&, size_t, uint64_t)>
std::vector<Point> two(const Space& space, uint64_t seed) {
  return points(space, 2, seed);
}

// Random products, such as convolutions, whose tiles consist of several runs of neighbouring elements, by the matrix
// instruction of the architecture.
TEST_F(Emulated, TilesInRunsByMatricesMeanTheirGraphs) {
  products(kSeed, testing::scaled(8), testing::product_in_runs, two<testing::points_in_runs>);
}
// The emulator takes the bytes of both factors for signed bytes, whatever the instruction says, so these u8 inputs have
// a highest bit of 0.
std::string small_byte_product(uint64_t seed) {
  return absl::StrReplaceAll(testing::byte_product(seed), {{"uniform(0,255)", "uniform(0,127)"}});
}
TEST_F(Emulated, BytesByMatricesMeanTheirGraphs) {
  if ((EmulatedDevice::get()->machine().target->features & (kWmma | kWmmaHalves)) == 0)
    GTEST_SKIP() << "no matrix instruction of bytes of two kinds";
  products(kSeed, testing::scaled(8), small_byte_product, two<testing::matrix_points>);
}
TEST_F(Emulated, SharedKByMatricesMeansTheirGraphs) {
  products(kSeed, testing::scaled(8), testing::deep_product, two<testing::shared_points>);
}
TEST_F(Emulated, LastRoundsByMatricesMeanTheirGraphs) {
  products(kSeed, testing::scaled(8), testing::many_deep_tiles, two<testing::last_round_points>);
}

// Whether the emulator rounds the group's bf16 values correctly. Clang 22 rounds bf16 in 16-bit halves of registers on
// RDNA3, and the emulator computes wrongly with such halves while some lanes are inactive. Without these instructions
// (-real-true16) the same kernels are right.
bool rounds_in_all_lanes(const Graph& group, const Machine& machine) {
  const bool halves = (machine.target->features & (kWmma | kWmmaHalves)) != 0;
  return !halves || std::ranges::none_of(group.nodes, [](const Node& node) {
    return node.dtype == DType::bf16 && !node.shape.empty() && node.shape.back() % 8 != 0;
  });
}

// Attention by matrix instructions, with stages that pass values on in registers.
TEST_F(Emulated, ValuesInRegistersMeanTheirGraphs) {
  const Machine machine = EmulatedDevice::get()->machine();
  const int64_t wanted = testing::scaled(8);
  int64_t kernels = 0;
  const uint64_t first = testing::test_seed(20261130);
  for (uint64_t seed = first; kernels < wanted && seed < first + 100; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph group = testing::drawn_resident_attention(seed);
    const Domain domain = analyze_group(group, machine).value();
    const Space space = space_of(group, domain, machine).value();
    const std::vector<Point> points = testing::with_resident_values(space, space.seeds);
    if (points.empty()) continue;
    kernels += run(group, domain, space, points[seed % points.size()], seed) ? 1 : 0;
    if (HasFailure()) return;
  }
  std::printf("%lld kernels\n", static_cast<long long>(kernels));
  if (kernels == 0)
    GTEST_SKIP() << "no kernel multiplies sums where they are and is one that the emulator computes rightly";
}

// Attention with stages that multiply values which earlier stages left in shared memory. Some kernels process the
// keys in several turns (choice `turn_length`).
TEST_F(Emulated, StagesByMatricesMeanTheirGraphs) {
  const Machine machine = EmulatedDevice::get()->machine();
  const int64_t wanted = testing::scaled(8);
  int64_t kernels = 0, turning = 0;
  const uint64_t first = testing::test_seed(20261127);
  for (uint64_t seed = first; kernels < wanted && seed < first + 100; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph group = parse(testing::drawn_attention_of_halves(seed)).value();
    if (!rounds_in_all_lanes(group, machine)) continue;
    const Domain domain = analyze_group(group, machine).value();
    ASSERT_EQ(domain.cls, LoopClass::kStitched);
    const Space space = space_of(group, domain, machine).value();
    const std::vector<Point> points = testing::with_matrix_stages(space, testing::sample_points(space, 6, seed));
    if (points.empty()) continue;
    const Point& point = points[seed % points.size()];
    if (!run(group, domain, space, point, seed)) continue;
    ++kernels;
    turning += space.schedule(point)[kTurnLength] > 0 ? 1 : 0;
    if (HasFailure()) return;
  }
  std::printf("%lld kernels, %lld in turns\n", static_cast<long long>(kernels), static_cast<long long>(turning));
  if (kernels == 0) GTEST_SKIP() << "no kernel is one that the emulator computes rightly";
}

// A norm before a product, and two products, whose operands are copied asynchronously where the GPU can.
TEST_F(Emulated, CopyingStagesByMatricesMeanTheirGraphs) {
  const Machine machine = EmulatedDevice::get()->machine();
  const int64_t wanted = testing::scaled(8);
  int64_t kernels = 0, copying = 0;
  const uint64_t first = testing::test_seed(20261204);
  for (uint64_t seed = first; kernels < wanted && seed < first + 100; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph group = testing::drawn_stages(seed);
    if (!rounds_in_all_lanes(group, machine) || !stores_whole_words(group)) continue;
    const Domain domain = analyze_group(group, machine).value();
    ASSERT_EQ(domain.cls, LoopClass::kStitched);
    const Space space = space_of(group, domain, machine).value();
    const std::vector<Point> drawn = testing::sample_points(space, 100, seed);
    const std::vector<Point> copies = testing::copying_points(space, drawn, 1, false);
    const Point& point = copies.empty() ? drawn.back() : copies[0];
    if (!run(group, domain, space, point, seed)) continue;
    ++kernels;
    copying += copies.empty() ? 0 : 1;
    if (HasFailure()) return;
  }
  std::printf("%lld kernels, %lld copy\n", static_cast<long long>(kernels), static_cast<long long>(copying));
  if (kernels == 0) GTEST_SKIP() << "no kernel is one that the emulator computes rightly";
}

}  // namespace
}  // namespace wl

// Contractions by matrix instructions as NVIDIA's and AMD's targets print them, on the simulated GPU and compared with
// the oracle. The simulator computes the instructions by the formulas of the vendors' manuals, not by the compiler's
// table.
#include <gtest/gtest.h>

#include <array>

#include "compiler/cover/stitching.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/simulated/reduced.h"
#include "tests/unit/emit/compiled.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/contract/convolutions.h"
#include "tests/unit/schedule/contract/shared_factor_products.h"
#include "tests/unit/schedule/contractions.h"
#include "tests/unit/schedule/groups.h"
#include "tests/unit/schedule/stitched_groups.h"

namespace wl {
namespace {

// The simulator has waves of 32 for NVIDIA's instructions and waves of 64 for AMD's.
constexpr const char* kTargets[] = {"cuda:sm_80", "hip:gfx942", "cuda:sm_90a", "hip:gfx950", "cuda:sm_80"};

class SimulatedMatrices : public testing::Sharded {};
INSTANTIATE_TEST_SUITE_P(Shards, SimulatedMatrices, ::testing::Range(0, testing::kShards));

struct Searched {
  const Graph& graph;
  const Domain& domain;
  const Space& space;
  const Machine& machine;
};

// Adds the kernels of a group at the given points of its space, and expects the string `mark` in the kernels' texts.
void add_kernels(testing::CompiledChecks& checks, const Searched& group, uint64_t seed,
                 const std::vector<Point>& points, const char* mark) {
  const auto number = checks.group(group.graph, seed);
  ASSERT_TRUE(number.ok()) << number.status();
  for (const Point& point : points) {
    const Kernel kernel = lower(group.graph, group.domain, group.space.schedule(point), group.machine).value();
    const auto source = testing::simulated(kernel, group.machine);
    ASSERT_TRUE(source.ok()) << source.status() << group.space.text(point);
    EXPECT_NE(source->text.find(mark), std::string::npos);
    checks.add(*number, *source, group.space.text(point));
  }
}

void expect_all_right(testing::CompiledChecks& checks) {
  std::printf("%d kernels\n", checks.kernels());
  checks.expect_right();
}

TEST_P(SimulatedMatrices, OfRandomProductsMeanTheirGraphs) {
  const auto [first, last] = seeds(80, 20261202);
  testing::CompiledChecks checks("simulated_matrices");
  const auto wanted = static_cast<int>(last - first);
  for (uint64_t seed = first * 64; checks.kernels() < wanted; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Machine machine = testing::machine_named(kTargets[seed % std::size(kTargets)]);
    const Graph graph = parse(testing::ContractionText(seed, 400'000, seed % 2 == 0 ? "bf16" : "f16").text()).value();
    const Domain domain = analyze(graph, machine).value();
    if (domain.cls != LoopClass::kContract) continue;
    const Space space = space_of(graph, domain, machine).value();
    std::vector<Point> points = testing::sample_points(space, 4, seed);
    std::erase_if(points, [&](const Point& point) { return space.schedule(point)[kMatrix] == kNoMatrix; });
    if (points.empty()) continue;
    add_kernels(checks, {graph, domain, space, machine}, seed, {points.front(), points.back()}, "wl_mma_");
    if (HasFatalFailure()) return;
  }
  expect_all_right(checks);
}

// Expects that kernels are right and have `mark` in their texts. `text` makes a graph of each seed, and `points`
// chooses the points of its space. Every third seed is for the first target, the others are for the second one.
template <typename Seeds, typename Text, typename Points>
void expect_right(const Seeds& seeds, const char* name, const char* mark, Text text, Points points,
                  const std::array<const char*, 2>& targets = {"hip:gfx942", "cuda:sm_90a"}) {
  testing::CompiledChecks checks(name);
  for (uint64_t seed = seeds.first; seed < seeds.last; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Machine machine = testing::machine_named(targets[seed % 3 == 0 ? 0 : 1]);
    const Graph graph = parse(text(seed)).value();
    const Domain domain = analyze(graph, machine).value();
    if (domain.cls != LoopClass::kContract) continue;
    const Space space = space_of(graph, domain, machine).value();
    add_kernels(checks, {graph, domain, space, machine}, seed, points(space, 2, seed), mark);
    if (::testing::Test::HasFatalFailure()) return;
  }
  expect_all_right(checks);
}

// Matrix instructions that groups of waves execute (wgmma). They read factors in shared memory, where the factors must
// stay until the instructions are waited for.
TEST_P(SimulatedMatrices, OfFactorsInMemoryMeanTheirGraphs) {
  expect_right(seeds(60, 20261127), "simulated_shared_factors", "wl_mma_wgmma64_", testing::shared_factor_product,
               testing::shared_factor_points);
}

TEST_P(SimulatedMatrices, OfBytesInMemoryMeanTheirGraphs) {
  expect_right(seeds(32, 20261206), "simulated_shared_factor_bytes", "wl_mma_wgmma64_",
               testing::shared_factor_byte_product, testing::shared_factor_points, {"cuda:sm_90a", "cuda:sm_90a"});
}

// Products in which some waves only copy the factors that the other waves multiply.
TEST_P(SimulatedMatrices, OfCopyingWavesMeanTheirGraphs) {
  expect_right(seeds(60, 20261128), "simulated_alongside", "wl_arrive_copied(",
               [](uint64_t seed) { return testing::copied_product(seed); }, testing::alongside_points,
               {"cuda:sm_80", "cuda:sm_90a"});
}

// Products in which the copying waves copy the factors as boxes of matrices (TMA).
TEST_P(SimulatedMatrices, OfBoxesMeanTheirGraphs) {
  expect_right(seeds(60, 20261213), "simulated_boxes", "wl_box_load<", testing::product_of_boxes, testing::box_points,
               {"cuda:sm_90a", "cuda:sm_90a"});
}

// Products of f32 whose factors may be rounded to tf32.
TEST_P(SimulatedMatrices, OfTf32MeanTheirGraphs) {
  expect_right(seeds(40, 20261207), "simulated_tf32", "wl_mma_m16n8k8_tf32(", testing::tf32_product,
               testing::matrix_points, {"cuda:sm_80", "cuda:sm_90a"});
}

// Products by persistent blocks, which take tile after tile. The copying waves go on to the next tile while the sums of
// the current tile are stored.
TEST_P(SimulatedMatrices, OfPersistentBlocksMeanTheirGraphs) {
  expect_right(seeds(40, 20261201), "simulated_persistent", "", testing::product_of_tiles, testing::persistent_points,
               {"cuda:sm_80", "cuda:sm_90a"});
}

// Products of so many tiles that in the last round, fewer tiles are left than blocks run at the same time. Several
// blocks then share each of these tiles.
TEST_P(SimulatedMatrices, OfLastRoundsMeanTheirGraphs) {
  expect_right(seeds(40, 20261210), "simulated_last_round", "wl_last<", testing::many_deep_tiles,
               testing::last_round_points);
}

// Products in which several blocks each multiply a part of K, and the last of these blocks adds up their partial sums.
TEST_P(SimulatedMatrices, OfSharedKMeanTheirGraphs) {
  expect_right(seeds(40, 20261128), "simulated_shared_k", "wl_last<", testing::deep_product, testing::shared_points);
}

// Products whose tiles consist of several runs of elements, each in another row of an image, with matrix instructions
// or on lanes.
TEST_P(SimulatedMatrices, OfRunsMeanTheirGraphs) {
  expect_right(seeds(40, 20261130), "simulated_runs", "", testing::product_in_runs, testing::points_in_runs);
}

// Products of bytes by mma.sync, or by wgmma if they are large enough; then products of 16-bit factors by gfx950's
// instructions of twice the depth.
TEST_P(SimulatedMatrices, OfBytesMeanTheirGraphs) {
  expect_right(seeds(40, 20261203), "simulated_bytes", "wl_mma_", testing::byte_product, testing::matrix_points,
               {"cuda:sm_80", "cuda:sm_90a"});
}
TEST_P(SimulatedMatrices, OfTwiceTheDepthMeanTheirGraphs) {
  const auto deep = [](const Space& space, size_t count, uint64_t seed) {
    return testing::points_with(space, count, seed, [](const Schedule& schedule) {
      const std::optional<MatrixOp> matrix = matrix_of(schedule);
      return matrix && info(*matrix).feature == kMfmaDeep;
    });
  };
  expect_right(seeds(24, 20261204), "simulated_deep", "wl_mma_mfma32_", testing::shared_factor_product, deep,
               {"hip:gfx950", "hip:gfx950"});
}

// Stages of stitched groups multiply values that earlier stages of the same block left in shared memory.
TEST_P(SimulatedMatrices, OfStagesMeanTheirGraphs) {
  const auto [first, last] = seeds(24, 20261129);
  testing::CompiledChecks checks("simulated_stages");
  const auto wanted = static_cast<int>(last - first);
  for (uint64_t seed = first * 64; checks.kernels() < wanted; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Machine machine = testing::machine_named(kTargets[seed % std::size(kTargets)]);
    const Graph graph = parse(testing::drawn_attention_of_halves(seed)).value();
    const Domain domain = analyze_group(graph, machine).value();
    ASSERT_EQ(domain.cls, LoopClass::kStitched);
    const Space space = space_of(graph, domain, machine).value();
    const std::vector<Point> points = testing::with_matrix_stages(space, testing::sample_points(space, 12, seed));
    if (points.empty()) continue;
    add_kernels(checks, {graph, domain, space, machine}, seed, {points.front(), points.back()}, "wl_mma_");
    if (HasFatalFailure()) return;
  }
  expect_all_right(checks);
}

// Values that one stage passes to the next stay in registers, as fragments of matrix instructions.
TEST_P(SimulatedMatrices, OfValuesInRegistersMeanTheirGraphs) {
  const auto [first, last] = seeds(24, 20261130);
  testing::CompiledChecks checks("simulated_resident");
  const auto wanted = static_cast<int>(last - first);
  for (uint64_t seed = first * 64; checks.kernels() < wanted; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Machine machine = testing::machine_named(kTargets[seed % std::size(kTargets)]);
    const Graph graph = testing::drawn_resident_attention(seed);
    const Domain domain = analyze_group(graph, machine).value();
    const Space space = space_of(graph, domain, machine).value();
    const std::vector<Point> points = testing::with_resident_values(space, space.seeds);
    if (points.empty()) continue;
    add_kernels(checks, {graph, domain, space, machine}, seed, {points[seed % points.size()]}, "wl_word_of_");
    if (HasFatalFailure()) return;
  }
  expect_all_right(checks);
}

}  // namespace
}  // namespace wl

// Stitched groups: how blocks divide the work, and that every sampled plan computes its graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "compiler/cover/slab/slab.h"
#include "compiler/cover/stitching.h"
#include "compiler/cover/values.h"
#include "compiler/domain/stitch.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/ir/random_graph.h"
#include "tests/unit/schedule/compare.h"
#include "tests/unit/schedule/groups.h"
#include "tests/unit/schedule/points.h"
#include "tests/unit/schedule/stitched_groups.h"

namespace wl {
namespace {

using testing::machine_with;
using testing::parsed;

void check_stitched(const char* text, const Machine& machine, uint64_t points, int* kernels) {
  const Graph group = parsed(text);
  ASSERT_FALSE(analyze(group, machine).ok());
  const auto domain = analyze_group(group, machine);
  ASSERT_TRUE(domain.ok()) << domain.status();
  const auto space = space_of(group, *domain, machine);
  ASSERT_TRUE(space.ok()) << space.status();
  testing::expect_meanings(group, *domain, *space, machine, testing::spread_points(*space, points, 20'000), kernels);
}

TEST(Stitched, SampledPlansMeanTheGraph) {
  int kernels = 0;
  for (int row : {0, 2})  // CPU targets with vectors of 16 and of 4 elements
    for (const char* text : testing::sampled(testing::kStitched, static_cast<uint64_t>(row))) {
      check_stitched(text, machine_with(row), 12, &kernels);
      if (HasFatalFailure()) return;
    }
  std::printf("%d kernels\n", kernels);
}

TEST(Stitched, SampledPlansForLanesMeanTheGraph) {
  int kernels = 0;
  uint64_t turn = 0;
  for (const char* target : {"sim:cuda", "hip:gfx90a"})
    for (const char* text : testing::sampled(testing::kStitched, ++turn)) {
      check_stitched(text, machine_with(target), 8, &kernels);
      if (HasFatalFailure()) return;
    }
  std::printf("%d kernels\n", kernels);
}

std::vector<std::string> one_pass() {
  std::vector<std::string> texts(std::begin(testing::kOnePass), std::end(testing::kOnePass));
  texts.push_back(testing::attention_of_halves("bf16", 64, 96, 8, 16));
  return texts;
}

// Groups that are computed in turns along the keys give their graph's results, also for scores of -inf, for rows that
// see no key and for turns that are skipped.
TEST(Stitched, OnePassMeansTheGraph) {
  int kernels = 0, groups = 0;
  for (const Machine& machine :
       {machine_with(0), machine_with(2), machine_with("sim:cuda"), machine_with("hip:gfx90a")})
    for (const std::string& text : one_pass()) {
      const bool gpu = machine.target->is_gpu();
      const Graph group = parsed(text);
      const Domain domain = analyze_group(group, machine).value();
      const Space space = space_of(group, domain, machine).value();
      const Axis* lengths = axis_of(space.axes, kTurnLength);
      ASSERT_NE(lengths, nullptr) << text;
      const auto axis = static_cast<size_t>(lengths - space.axes.data());
      std::set<int> taken;
      std::vector<Point> chosen;
      for (const Point& seed : space.seeds)
        if (seed[axis] > 0 && (taken.insert(seed[axis]).second || !gpu)) chosen.push_back(seed);
      EXPECT_EQ(taken.size() + 1, lengths->values.size()) << text;
      ++groups;
      testing::expect_meanings(group, domain, space, machine, chosen, &kernels);
      if (HasFatalFailure()) return;
    }
  for (const std::string& text : one_pass()) {
    check_stitched(text.c_str(), machine_with("cpu:avx2"), 12, &kernels);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(groups, 24);
  EXPECT_GT(kernels, 60);
}

// The default schedule keeps values in registers from stage to stage if possible. It does so even if only blocks of
// fewer rows, which cannot keep values in registers, would keep all multiprocessors busy.
TEST(Stitched, TheDefaultKeepsValuesInRegisters) {
  for (const char* target : {"cuda:sm_80", "cuda:sm_90a", "hip:gfx942", "hip:gfx950", "hip:gfx1201"})
    for (const int64_t width : {64, 128}) {
      SCOPED_TRACE(cat(target, ", ", width, " features"));
      const Machine machine = machine_with(target);
      const Graph group = parsed(testing::attention_of_halves("bf16", 512, 1024, width, width));
      const Domain domain = analyze_group(group, machine).value();
      const Space space = space_of(group, domain, machine).value();
      EXPECT_EQ(testing::with_resident_values(space, {space.seeds[0]}).size(), 1) << space.text(space.seeds[0]);
      // Seeds that keep no values in registers exist too, since they may be faster.
      EXPECT_LT(testing::with_resident_values(space, space.seeds).size(), space.seeds.size());
    }
}

// On a GPU, all stages of a turn use the same shared memory, but values that are carried to the next turn have memory
// of their own.
TEST(Stitched, StagesOfATurnShareMemory) {
  const Machine machine = machine_with("sim:cuda");
  const Graph group = parsed(testing::kAttention);
  const Domain domain = analyze_group(group, machine).value();
  const Space space = space_of(group, domain, machine).value();
  const auto seed = std::find_if(space.seeds.begin(), space.seeds.end(),
                                 [&](const Point& point) { return space.schedule(point)[kTurnLength] > 0; });
  ASSERT_NE(seed, space.seeds.end());
  const Kernel kernel = lower(group, domain, space.schedule(*seed), machine).value();
  int shared = 0, carried = 0;
  for (BufferId a = 0; a < static_cast<BufferId>(kernel.buffers.size()); ++a) {
    if (kernel.buffers[a].level != Level::kShared) continue;
    for (BufferId b = 0; b < static_cast<BufferId>(kernel.buffers.size()); ++b) {
      if (a == b || kernel.buffers[b].level != Level::kShared) continue;
      shared += kernel.overlap(a, b) ? 1 : 0;
      if (!kernel.buffers[a].name.starts_with("carried")) continue;
      Kernel wrong = kernel;
      wrong.buffers[b].byte_offset = kernel.buffers[a].byte_offset;
      const absl::Status status = verify(wrong);
      EXPECT_NE(status.message().find("overlap"), std::string::npos) << kernel.buffers[b].name << ": " << status;
      ++carried;
    }
  }
  EXPECT_GT(shared, 0);
  EXPECT_GT(carried, 0);
}

// If attention is causal, blocks of early rows run fewer turns, and no block keeps whole rows of scores.
TEST(Stitched, TurnsStopAtTheLastKeyThatCounts) {
  const Machine machine = machine_with("cpu:avx2");
  const auto turning = [&](const char* text) {
    std::vector<Stitched> found;
    const Domain domain = analyze_group(parsed(text), machine).value();
    for (const Stitched& choice : domain.stitch->choices)
      if (choice.turns.length > 0) found.push_back(choice);
    return found;
  };
  for (const Stitched& choice : turning(testing::kCausal)) {
    EXPECT_EQ(choice.turns.count * choice.turns.length, 96);
    if (choice.rows == 64) continue;  // if a single block has all rows, none of its keys can be skipped
    EXPECT_EQ(choice.turns.visited.axis, static_cast<int>(choice.counts.size()) - 1);
    EXPECT_EQ(choice.turns.visited.base, choice.rows - 1);
    EXPECT_EQ(choice.turns.visited.step, choice.rows);
    for (const StitchKept& kept : choice.kept)
      EXPECT_LE(elements(kept.shape), choice.rows * std::max<int64_t>(choice.turns.length, 20)) << kept.name;
  }
  EXPECT_FALSE(turning(testing::kCausal).empty());
  for (const Stitched& choice : turning(testing::kAttention)) EXPECT_EQ(choice.turns.visited.axis, -1);
  EXPECT_FALSE(turning(testing::kAttention).empty());
}

// The last, shorter turn has its own copy of the stages, one of which transposes the mask.
TEST(Stitched, TheLastTurnTakesWhatIsLeft) {
  const Machine machine = machine_with("cpu:avx512");
  const Domain domain = analyze_group(parsed(testing::kOddKeysAndMasks), machine).value();
  int turning = 0;
  for (const Stitched& choice : domain.stitch->choices) {
    const Stitched::Turns& turns = choice.turns;
    if (turns.length == 0) continue;
    ++turning;
    EXPECT_EQ(turns.length * turns.count + (turns.length == 75 ? 74 : 49), 149);
    EXPECT_EQ(turns.rest, turns.last - turns.first);
    int transposed = 0;
    for (size_t k = turns.first; k < turns.last; ++k) {
      const Domain& stage = choice.stages[k].domain;
      transposed += stage.cls == LoopClass::kMap && stage.second >= 0 ? 1 : 0;
    }
    EXPECT_EQ(transposed, 1);
  }
  EXPECT_EQ(turning, 4);
}

TEST(Stitched, PointsAreCountedWithoutAWalk) {
  for (const char* target : {"cpu:avx2", "sim:cuda"}) {
    const Machine machine = machine_with(target);
    const Graph group = parsed(testing::kTwoAxes);
    const Space space = space_of(group, analyze_group(group, machine).value(), machine).value();
    uint64_t walked = 0;
    space.enumerate([&](const Point&) { return ++walked > 0; });
    EXPECT_EQ(space.count(), walked);
  }
}

// Returns a text with all choices of a stitched domain, so that tests can compare two domains.
std::string text_of(const Domain& domain) {
  std::string text;
  for (const Stitched& choice : domain.stitch->choices) {
    text += cat("rows ", choice.rows, " of ", choice.blocks(), "\n");
    for (const StitchKept& kept : choice.kept)
      text += cat(kept.name, " ", type_text(kept.dtype, kept.shape), " ", kept.first, " ", kept.last, "\n");
    for (const Stage& stage : choice.stages) {
      text += print(stage.graph) + stage.domain.text() + cat(stage.target->gpu.block_shared, "\n");
      for (const Stage::Buffer& buffer : stage.buffers) text += cat(buffer.global, " ", buffer.kept, "\n");
    }
  }
  return text;
}

TEST(Stitched, WhatWasFoundBeforeChangesNothing) {
  const Machine machine = machine_with("sim:cuda");
  CoverMemo memo;
  int stitched = 0, again = 0;
  const auto both = [&](const Graph& graph) {
    const size_t known = memo.domains.size();
    const auto with = stitch(graph, machine, {.memo = &memo}), without = stitch(graph, machine);
    ASSERT_EQ(with.status(), without.status());
    if (!with.ok()) return;
    ++stitched;
    again += memo.domains.size() == known ? 1 : 0;
    ASSERT_EQ(text_of(*with), text_of(*without)) << print(graph);
  };
  for (int round = 0; round < 2; ++round)
    for (const char* text : testing::kStitched) both(parsed(text));
  const uint64_t first = testing::test_seed(20261122);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(300)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    both(random_graph(seed, {.nodes = 12, .largest = 400, .f32_only = true, .zero_extents = false}));
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(stitched, 20);
  EXPECT_GT(again, 5);
}

TEST(Slab, CutsFollowViewsBackwards) {
  const Graph group = parsed(testing::kHeads);
  EXPECT_THAT(least_lengths(group), ::testing::ElementsAre(1, 8));
  const auto slab = slab_of(group, {4, 8});
  ASSERT_TRUE(slab.ok()) << slab.status();
  EXPECT_THAT(slab->counts, ::testing::ElementsAre(8, 3));
  EXPECT_THAT(slab->shift(group, 0), ::testing::ElementsAre(4 * 24, 8));  // q depends on rows and heads
  EXPECT_THAT(slab->shift(group, 1), ::testing::ElementsAre(0, 8));       // k depends on heads only
}

// Stitches random graphs' neighbouring groups that together are not one loop nest, and expects that the kernels
// compute the groups.
TEST(Stitched, RandomGroupsMeanTheGraph) {
  const uint64_t first = testing::test_seed(20261122);
  const auto wanted = static_cast<int>(testing::scaled(600));
  int groups = 0, kernels = 0;
  for (uint64_t seed = first; groups < wanted; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph graph = random_graph(seed, {.nodes = 12, .largest = 400, .f32_only = true, .zero_extents = false});
    const Machine machine = machine_with(seed % 3 == 0 ? "sim:cuda" : seed % 3 == 1 ? "sim:hip" : "cpu:avx2");
    if (analyze(graph, machine).ok()) continue;
    const auto domain = stitch(graph, machine);
    if (!domain.ok()) continue;
    ++groups;
    testing::expect_seeds_mean(graph, *domain, machine, 4, &kernels);
    if (HasFatalFailure()) return;
  }
  std::printf("%d groups, %d kernels\n", groups, kernels);
}

TEST(Slab, WhatEveryBlockWouldComputeIsRefused) {
  const absl::Status status = slab_of(parsed(testing::kNormThenProduct), {32, 8}).status();
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("%2 reduce_sum [32]: every block would compute it"));
}

}  // namespace
}  // namespace wl

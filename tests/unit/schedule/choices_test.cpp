#include "compiler/schedule/choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "compiler/cover/stitching.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/golden/groups.h"
#include "tests/unit/domain/domain_testing.h"
#include "tests/unit/file_text.h"

namespace wl {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kTargets[] = {"cpu:avx512", "cpu:generic", "cuda:sm_90a", "sim:hip"};

// Visits the space of every golden group on every target of kTargets. Together these spaces include all kinds of
// kernel.
void each_space(const std::function<void(const Space&, bool gpu)>& visit) {
  for (const testing::Golden& golden : testing::kGoldens)
    for (const std::string_view target : kTargets) {
      Machine machine = test_machine();
      machine.target = target_named(target).value();
      machine.clang = true;
      const Graph graph = parse(golden.graph).value();
      const absl::StatusOr<Domain> domain = analyze_group(graph, machine);
      if (!domain.ok()) continue;
      const absl::StatusOr<Space> space = space_of(graph, *domain, machine);
      ASSERT_TRUE(space.ok()) << space.status();
      visit(*space, machine.target->is_gpu());
    }
}

TEST(Choices, ThePageInDocsIsCurrent) {
  const std::string path = WARPLOOM_SOURCE_DIR "/docs/schedule.md";
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path, std::ios::binary) << choices_page();
  EXPECT_EQ(testing::file_text(path), choices_page()) << "UPDATE_GOLDEN=1 schedule_test writes the page";
}

TEST(Choices, HaveOneNameAndOneMeaning) {
  std::set<std::string_view> names, meanings;
  for (size_t i = 0; i < kChoices; ++i) {
    const auto choice = static_cast<Choice>(i);
    EXPECT_TRUE(names.insert(info(choice).name).second) << name_of(choice);
    EXPECT_TRUE(meanings.insert(info(choice).meaning).second) << name_of(choice);
    EXPECT_TRUE(info(choice).meaning.ends_with('.')) << name_of(choice);
    EXPECT_EQ(choice_named(name_of(choice)), choice);
  }
  EXPECT_EQ(choice_named("no such choice"), std::nullopt);
  EXPECT_EQ(value_text(kRowStorage, kRowInRegisters), "registers");
  EXPECT_EQ(value_text(kVector, 16), "16");
}

// Checks the column `kinds` of choices.def: a space has only choices of its own kind of kernel, and each choice occurs
// in some space.
TEST(Choices, AreThoseOfTheirKindsOfKernel) {
  std::set<Choice> seen;
  each_space([&](const Space& space, bool gpu) {
    for (const Axis& axis : space.axes) {
      ASSERT_TRUE(axis.choice) << axis.name;
      seen.insert(*axis.choice);
      if (!axis.path.empty()) continue;
      const InGroup in_stitched = info(*axis.choice).stitched[gpu ? 1 : 0],
                    in_packed = info(*axis.choice).packed[gpu ? 1 : 0];
      const bool shared = (space.kind == "stitched" && in_stitched == InGroup::kShared) ||
                          (space.kind == "packed" && in_packed == InGroup::kShared);
      EXPECT_TRUE(shared || belongs_to(*axis.choice, space.kind, gpu)) << axis.name << " of " << space.prefix;
    }
  });
  // Choices that the spaces of golden groups need not have; some belong to libraries (tests/unit/library) or products
  // that are larger than those groups (contract/raster_test.cpp, rounds_test.cpp).
  for (const Choice rare : {kPrefetchLastPhase, kOnlineChunk, kCacheBlockRows, kRegisterRows, kColumnPlanes, kDivided,
                            kOwnFormat, kAlgorithm, kRasterRows, kCopyingWaves, kTilesByDie, kTma})
    seen.insert(rare);
  for (size_t i = 0; i < kChoices; ++i)
    EXPECT_TRUE(seen.contains(static_cast<Choice>(i))) << name_of(static_cast<Choice>(i));
}

// Returns a point's plan in the text form of version 1, in which names were unique within each space.
std::string plan_1_of(const Space& space, const Point& point) {
  std::string text = cat("plan 1 ", space.prefix.substr(7, space.prefix.find(" class=") - 7),
                         " class=", space.kind == "transpose" ? "map" : space.kind);
  for (size_t i = 0; i < space.axes.size(); ++i) {
    const Axis& axis = space.axes[i];
    const std::string_view both = info(*axis.choice).plan_1;
    const bool first = axis.choice != kTileColumns || space.kind == "transpose";
    const size_t cut = both.find('|');
    const std::string_view name = cut == std::string_view::npos ? both
                                  : first                       ? both.substr(0, cut)
                                                                : both.substr(cut + 1);
    const size_t own = axis.name.rfind('.');
    const int64_t value = axis.values[static_cast<size_t>(point[i])];
    append(&text, " ", own == std::string::npos ? "" : axis.name.substr(0, own + 1), name, "=",
           axis.choice == kCompiler ? value_text(kCompiler, value) : cat(value));
  }
  return text;
}

TEST(Choices, PlansOfVersion1AreRead) {
  int plans = 0;
  each_space([&](const Space& space, bool) {
    // A space with the choice turn_length is left out: version 1 did not have this choice, and names of version 1
    // would not be unique in such a space.
    if (axis_of(space.axes, kTurnLength) != nullptr) return;
    for (const Point& seed : space.seeds) {
      const absl::StatusOr<Point> point = space.parse(plan_1_of(space, seed));
      ASSERT_TRUE(point.ok()) << point.status();
      EXPECT_EQ(*point, seed) << plan_1_of(space, seed);
      ++plans;
    }
  });
  EXPECT_GT(plans, 200);
}

// A plan of version 1 keeps its meaning.
TEST(Choices, PlansOfVersion1MeanWhatTheyMeant) {
  Machine machine = test_machine();
  machine.target = target_named("cpu:avx512").value();
  const auto space_for = [&](std::string_view last) {
    const Graph graph = graph_of(cat("graph {\n%0 = input \"x\" : f32[1024,1024]\n%1 = transpose %0 perm=[1,0] : ",
                                     "f32[1024,1024]\n%2 = neg %1 : f32[1024,1024]\noutput \"y\" ", last, "\n}"));
    return space_of(graph, analyze(graph, machine).value(), machine).value();
  };
  const Space space = space_for("%2");
  const std::string plan =
      "plan 1 target=cpu:avx512 class=map vector=16 tile=32 tile_rows=16 order=1 staged=1 unroll=1 stream=0 prefetch=1 "
      "prefetch_level=2 tasks=4 threads=2 compiler=gcc";
  const absl::StatusOr<Point> point = space.parse(plan);
  ASSERT_TRUE(point.ok()) << point.status();
  EXPECT_EQ(space.text(*point),
            "plan 2 target=cpu:avx512 class=transpose vector=16 tile_columns=32 tile_rows=16 rows_innermost=1 staged=1 "
            "unroll=1 stream_stores=0 prefetch=1 prefetch_level=2 tasks_per_thread=4 threads=2 compiler=gcc");
  // A plan of version 1 for a transpose without arithmetic is read with the same tiles, although programs that wrote
  // version 1 did not tile such a transpose.
  const Space copy = space_for("%1");
  ASSERT_TRUE(copy.parse(plan).ok()) << copy.parse(plan).status();
  EXPECT_EQ(copy.text(*copy.parse(plan)), space.text(*point));
  EXPECT_THAT(std::string(space.parse(plan + " band=4").status().message()),
              HasSubstr("unknown axis \"band\" of a plan of version 1; this space has vector, tile_columns"));
}

// Column reductions once had the choice unroll, which changed nothing.
TEST(Plans, MayNameAnAxisThatHadNoEffect) {
  Machine machine = test_machine();
  machine.target = target_named("cpu:avx512").value();
  const Graph graph =
      graph_of("graph {\n%0 = input \"x\" : f32[100,64]\n%1 = reduce_sum %0 axes=[0] : f32[64]\noutput \"y\" %1\n}");
  const Space space = space_of(graph, analyze(graph, machine).value(), machine).value();
  const std::string plan = space.text(space.seeds[0]);
  ASSERT_THAT(plan, HasSubstr("class=columns "));
  EXPECT_EQ(*space.parse(plan + " unroll=4"), space.seeds[0]);
  EXPECT_FALSE(space.parse(plan + " unrolled=4").ok());
}

}  // namespace
}  // namespace wl

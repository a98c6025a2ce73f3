// Distinct legal points of a space are distinct kernels: a point whose kernel prints as that of another point would
// cost a search a trial that tells it nothing. Each drawn point is compared with its neighbours, which differ in one
// choice.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "compiler/cover/stitching.h"
#include "compiler/emit/emit.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/golden/groups.h"
#include "tests/unit/domain/domain_testing.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/contractions.h"
#include "tests/unit/schedule/groups.h"

namespace wl {
namespace {

// The kinds of twins that spaces on CPUs still have. Whether the code has a loop over vectors that could be unrolled,
// or could have several accumulators, is known only when the kernel is printed (compiler/emit/stretch.h).
const std::set<std::string> kKnownOnCpus = {"map unroll", "transpose unroll", "stitched unroll",
                                            "stitched accumulators"};

// How many pairs of neighbours were compared, and how many were the same kernel, by the choice in which they differ.
struct Tally {
  int64_t points = 0, pairs = 0, refused = 0;
  int64_t known = 0;          // twins of kKnownOnCpus
  int64_t alike = 0;          // points that are read as another one and were lowered, too
  std::string other_kernels;  // the first of them whose kernel is another than that of the point as which it is read
  std::map<std::string, std::pair<int64_t, std::string>> twins;  // choice: how many, and the first of them
};

class Kernels {
 public:
  Kernels(const Graph& group, const Domain& domain, const Space& space, const Machine& machine)
      : group_(group), domain_(domain), space_(space), machine_(machine) {}

  // Returns a hash of the printed kernel of a point; "" if the lowering refuses it.
  const std::string& of(const Point& point) {
    const auto [at, is_new] = known_.try_emplace(point);
    if (!is_new) return at->second;
    const auto kernel = lower(group_, domain_, space_.schedule(point), machine_);
    if (!kernel.ok()) return at->second;
    const auto source = emit(*kernel, machine_);
    if (!source.ok()) return at->second;
    const std::string all =
        cat(source->compiler, " ", source->grid, " ", source->threads, " ", source->scratch_bytes, " ", source->text);
    at->second = cat(std::hash<std::string>()(all));
    return at->second;
  }

 private:
  const Graph& group_;
  const Domain& domain_;
  const Space& space_;
  const Machine& machine_;
  std::map<Point, std::string> known_;
};

void count_twins(const Graph& group, const std::string& name, const Machine& machine, int points, Tally& tally) {
  const auto domain = analyze_group(group, machine);
  if (!domain.ok()) return;
  const auto space = space_of(group, *domain, machine);
  if (!space.ok()) return;
  Kernels kernels(group, *domain, *space, machine);
  std::vector<Point> drawn = testing::sample_points(*space, points, 1);
  std::set<std::pair<Point, Point>> seen;
  for (const Point& one : drawn) {
    const Point point = space->settled(one);
    if (!space->is_legal(point)) continue;
    const std::string kernel = kernels.of(point);
    ++tally.points;
    if (kernel.empty()) {
      ++tally.refused;
      continue;
    }
    for (size_t axis = 0; axis < point.size(); ++axis)
      for (int value = 0; value < static_cast<int>(space->axes[axis].values.size()); ++value) {
        Point other = point;
        other[axis] = value;
        const Point given = other;
        other = space->settled(other);
        if (!space->is_legal(other)) continue;
        if (given != other && (!space->legal || space->legal(space->schedule(given))) && !kernels.of(given).empty()) {
          ++tally.alike;
          if (kernels.of(given) != kernels.of(other) && tally.other_kernels.empty())
            tally.other_kernels = cat(name, "\n  ", space->text(given), "\n  ", space->text(other));
        }
        if (other == point) continue;
        if (!seen.insert(std::minmax(point, other)).second) continue;
        ++tally.pairs;
        if (kernels.of(other) != kernel) continue;
        const std::string what = cat(
            space->kind, " ", space->axes[axis].choice ? name_of(*space->axes[axis].choice) : space->axes[axis].name);
        const bool is_known = !machine.target->is_gpu() && kKnownOnCpus.contains(what);
        tally.known += is_known;
        if (is_known) continue;
        const std::string which = cat(machine.target->name, " ", what);
        auto& [count, first] = tally.twins[which];
        if (count++ == 0) first = cat(name, "\n    ", space->text(point), "\n    ", space->text(other));
      }
  }
}

void print_tally(const Tally& tally) {
  std::printf("%ld points (%ld refused), %ld pairs, %ld read as others, %ld known twins\n",
              static_cast<long>(tally.points), static_cast<long>(tally.refused), static_cast<long>(tally.pairs),
              static_cast<long>(tally.alike), static_cast<long>(tally.known));
  for (const auto& [which, twins] : tally.twins)
    std::printf("%s: %ld\n  %s\n", which.c_str(), static_cast<long>(twins.first), twins.second.c_str());
}

void expect_no_twins(const Tally& tally) {
  print_tally(tally);
  EXPECT_TRUE(tally.twins.empty()) << "points that print the same kernel";
  EXPECT_EQ(tally.other_kernels, "") << "a plan is read as one with another kernel";
  EXPECT_GT(tally.alike, 50);
  EXPECT_GT(tally.pairs, 1000);
}

constexpr const char* kTargets[] = {"cpu:avx512",  "cpu:avx2",   "cpu:amx",    "cuda:sm_80",
                                    "cuda:sm_90a", "hip:gfx942", "hip:gfx1100"};

TEST(Twins, OfGoldens) {
  Tally tally;
  uint64_t turn = 0;
  for (const char* target : kTargets)
    for (const testing::Golden& golden : testing::sampled(testing::kGoldens, ++turn)) {
      const auto graph = parse(golden.graph);
      ASSERT_TRUE(graph.ok()) << graph.status();
      const int points = static_cast<int>(testing::scaled(40));
      count_twins(*graph, golden.name, testing::machine_with(target), points, tally);
    }
  expect_no_twins(tally);
}

// Graphs that are one loop nest.
TEST(Twins, OfRandomNests) {
  Tally tally;
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(testing::scaled(500)); ++seed) {
    const Graph graph = random_domain_graph(seed);
    for (const char* target : kTargets) count_twins(graph, cat("seed ", seed), testing::machine_with(target), 4, tally);
  }
  expect_no_twins(tally);
}

TEST(Twins, OfRandomProducts) {
  Tally tally;
  for (uint64_t seed = 1; seed <= static_cast<uint64_t>(testing::scaled(250)); ++seed) {
    const Graph graph = parse(testing::ContractionText(seed, 2'000'000).text()).value();
    for (const char* target : kTargets) count_twins(graph, cat("seed ", seed), testing::machine_with(target), 4, tally);
  }
  expect_no_twins(tally);
}

}  // namespace
}  // namespace wl

// Products whose right operand is computed from narrow elements (a weight that is converted to wider elements), either
// in each read of it or once, when the operand is packed.
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/schedule/contract/in_place.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/compare.h"
#include "tests/unit/schedule/groups.h"
#include "tests/unit/schedule/narrow_products.h"

namespace wl {
namespace {

using testing::machine_with;
using testing::parsed;

bool packs(const Kernel& kernel) {
  return std::ranges::any_of(kernel.buffers, [](const KernelBuffer& buffer) { return buffer.name.starts_with("b_"); });
}

// A product of a matrix with `rows` rows and a weight of `dtype` that is converted to f32, in two panels of 64 columns.
Graph product_of_panels(int rows, const std::string& dtype = "f16") {
  return parsed(cat("graph {\n  %0 = input \"x\" : f32[", rows, ",200] normal(0,1)\n  %1 = input \"w\" : ", dtype,
                    "[2,200,64] normal(0,1)\n  %2 = cast %1 : f32[2,200,64]\n",
                    "  %3 = contract %0 %2 \"mk,pkq->mpq\" : f32[", rows, ",2,64]\n  output \"y\" %3\n}\n"));
}

TEST(Narrow, RandomProductsMeanTheirGraphs) {
  int kernels = 0, in_place = 0, packed = 0;
  const uint64_t first = testing::test_seed(20261128);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(150)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph group = parsed(testing::random_narrow_product(seed));
    for (const char* target : {"cpu:avx512", "cpu:generic"}) {
      const Machine machine = machine_with(std::string_view(target));
      const auto domain = analyze(group, machine);
      ASSERT_TRUE(domain.ok()) << domain.status() << print(group);
      if (domain->cls != LoopClass::kContract) continue;
      const Space space = space_of(group, *domain, machine).value();
      std::vector<Point> points = {space.seeds[0]};
      for (const Point& point : testing::sample_points(space, 4)) points.push_back(point);
      testing::expect_meanings(group, *domain, space, machine, points, &kernels,
                               [&](const Kernel& kernel, const Point&) {
                                 (packs(kernel) ? packed : in_place) += 1;
                                 testing::expect_reads_back(kernel);
                               });
      if (HasFatalFailure()) return;
    }
  }
  std::printf("%d kernels, %d that pack, %d that do not\n", kernels, packed, in_place);
  if (testing::scaled(150) >= 50) {
    EXPECT_GT(in_place, 20);
    EXPECT_GT(packed, 20);
  }
}

// The default schedule packs a weight if many rows read it, and otherwise reads it in place. The search may try both.
TEST(Narrow, FewRowsWidenAWeightWhereItLies) {
  const Machine machine = machine_with(std::string_view("cpu:avx512"));
  for (const int rows : {8, 100}) {
    const Graph group = product_of_panels(rows);
    const Domain domain = analyze(group, machine).value();
    const Space space = space_of(group, domain, machine).value();
    const Kernel kernel = lower(group, domain, space.schedule(space.seeds[0]), machine).value();
    EXPECT_EQ(packs(kernel), rows == 100) << print(kernel);
    bool both[2] = {};
    space.enumerate([&](const Point& point) {
      const Schedule schedule = space.schedule(point);
      both[schedule[kPackB]] = true;
      // A weight that is not packed is read from memory, so it is prefetched.
      EXPECT_EQ(schedule[kPrefetch] > 0, schedule[kPackB] == 0) << space.text(point);
      return !::testing::Test::HasFailure();
    });
    EXPECT_TRUE(both[0] && both[1]) << rows;
  }
}

// If the elementwise work on an operand takes longer than loading a packed copy of it, the work is done only once, when
// the operand is packed.
TEST(Narrow, WorkThatIsDoneInPlaceIsLittle) {
  const Machine machine = machine_with(std::string_view("cpu:avx512"));
  const auto computed = [&](const std::string& work) {
    const Graph group = parsed(
        cat("graph {\n  %0 = input \"x\" : f32[8,20]\n  %1 = input \"w\" : f32[2,20,64]\n  %2 = ", work,
            " %1 : f32[2,20,64]\n  %3 = contract %0 %2 \"mk,pkq->mpq\" : f32[8,2,64]\n", "  output \"y\" %3\n}\n"));
    const auto right = right_in_place(group, analyze(group, machine).value());
    return right && right->computed;
  };
  EXPECT_TRUE(computed("abs"));
  EXPECT_FALSE(computed("exp"));
}

}  // namespace
}  // namespace wl

// Convolutions that copy the image (or a part of it) once instead of each of its windows: every schedule computes its
// graph, for any stride, dilation, padding, grouping and number of spatial axes.
#include "compiler/domain/image.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/fuzz.h"
#include "tests/unit/ir/windows.h"
#include "tests/unit/schedule/compare.h"
#include "tests/unit/schedule/groups.h"

namespace wl {
namespace {

using testing::machine_with;
using testing::parsed;

// Returns at most `most` uniformly drawn points of a space in which this choice is not 0.
std::vector<Point> making(Choice choice, const Space& space, size_t most) {
  std::vector<Point> all, out;
  space.enumerate([&](const Point& point) {
    const Schedule s = space.schedule(point);
    if (s[choice] != 0 && s[kCompiler] == 0) all.push_back(point);
    return true;
  });
  for (size_t i = 0; i < most && !all.empty(); ++i) {
    uint64_t state = i * kGolden;
    out.push_back(all[split_mix(state) % all.size()]);
  }
  return out;
}

TEST(Image, RandomConvolutionsMeanTheirGraphs) {
  int kernels = 0, windows = 0, rows = 0, planes = 0;
  const uint64_t first = testing::test_seed(20261125);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(150)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph group = parsed(testing::ConvolutionText(seed).text());
    for (int row : {0, 2}) {  // CPU targets with vectors of 16 and of 4 elements
      const Machine machine = machine_with(row);
      const auto domain = analyze(group, machine);
      ASSERT_TRUE(domain.ok()) << domain.status() << print(group);
      if (domain->cls != LoopClass::kContract) continue;
      const Space space = space_of(group, *domain, machine).value();
      const auto image = column_image(*domain, true);
      EXPECT_EQ(image.has_value(), axis_of(space.axes, kCopyImage) != nullptr);
      if (!image) continue;
      ++windows;
      rows += image->height.output >= 0;
      planes += image->width.planes > 1 || image->height.planes > 1;
      testing::expect_meanings(group, *domain, space, machine, making(kCopyImage, space, 6), &kernels);
      if (HasFatalFailure()) return;
    }
  }
  std::printf("%d kernels of %d windows, %d with rows, %d with planes\n", kernels, windows, rows, planes);
  if (testing::scaled(150) >= 100) {
    EXPECT_GT(rows, 40);
    EXPECT_GT(windows - rows, 5);
    EXPECT_GT(planes, 20);
  }
}

// Convolutions with channels last, in which the windows of the image are the operand that supplies the product's rows.
TEST(Image, RandomConvolutionsOfChannelsLastMeanTheirGraphs) {
  int kernels = 0, windows = 0, inner = 0, rows = 0, planes = 0, skipped = 0;
  const uint64_t first = testing::test_seed(20261127);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(150)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const int64_t panels = seed % 3 == 0 ? 0 : 16;
    const Graph group = parsed(testing::ConvolutionText(seed, panels, true).text());
    for (int row : {0, 2}) {  // CPU targets with vectors of 16 and of 4 elements
      const Machine machine = machine_with(row);
      const auto domain = analyze(group, machine);
      ASSERT_TRUE(domain.ok()) << domain.status() << print(group);
      if (domain->cls != LoopClass::kContract) continue;
      const auto image = row_image(*domain, true);
      if (!image || column_image(*domain, true)) continue;
      const Space space = space_of(group, *domain, machine).value();
      ASSERT_NE(axis_of(space.axes, kCopyImage), nullptr);
      ++windows;
      inner += image->channel >= 0;
      rows += image->height.output >= 0;
      planes += image->width.planes > 1 || image->height.planes > 1;
      testing::expect_meanings(
          group, *domain, space, machine, making(kCopyImage, space, 6), &kernels,
          [&](const Kernel&, const Point& point) { skipped += space.schedule(point)[kSkipPadding] != 0; });
      if (HasFatalFailure()) return;
    }
  }
  std::printf("%d kernels of %d windows, %d of channels, %d with rows, %d with planes, %d skip padding\n", kernels,
              windows, inner, rows, planes, skipped);
  if (testing::scaled(150) >= 100) {
    EXPECT_GT(inner, 40);
    EXPECT_GT(rows, 40);
    EXPECT_GT(windows - rows, 5);
    EXPECT_GT(planes, 20);
    EXPECT_GT(skipped, 20);
  }
}

// Convolutions with weights in panels, computed in transposed tiles (pixels by vectors of filters) or untransposed ones
// (a panel's filters by vectors of pixels).
TEST(TurnedTiles, RandomConvolutionsMeanTheirGraphs) {
  int kernels = 0, turned = 0, copied = 0, packed = 0, skipped = 0, uneven = 0;
  const uint64_t first = testing::test_seed(20261126);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(120)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    // Numbers of filters in a panel, for vectors of 16 elements (kWide) and of 4 elements (kNarrow). Only the first
    // number of each list is a multiple of the vector width.
    const bool wide = seed % 2 == 0;
    static constexpr int64_t kWide[] = {32, 24, 40, 8}, kNarrow[] = {16, 6, 3, 13};
    const Graph group = parsed(testing::ConvolutionText(seed, (wide ? kWide : kNarrow)[seed / 2 % 4]).text());
    const Machine machine = machine_with(wide ? 0 : 2);  // CPU targets with vectors of 16 and of 4 elements
    const auto domain = analyze(group, machine);
    ASSERT_TRUE(domain.ok()) << domain.status() << print(group);
    if (domain->cls != LoopClass::kContract) continue;
    const Space space = space_of(group, *domain, machine).value();
    if (axis_of(space.axes, kTurnTiles) == nullptr) continue;
    ++turned;
    const auto count = [&](const Kernel&, const Point& point) {
      copied += space.schedule(point)[kCopyImage] != 0;
      packed += space.schedule(point)[kPackA] != 0;
      skipped += space.schedule(point)[kSkipPadding] != 0;
      uneven += seed / 2 % 4 != 0;
    };
    testing::expect_meanings(group, *domain, space, machine, making(kTurnTiles, space, 5), &kernels, count);
    if (HasFatalFailure()) return;
    if (axis_of(space.axes, kSkipPadding) != nullptr)
      testing::expect_meanings(group, *domain, space, machine, making(kSkipPadding, space, 3), &kernels, count);
    if (HasFatalFailure()) return;
    testing::expect_meanings(group, *domain, space, machine, making(kPackB, space, 3), &kernels);
    if (HasFatalFailure()) return;
  }
  std::printf("%d kernels of %d graphs, %d copy the image, %d pack it, %d skip padding, %d have masks\n", kernels,
              turned, copied, packed, skipped, uneven);
  if (testing::scaled(120) >= 100) {
    EXPECT_GT(turned, 60);
    EXPECT_GT(copied, 60);
    EXPECT_GT(packed, 30);
    EXPECT_GT(skipped, 30);
    EXPECT_GT(uneven, 60);
  }
}

}  // namespace
}  // namespace wl

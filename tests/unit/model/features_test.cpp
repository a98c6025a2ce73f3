#include "compiler/model/features.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compiler/cover/stitching.h"
#include "compiler/domain/stitch.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/unit/model/contractions.h"

namespace wl {
namespace {

float value(const Features& features, std::string_view name) {
  for (size_t i = 0; i < feature_names().size(); ++i)
    if (feature_names()[i] == name) return features.values[i];
  ADD_FAILURE() << "no feature " << name;
  return NAN;
}

Machine machine_named(std::string_view target) {
  Machine machine;
  machine.target = target_named(target).value();
  return machine;
}

// A kernel for y = (x + x) * 3 over rows of 64 elements, in which x is loaded twice: 16 lanes, four vectors per row,
// eight rows per block.
constexpr const char* kTwice =
    R"(kernel "map" target="cpu:avx512" grid=4 threads=1 unroll=2 accumulators=1 compiler="clang" {
  p0 = in "x" : f32 [32,64]
  p1 = once "y" : f32 [32,64]
  index i#1
  for i#1 in 8 {
    %0 = load p0[block*512 + i#1*64] strides [0,1] : f32 [1,64] dim1=v0 v1 v2 v3 r0 r1
    %1 = load p0[block*512 + i#1*64] strides [0,1] : f32 [1,64] dim1=v0 v1 v2 v3 r0 r1
    %2 = map mul(add(%0, %1), 3) : f32 [1,64] dim1=v0 v1 v2 v3 r0 r1
    store %2 p1[block*512 + i#1*64] strides [0,1]
  }
})";

TEST(Features, CountWhatAKernelDoes) {
  const auto kernel = parse_kernel(kTwice);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const Features features = features_of(*kernel, machine_named("cpu:avx512"));
  ASSERT_EQ(features.values.size(), feature_names().size());
  EXPECT_EQ(features.kind, "cpu/map");
  EXPECT_EQ(features.analytic_ns, 0);  // on CPUs only contractions have an analytic cost
  const double bytes = 32 * 64 * 4;
  EXPECT_NEAR(value(features, "read"), std::log2((2 * bytes + 1) / (2 * bytes + 1)), 1e-5);
  EXPECT_NEAR(value(features, "written"), std::log2((bytes + 1) / (2 * bytes + 1)), 1e-5);
  EXPECT_EQ(value(features, "lanes"), 4);
  EXPECT_EQ(value(features, "blocks"), 2);
  EXPECT_EQ(value(features, "unroll"), 1);
  EXPECT_EQ(value(features, "clang"), 1);
  EXPECT_EQ(value(features, "loads"), 2);
  EXPECT_EQ(value(features, "strided"), 0);
  // The kernel has 32 rows of 4 vectors. Each vector has two loads and a store (moves), a multiplication and an
  // addition.
  EXPECT_NEAR(value(features, "moves"), std::log2((3 * 128.0 + 1) / (2 * 128.0 + 1)), 1e-5);
  EXPECT_NEAR(value(features, "turns"), std::log2((32.0 + 1) / (2 * 128.0 + 1)), 1e-5);
}

TEST(Features, AreFiniteOnEveryKernel) {
  for (const char* text : {testing::kEven, testing::kOdd, testing::kConvolution, testing::kTransposed})
    for (const testing::Scheduled& each : testing::scheduled(text, 2, 20, 3)) {
      const Features features = features_of(each.kernel, machine_named("cpu:avx512"));
      EXPECT_EQ(features.kind, "cpu/contract");
      EXPECT_GT(features.analytic_ns, 0);
      for (size_t i = 0; i < features.values.size(); ++i)
        EXPECT_TRUE(std::isfinite(features.values[i])) << feature_names()[i] << " of " << each.plan;
    }
}

// A packed kernel's features are sums over all its members, each weighted by the number of blocks that run it.
TEST(Features, CountAllMembersOfAPackedKernel) {
  const Graph graph = parse(R"(graph {
    %0 = input "x" : f32[4096,1024] normal(0,1)
    %1 = input "u" : f32[1024,512] normal(0,1)
    %2 = neg %0 : f32[4096,1024]
    %3 = exp %1 : f32[1024,512]
    output "y" %2
    output "z" %3
  })")
                          .value();
  for (const char* target : {"cuda:sm_90a", "cpu:avx512"}) {
    const Machine machine = machine_named(target);
    const Domain domain = analyze_group(graph, machine).value();
    ASSERT_EQ(domain.cls, LoopClass::kPacked);
    const Space space = space_of(graph, domain, machine).value();
    const Features features =
        features_of(lower(graph, domain, space.schedule(space.seeds[0]), machine).value(), machine);
    EXPECT_EQ(features.kind, cat(machine.target->family, "/packed"));
    EXPECT_NEAR(value(features, "read"), -1, 0.1) << target;  // half of the moved bytes are read
    EXPECT_NEAR(value(features, "written"), -1, 0.1) << target;
  }
}

// For a reduction on a GPU, the occupancy and the size of teams are features, and the CPU caches are not.
TEST(Features, OfAGpu) {
  const Graph graph = parse(R"(graph {
    %0 = input "x" : f32[4096,1024] normal(0,1)
    %1 = reduce_sum %0 axes=[1] : f32[4096]
    output "y" %1
  })")
                          .value();
  const Machine machine = machine_named("cuda:sm_90a");
  const Domain domain = analyze(graph, machine).value();
  const Space space = space_of(graph, domain, machine).value();
  for (const Point& seed : space.seeds) {
    const Kernel kernel = lower(graph, domain, space.schedule(seed), machine).value();
    const Features features = features_of(kernel, machine);
    EXPECT_EQ(features.kind, "cuda/rows");
    EXPECT_GT(features.analytic_ns, 0);
    EXPECT_GT(value(features, "occupancy"), 0);
    EXPECT_LE(value(features, "occupancy"), 1);
    EXPECT_EQ(value(features, "team"), std::log2(kernel.team));
    EXPECT_EQ(value(features, "into_l2"), value(features, "into_l3"));
    // The kernel reads every element once, so the feature `read` (the logarithm of bytes read over bytes that must be
    // moved) is about 0. If rows are copied ahead, it may also count rows beyond the last one.
    EXPECT_NEAR(value(features, "read"), 0, space.schedule(seed)[kPersistent] > 1 ? 1 : 0.1);
  }
}

}  // namespace
}  // namespace wl

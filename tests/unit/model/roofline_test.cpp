// The floor of a group (floor_ns) is a time that no correct kernel of it can beat, yet so high that impossible times
// are rejected.
#include "compiler/model/roofline.h"

#include <gtest/gtest.h>

#include "compiler/ir/text.h"

namespace wl {
namespace {

Machine machine_for(std::string_view target, int threads = 2) {
  Machine machine;
  machine.target = target_named(target).value();
  machine.threads = threads;
  return machine;
}

Graph sum_of(int64_t elements) {
  const std::string type = cat(" : f32[", elements, "]");
  return parse(cat("graph {\n  %0 = input \"x\"", type, "\n  %1 = input \"y\"", type, "\n  %2 = add %0 %1", type,
                   "\n  output \"z\" %2\n}"))
      .value();
}

Graph product_of(int64_t n, const char* dtype) {
  const std::string type = cat(" : ", dtype, "[", n, ",", n, "]");
  return parse(cat("graph {\n  %0 = input \"x\"", type, "\n  %1 = input \"w\"", type,
                   "\n  %2 = contract %0 %1 \"mk,kn->mn\"", type, "\n  output \"y\" %2\n}"))
      .value();
}

TEST(Floor, IsBelowTheNominalBoundOfEveryRow) {
  for (const Target& target : targets()) {
    const Machine machine = machine_for(target.name);
    for (const Graph& group : {sum_of(1 << 10), sum_of(1 << 16), sum_of(1 << 24), product_of(1024, "f32"),
                               product_of(1024, "f64"), product_of(1024, "i32")}) {
      const double floor = floor_ns(group, machine);
      EXPECT_LT(floor, std::max(roofline(group, machine).ns(), target.peak.launch_ns + 1)) << target.name;
      EXPECT_EQ(floor == 0, target.family == "sim") << target.name;
    }
  }
}

TEST(Floor, CountsTheBytesAtTheRateOfTheCacheThatHoldsThem) {
  const Machine machine = machine_for("cpu:avx512");
  const Peak& peak = machine.target->peak;
  EXPECT_DOUBLE_EQ(floor_ns(sum_of(1 << 12), machine), 12 * (1 << 12) / peak.l1_bytes_per_ns / 2);
  EXPECT_DOUBLE_EQ(floor_ns(sum_of(1 << 24), machine), 12.0 * (1 << 24) / peak.far_bytes_per_ns / 2);
  EXPECT_EQ(floor_ns(sum_of(1), machine), peak.launch_ns) << "a launch that does nothing";
}

TEST(Floor, CountsMultiplyAdds) {
  const Machine machine = machine_for("cpu:avx512");
  const double f32 = 2.0 * 1024 * 1024 * 1024 / machine.target->peak.flops_per_ns / 2;
  EXPECT_DOUBLE_EQ(floor_ns(product_of(1024, "f32"), machine), f32);
  EXPECT_DOUBLE_EQ(floor_ns(product_of(1024, "f64"), machine), 2 * f32);
  EXPECT_LT(floor_ns(product_of(1024, "i32"), machine), f32) << "products of integers may be several in a lane";
}

// The floor does not count elements that a slice drops.
TEST(Floor, DoesNotCountWhatAKernelMayLeaveOut) {
  const Graph sliced = parse(R"(graph {
  %0 = input "x" : f32[1048576]
  %1 = exp %0 : f32[1048576]
  %2 = slice %1 starts=[0] steps=[1] : f32[16]
  output "y" %2
})")
                           .value();
  const Machine machine = machine_for("cpu:avx2");
  EXPECT_EQ(floor_ns(sliced, machine), machine.target->peak.launch_ns);
}

// If a factor of a product is multiplied by a mask, the floor does not count the multiplications by elements that the
// mask makes zero.
TEST(Floor, DoesNotCountProductsThatPlacesLeaveOut) {
  const Graph masked = parse(R"(graph {
  %0 = input "x" : f32[1024,1024]
  %1 = input "w" : f32[1024,1024]
  %2 = iota axis=[0] : i64[1024,1024]
  %3 = iota axis=[1] : i64[1024,1024]
  %4 = ge %2 %3 : b1[1024,1024]
  %5 = cast %4 : f32[1024,1024]
  %6 = mul %0 %5 : f32[1024,1024]
  %7 = contract %6 %1 "mk,kn->mn" : f32[1024,1024]
  output "y" %7
})")
                           .value();
  const Machine machine = machine_for("cpu:avx512");
  const Graph whole = product_of(1024, "f32");
  EXPECT_LT(floor_ns(masked, machine), floor_ns(whole, machine) / 2);
  EXPECT_NEAR(roofline(masked, machine).compute_ns, roofline(whole, machine).compute_ns / 2,
              0.02 * roofline(whole, machine).compute_ns);
}

}  // namespace
}  // namespace wl

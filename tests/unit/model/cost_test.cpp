#include "compiler/model/cost.h"

#include <gtest/gtest.h>

#include "compiler/cover/stitching.h"
#include "compiler/domain/stitch.h"
#include "compiler/ir/text.h"

namespace wl {
namespace {

Cost priced(const std::string& text) {
  Machine machine;
  machine.target = target_named("cuda:sm_90a").value();
  const Graph group = parse(text).value();
  return cost_of(group, analyze_group(group, machine).value(), machine, rates_of(machine));
}

Cost product(int64_t rows) {
  return priced(cat("graph {\n  %0 = input \"x\" : f32[", rows, ",512]\n  %1 = input \"w\" : f32[512,512]\n",
                    "  %2 = contract %0 %1 \"mk,kn->mn\" : f32[", rows, ",512]\n  output \"y\" %2\n}"));
}

Cost map_of(int64_t elements) {
  return priced(cat("graph {\n  %0 = input \"x\" : f32[", elements, "]\n  %1 = tanh %0 : f32[", elements,
                    "]\n  output \"y\" %1\n}"));
}

// Cost::busy equals a kernel's time without the launch overhead if the kernel's blocks fill the GPU, and is less if
// they leave multiprocessors idle.
TEST(Cost, BusyIsLessThanTheTimeOfWhatLeavesUnitsIdle) {
  const double launch = rates_of({.target = target_named("cuda:sm_90a").value()}).launch_us;
  for (const Cost& cost : {map_of(1 << 24), product(1 << 16)}) {
    // Cost::busy and the time without the launch overhead differ only because the last blocks do not fill the GPU.
    EXPECT_NEAR(cost.busy, cost.micros - launch, 0.05 * cost.micros);
    EXPECT_GT(cost.busy, 1);
  }
  for (const Cost& cost : {map_of(1 << 12), product(32)}) {
    EXPECT_LT(cost.busy, 0.5 * (cost.micros - launch));
    EXPECT_GT(cost.busy, 0);
  }
}

// If arithmetic limits the time, a product takes the time of the f32 product divided by the rate of its type relative
// to f32 (Target::arithmetic): for f64 the rate of lanes, for 16-bit floats that of matrix instructions.
TEST(Cost, ProductsArePricedAsTheLoweringMakesThem) {
  const auto product_of = [](std::string_view dtype) {
    const std::string type = cat(dtype, "[4096,4096]");
    return priced(cat("graph {\n  %0 = input \"x\" : ", type, "\n  %1 = input \"w\" : ", type,
                      "\n  %2 = contract %0 %1 \"mk,kn->mn\" : ", type, "\n  output \"y\" %2\n}"));
  };
  const Cost f32 = product_of("f32"), f64 = product_of("f64");
  const double matrices = target_named("cuda:sm_90a").value()->arithmetic.matrix_bf16;
  for (const char* narrow : {"f16", "bf16"})
    EXPECT_NEAR(product_of(narrow).micros, f32.micros / matrices, 0.1 * f32.micros / matrices);
  EXPECT_NEAR(f64.micros, f32.micros / target_named("cuda:sm_90a").value()->arithmetic.f64, 0.1 * f64.micros);
}

// If two products each leave half of the GPU idle, packing them into one kernel saves at least the time of one launch.
TEST(Cost, PackedKernelsShareTheMachine) {
  const auto products = [](int count) {
    std::string text = "graph {\n  %0 = input \"x\" : f32[512,512]\n", outputs;
    for (int i = 1; i <= count; ++i) append(&text, "  %", i, " = input \"w", i, "\" : f32[512,512]\n");
    for (int i = 1; i <= count; ++i) {
      append(&text, "  %", count + i, " = contract %0 %", i, " \"mk,kn->mn\" : f32[512,512]\n");
      append(&outputs, "  output \"y", i, "\" %", count + i, "\n");
    }
    return priced(text + outputs + "}");
  };
  const double launch = rates_of({.target = target_named("cuda:sm_90a").value()}).launch_us;
  const Cost one = products(1), two = products(2);
  EXPECT_NEAR(two.busy, 2 * one.busy, 1e-9);
  EXPECT_LE(two.micros, 2 * one.micros - launch + 1e-9);
  EXPECT_GE(two.micros, one.micros);
  EXPECT_GE(two.micros, two.bound);
}

}  // namespace
}  // namespace wl

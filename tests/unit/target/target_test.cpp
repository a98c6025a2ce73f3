// The table of targets: properties of every row, and the error for an unknown target.
#include "compiler/target/target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "compiler/target/matrix.h"

namespace wl {
namespace {

TEST(Targets, HaveEveryRate) {
  for (const Target& target : targets()) {
    SCOPED_TRACE(std::string(target.name));
    EXPECT_TRUE(target.name.starts_with(target.family));
    EXPECT_GT(target.arithmetic.flops_per_ns, 0);
    EXPECT_GT(target.copy_bytes_per_ns, 0);
    EXPECT_GT(target.l2_bytes_per_ns, 0);
    if (target.is_gpu()) {
      EXPECT_GT(target.gpu.units, 0);
      EXPECT_GT(target.gpu.bytes_per_ns, 0);
    }
  }
}

// On targets without dot-product and matrix instructions, products of narrow floats are as fast as products of f32, and
// no type is faster.
// The two figures of a GPU's row for multiply-adds, in a cycle and in a nanosecond, imply its clock. One GPU runs at 1
// to 3 GHz, so a figure that is missing or wrong by a factor is found.
TEST(Targets, ImplyAClock) {
#define WL_GPU(name, family, lanes, ...)                                    \
  if (std::string_view(family) != "sim") {                                  \
    const absl::StatusOr<const Target*> target = target_named(name);        \
    ASSERT_TRUE(target.ok()) << target.status();                            \
    const double ghz = (*target)->arithmetic.flops_per_ns / (2. * (lanes)); \
    EXPECT_TRUE(ghz >= 1 && ghz <= 3) << (name) << ": " << ghz;             \
  }
#include "compiler/base/gpus.def"
#undef WL_GPU
}

TEST(Targets, MultiplyAsTheLoweringDoes) {
  for (const Target& target : targets()) {
    SCOPED_TRACE(std::string(target.name));
    const Arithmetic& arithmetic = target.arithmetic;
    for (const DType narrow : {DType::f16, DType::f8e4m3fn, DType::f8e5m2, DType::f32})
      EXPECT_EQ(arithmetic.multiply_adds(narrow, narrow, narrow), 1);
    const double bf16 = arithmetic.multiply_adds(DType::bf16, DType::bf16, DType::bf16);
    EXPECT_EQ(bf16, std::max(1., arithmetic.dot_bf16));
    for (const DType wide : {DType::f64, DType::i8}) EXPECT_EQ(arithmetic.matrices(wide, wide), 0);
    EXPECT_EQ(arithmetic.matrices(DType::f16, DType::bf16), 0);
    for (const auto& [a, b] : {std::pair{DType::f16, DType::f16},
                               {DType::bf16, DType::bf16},
                               {DType::f32, DType::f32},
                               {DType::u8, DType::i8}})
      EXPECT_EQ(arithmetic.matrices(a, b) > 0, !matrices_for(a, b, target.features).empty()) << name_of(a);
    const double bytes = arithmetic.multiply_adds(DType::i8, DType::u8, DType::i32);
    EXPECT_EQ(bytes, arithmetic.dot_i8 > 0 ? arithmetic.dot_i8 : arithmetic.i32);
    EXPECT_EQ(arithmetic.multiply_adds(DType::u8, DType::u8, DType::i32), arithmetic.i32);
    for (const DType type : {DType::f64, DType::i32, DType::i64, DType::u32, DType::i16}) {
      EXPECT_GT(arithmetic.multiply_adds(type, type, type), 0);
      EXPECT_LE(arithmetic.multiply_adds(type, type, type), 1);
    }
    const auto same = [&](DType type) { return arithmetic.multiply_adds(type, type, type); };
    EXPECT_LT(same(DType::i64), same(DType::i32));
  }
}

// The first panel width is the largest one: that of the micro-kernel with the most accumulators.
TEST(Targets, PanelsAreAsWideAsMicroKernels) {
  EXPECT_EQ(panel_widths(**target_named("cpu:avx512")), (std::vector<int64_t>{64, 32, 48}));
  EXPECT_EQ(panel_widths(**target_named("cpu:avx2")), (std::vector<int64_t>{16, 8}));
  EXPECT_TRUE(panel_widths(**target_named("cuda:sm_80")).empty());
}

TEST(Targets, AnUnknownOneIsAnErrorThatListsThem) {
  const absl::StatusOr<const Target*> none = target_named("cuda:sm_1");
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(std::string(none.status().message()),
              ::testing::AllOf(::testing::HasSubstr("unknown target \"cuda:sm_1\""), ::testing::HasSubstr("sim:hip")));
  Device device;
  device.target = "cuda:sm_1";
  EXPECT_FALSE(machine_of(device).ok());
}

}  // namespace
}  // namespace wl

#include "compiler/emit/rounded.h"

#include <gtest/gtest.h>

#include "compiler/kernel/verify.h"

namespace wl {
namespace {

Kernel kernel_of(const std::string& body) {
  const auto kernel = parse_kernel(
      "kernel \"k\" target=\"cpu:avx2\" grid=1 threads=1 unroll=1 accumulators=1 compiler=\"gcc\" {\n"
      "  p0 = in \"x\" : bf16 [8]\n  p1 = out \"y\" : bf16 [8]\n" +
      body + "}\n");
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return kernel.ok() ? *kernel : Kernel();
}

TEST(Rounded, TilesOfLoadsAndCastsAre) {
  const Kernel kernel = kernel_of(
      "  %0 = load p0[0] strides [1] : bf16 [8] dim0=v0 v1 v2\n"
      "  %1 = map mul(cast<f32>(%0), 0.5) : f32 [8] dim0=v0 v1 v2\n"
      "  %2 = map cast<bf16>(%1) : bf16 [8] dim0=v0 v1 v2\n"
      "  store %2 p1[0] strides [1]\n");
  EXPECT_EQ(rounded_tiles(kernel), (std::set<TileId>{0, 2}));
}

TEST(Rounded, TilesOfArithmeticAreNotNorThoseThatSomethingElseDefinesToo) {
  const Kernel kernel = kernel_of(
      "  %0 = load p0[0] strides [1] : bf16 [8] dim0=v0 v1 v2\n"
      "  %1 = map add<bf16>(%0, %0) : bf16 [8] dim0=v0 v1 v2\n"
      "  %0 = map add<bf16>(%0, %1)\n"
      "  store %0 p1[0] strides [1]\n");
  EXPECT_TRUE(rounded_tiles(kernel).empty());
}

}  // namespace
}  // namespace wl

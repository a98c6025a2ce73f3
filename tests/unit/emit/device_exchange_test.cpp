// Exchanges among threads through the real GPU compilers: shuffles from any lane, the splitting and joining of vectors,
// and swizzled shared memory compile as CUDA and HIP, for waves of 32 and 64 lanes, and spill nothing.
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "compiler/emit/emit.h"
#include "compiler/kernel/verify.h"
#include "tests/unit/emit/compiled.h"
#include "tests/unit/file_text.h"
#include "tests/unit/scratch.h"
#include "worker/drivers/gpu/code.h"

namespace wl {
namespace {

class DeviceCodeOfExchanges : public ::testing::TestWithParam<std::string> {};

TEST_P(DeviceCodeOfExchanges, CompilesAndSpillsNothing) {
  if (const std::string missing = gpu_compiler_missing(GetParam()); !missing.empty()) GTEST_SKIP() << missing;
  const Machine machine = testing::machine_named(GetParam());
  std::string text = testing::file_text(cat(WARPLOOM_SOURCE_DIR, "/tests/fuzz/seeds/kernel_text/exchange.kernel"));
  text = absl::StrReplaceAll(text, {{"sim:cuda", GetParam()}});
  if (machine.target->gpu.wave == 64) text = absl::StrReplaceAll(text, {{"wave=32", "wave=64"}, {"u0", "l5"}});
  const auto kernel = parse_kernel(text);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const auto source = emit(*kernel, machine);
  ASSERT_TRUE(source.ok()) << source.status();
  for (const char* word : {"wl_shuffle", "wl_swizzle<3, 2, 4>", "wl_barrier"})
    EXPECT_NE(source->text.find(word), std::string::npos) << word << "\n" << source->text;
  const auto unit = compile_gpu({&*source, 1}, Scratch().folder());
  ASSERT_TRUE(unit.ok()) << unit.status() << source->text;
  EXPECT_EQ(unit->kernels.front().spill_bytes, 0);
}

INSTANTIATE_TEST_SUITE_P(Targets, DeviceCodeOfExchanges,
                         ::testing::Values("cuda:sm_80", "cuda:sm_90a", "hip:gfx90a", "hip:gfx1030"),
                         [](const ::testing::TestParamInfo<std::string>& target) {
                           return absl::StrReplaceAll(target.param, {{":", "_"}});
                         });

}  // namespace
}  // namespace wl

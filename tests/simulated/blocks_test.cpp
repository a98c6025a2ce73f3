// Blocks of one launch that run on several threads of the host.
#include <gtest/gtest.h>

#include "compiler/emit/emit.h"
#include "runtime/runtime.h"
#include "tests/simulated/by_hand.h"
#include "tests/simulated/reduced.h"
#include "tests/unit/emit/compiled.h"
#include "tests/unit/scratch.h"
#include "worker/drivers/cpu/cpu.h"

namespace wl {
namespace {

constexpr int64_t kBlocks = 20000;
constexpr int kHostThreads = 2;

// Every block adds itself to a count when it ends. The block that ends last stores 1, which shows that no block was
// missed.
TEST(SimulatedBlocks, OfSeveralHostThreadsAreAllCounted) {
  const Kernel kernel = testing::kernel_by_hand("cuda:sm_80", 32, 1, kBlocks, DType::u32, 1, 1);
  Source source = emit(kernel, testing::simulator_of(testing::machine_named(kernel.target))).value();
  source.text = cat("WL_RESIDENT_KERNEL(1, ", source.entry, ", ", kBlocks,
                    ", 32, WL_IN(u32, p0, 1), WL_OUT(u32, p1, 1), WL_PASSES(4096)) {\n"
                    "  WL_ENTER;\n"
                    "  WL_SHARED(u32, told, 0, 1);\n"
                    "  if (wl_last<",
                    kBlocks,
                    ">(workspace, 0, thread, told) && thread == 0) {\n"
                    "    const u32 one = 1;\n"
                    "    wl_write<1>(p1, &one, __LINE__);\n"
                    "  }\n"
                    "}\n");
  const Scratch scratch;
  CompileOptions options;
  options.folder = scratch.folder();
  options.deadline_ns = 300'000'000'000;
  const auto compiled = compile_cpu({{0, "", source}}, options).value();
  ASSERT_EQ(compiled[0].outcome, Outcome::kCorrect) << compiled[0].message;
  const SharedObject object = SharedObject::open(compiled[0].object).value();
  const auto run = reinterpret_cast<BlockFunction>(object.symbol(source.entry).value());
  Pool pool(kHostThreads);
  ASSERT_TRUE(pool.reserve_scratch(4096).ok());
  ASSERT_TRUE(pool.reserve_work(4096).ok());
  uint32_t in = 0, out = 0;
  void* args[] = {&in, &out, pool.workspace()};
  pool.launch({run, kBlocks, kHostThreads, 4096}, args);
  EXPECT_EQ(out, 1u);
}

}  // namespace
}  // namespace wl

// Properties of memory-bound kernels that are checked without a GPU: the default schedule of each golden group compiles
// to code that spills nothing, moves 16 bytes per access wherever rows are aligned, keeps a multiprocessor busy, and
// moves every byte of its large arguments once.
#include <gtest/gtest.h>

#include <numeric>

#include "compiler/base/code.h"
#include "compiler/emit/emit.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/golden/groups.h"
#include "tests/unit/emit/compiled.h"
#include "tests/unit/schedule/traffic.h"
#include "tests/unit/scratch.h"
#include "worker/drivers/gpu/code.h"
#include "worker/drivers/gpu/code_judge.h"

namespace wl {
namespace {

struct Judged {
  const char* golden;
  int load = 16, store = 16;    // narrowest load and store that the code may contain, in bytes
  int64_t reads = 1, more = 0;  // a kernel may read at most reads * n + more elements of a large input with n elements
};
// Ten golden groups without a matrix product. Windows, pads and labels are read element by element, since their
// offsets are arbitrary. In a transpose, each lane moves four adjacent bytes. A row of a group norm consists of several
// loops and is read once in each of three phases.
const Judged kJudged[] = {{"softmax"},
                          {"residual_layer_norm"},
                          {"log_softmax_gather", 4, 4, 1, 16},
                          {"group_norm_silu", 4, 16, 3},
                          {"bias_gelu"},
                          {"transpose_add", 4, 4},
                          {"column_sum"},
                          {"causal_mask"},
                          {"padded_average_pool", 4, 4, 9},
                          {"concat_add", 4, 16}};

const testing::Golden& golden_named(std::string_view name) {
  for (const testing::Golden& golden : testing::kGoldens)
    if (golden.name == name) return golden;
  ADD_FAILURE() << "no golden " << name;
  return testing::kGoldens[0];
}

class StaticJudgement : public ::testing::TestWithParam<std::string> {};

TEST_P(StaticJudgement, OfTheGoldenKernels) {
  if (const std::string missing = gpu_compiler_missing(GetParam()); !missing.empty()) GTEST_SKIP() << missing;
  const Scratch scratch;
  Machine machine = testing::machine_named(GetParam());
  machine.units = 0;  // 0 stands for the number of multiprocessors in the target's row
  machine.part_elements = Machine().part_elements;
  const CodeLimits limits = code_limits(machine.target->gpu);
  for (const Judged& judged : kJudged) {
    SCOPED_TRACE(judged.golden);
    const Graph graph = parse(golden_named(judged.golden).graph).value();
    const Domain domain = analyze(graph, machine).value();
    const Space space = space_of(graph, domain, machine).value();
    const Kernel kernel = lower(graph, domain, space.schedule(space.seeds[0]), machine).value();
    const Source source = emit(kernel, machine).value();
    const auto unit = compile_gpu({&source, 1}, scratch.folder());
    ASSERT_TRUE(unit.ok()) << unit.status();
    EXPECT_TRUE(
        unit->binary.starts_with("\x7f"
                                 "ELF"));
    CodeFacts code = unit->kernels[0];
    code.occupancy = occupancy_of(code, limits, source.threads);
    std::printf("%-14s %-20s %s\n", GetParam().c_str(), judged.golden, code_text(code).c_str());
    EXPECT_EQ(reject_reason(code, limits, source), "");
    EXPECT_EQ(code.spill_bytes, 0);
    EXPECT_EQ(code.stack_bytes, 0);
    EXPECT_FALSE(code.compare_and_swap);
    EXPECT_GE(code.occupancy, 0.25);
    EXPECT_GE(code.widest_load, source.load_bytes);
    EXPECT_GE(code.widest_store, source.store_bytes);
    EXPECT_GE(code.narrowest_load, judged.load);
    EXPECT_GE(code.narrowest_store, judged.store);

    const std::vector<int64_t> moved = testing::elements_moved(kernel);
    int64_t largest = 0;
    for (const KernelBuffer& buffer : kernel.buffers)
      if (buffer.level == Level::kGlobal) largest = std::max(largest, elements(buffer.shape));
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      const KernelBuffer& buffer = kernel.buffers[i];
      if (buffer.level != Level::kGlobal) continue;
      // A value that is broadcast along rows is read once for each row, mostly from a cache. Such inputs are small, so
      // inputs of at most half the largest buffer are not checked.
      if (buffer.output) {
        EXPECT_EQ(moved[i], elements(buffer.shape)) << buffer.name;
      } else if (2 * elements(buffer.shape) > largest) {
        EXPECT_LE(moved[i], judged.reads * elements(buffer.shape) + judged.more) << buffer.name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, StaticJudgement, ::testing::Values("cuda:sm_80", "cuda:sm_90a", "hip:gfx90a"),
                         [](const ::testing::TestParamInfo<std::string>& target) {
                           std::string name = target.param;
                           std::replace(name.begin(), name.end(), ':', '_');
                           return name;
                         });

// The facts of a kernel's code (registers, spills ...) must not depend on which other kernels are compiled in its
// translation unit.
TEST(GpuUnits, HaveTheFactsOfTheirKernels) {
  if (const std::string missing = gpu_compiler_missing("cuda:sm_90a"); !missing.empty()) GTEST_SKIP() << missing;
  const Machine machine = testing::machine_named("cuda:sm_90a");
  std::vector<Source> sources;
  for (const char* name : {"softmax", "bias_gelu", "residual_layer_norm"}) {
    const Graph graph = parse(golden_named(name).graph).value();
    const Domain domain = analyze(graph, machine).value();
    const Space space = space_of(graph, domain, machine).value();
    sources.push_back(emit(lower(graph, domain, space.schedule(space.seeds[0]), machine).value(), machine).value());
  }
  const auto together = compile_gpu(sources, ::testing::TempDir());
  ASSERT_TRUE(together.ok()) << together.status();
  ASSERT_EQ(together->kernels.size(), sources.size());
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto alone = compile_gpu({&sources[i], 1}, ::testing::TempDir());
    ASSERT_TRUE(alone.ok()) << alone.status();
    EXPECT_EQ(code_text(together->kernels[i]), code_text(alone->kernels[0]));
    EXPECT_NE(together->kernels[i].assembly.find(sources[i].entry), std::string::npos);
  }
}

}  // namespace
}  // namespace wl

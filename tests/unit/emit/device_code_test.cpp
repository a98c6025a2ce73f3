// Kernels of GPU targets through the real compilers, which need no GPU: they compile for every row that the compilers
// know, spill nothing, and move 16 bytes per access where rows are aligned. Targets unknown to the compilers are
// skipped with a message.
#include <gtest/gtest.h>

#include <regex>

#include "compiler/base/code.h"
#include "compiler/cover/cover.h"
#include "compiler/emit/emit.h"
#include "compiler/ir/text.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/unit/emit/compiled.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/ir/random_graph.h"
#include "tests/unit/schedule/groups.h"
#include "tests/unit/scratch.h"
#include "worker/drivers/gpu/amd_code.h"
#include "worker/drivers/gpu/code.h"
#include "worker/drivers/gpu/code_judge.h"

namespace wl {
namespace {

constexpr const char* kSoftmax = R"(graph {
  %0 = input "x" : f32[4096,1024] normal(0,1)
  %1 = reduce_max %0 axes=[1] : f32[4096]
  %2 = broadcast %1 dims=[0] : f32[4096,1024]
  %3 = sub %0 %2 : f32[4096,1024]
  %4 = exp %3 : f32[4096,1024]
  %5 = reduce_sum %4 axes=[1] : f32[4096]
  %6 = broadcast %5 dims=[0] : f32[4096,1024]
  %7 = div %4 %6 : f32[4096,1024]
  output "y" %7
})";

constexpr const char* kGemmGelu = R"(graph {
  %0 = input "a" : f32[2048,768] normal(0,1)
  %1 = input "b" : f32[768,3072] normal(0,1)
  %2 = input "bias" : f32[3072] normal(0,1)
  %3 = contract %0 %1 "mk,kn->mn" : f32[2048,3072]
  %4 = broadcast %2 dims=[1] : f32[2048,3072]
  %5 = add %3 %4 : f32[2048,3072]
  %6 = constant 0.70710677 : f32[2048,3072]
  %7 = mul %5 %6 : f32[2048,3072]
  %8 = erf %7 : f32[2048,3072]
  %9 = constant 1 : f32[2048,3072]
  %10 = add %8 %9 : f32[2048,3072]
  %11 = mul %5 %10 : f32[2048,3072]
  output "y" %11
})";

std::vector<std::string> gpu_targets() {
  std::vector<std::string> names;
  for (const Target& row : targets())
    if (row.family == "cuda" || row.family == "hip") names.emplace_back(row.name);
  return names;
}

// Compiles one kernel in a translation unit of its own.
absl::StatusOr<GpuCode> compile_one(const Source& source, const std::string& folder) {
  WL_ASSIGN_OR_RETURN(GpuUnit unit, compile_gpu({&source, 1}, folder));
  return std::move(unit.kernels.front());
}

class DeviceCode : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string missing = gpu_compiler_missing(GetParam()); !missing.empty()) GTEST_SKIP() << missing;
  }

  const Scratch scratch_;
  const std::string folder_ = scratch_.folder();
};

TEST_P(DeviceCode, OfASoftmaxIsWideAndSpillsNothing) {
  const Machine machine = testing::machine_named(GetParam());
  const Graph graph = parse(kSoftmax).value();
  const Domain domain = analyze(graph, machine).value();
  const Space space = space_of(graph, domain, machine).value();
  const Kernel kernel = lower(graph, domain, space.schedule(space.seeds[0]), machine).value();
  const auto code = compile_one(emit(kernel, machine).value(), folder_);
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(code->spill_bytes, 0);
  EXPECT_EQ(code->stack_bytes, 0);
  EXPECT_GT(code->registers, 8);
  EXPECT_LE(code->registers, machine.target->gpu.lane_registers);
  EXPECT_EQ(code->narrowest_load, 16);
  EXPECT_EQ(code->narrowest_store, 16);
  EXPECT_FALSE(code->compare_and_swap);
  std::printf("%s: %s\n", GetParam().c_str(), code_text(*code).c_str());
}

// A kernel that asks for `blocks` resident blocks per multiprocessor (min_blocks) uses few enough registers for them.
TEST_P(DeviceCode, OfResidentBlocksLeavesRoomForThem) {
  const Machine machine = testing::machine_named(GetParam());
  const Gpu& gpu = machine.target->gpu;
  const Graph graph = parse(kSoftmax).value();
  const Domain domain = analyze(graph, machine).value();
  const Space space = space_of(graph, domain, machine).value();
  Schedule schedule = space.schedule(space.seeds[0]);
  for (const int64_t blocks : {2, 4, 8}) {
    schedule.set(kMinBlocks, blocks);
    if (!space.legal(schedule)) continue;
    const Kernel kernel = lower(graph, domain, schedule, machine).value();
    const auto code = compile_one(emit(kernel, machine).value(), folder_);
    ASSERT_TRUE(code.ok()) << code.status();
    EXPECT_LE(code->registers * blocks * kernel.threads, gpu.unit_registers) << blocks << " blocks";
    std::printf("%d blocks of %d threads: %d registers\n", kernel.blocks, kernel.threads, code->registers);
  }
}

// Returns a kernel that makes the compiler use all registers that a thread may have: its block is the largest one, and
// each thread keeps 100 f32 values until their sum is known.
Source hungry_source(const Target& target) {
  constexpr int kVectors = 25, kLanes = 4;
  const int threads = target.gpu.block_threads, elements = threads * kVectors * kLanes;
  Source source;
  source.target = std::string(target.name);
  source.prelude = prelude_text(target, kLanes);
  source.entry = "wl_hungry";
  source.threads = threads;
  source.text = cat("WL_KERNEL(wl_hungry, 1, ", threads, ", WL_IN(f32, p0, ", elements, "), WL_OUT(f32, p1, ", elements,
                    ")) {\n  WL_ENTER;\n  const int at = thread * ", kLanes, ";\n  f32v sum = wl_splat<f32v>(0);\n");
  for (int v = 0; v < kVectors; ++v)
    append(&source.text, "  const f32v t", v, " = wl_load<f32v, 4>(p0 + at + ", v * threads * kLanes,
           ");\n  sum = wl_add(sum, t", v, ");\n");
  for (int v = 0; v < kVectors; ++v)
    append(&source.text, "  wl_store<4>(p1 + at + ", v * threads * kLanes, ", wl_mul(t", v, ", sum));\n");
  source.text += "}\n";
  return source;
}

// The compiler limits a thread's registers so that the largest block fits a multiprocessor. The target's row must
// state enough registers for that, or kernels that fit would be rejected.
TEST_P(DeviceCode, OfTheLargestBlockFitsAUnit) {
  const Target& target = *target_named(GetParam()).value();
  const Source source = hungry_source(target);
  const auto code = compile_one(source, folder_);
  ASSERT_TRUE(code.ok()) << code.status();
  std::printf("%s: %s\n", GetParam().c_str(), code_text(*code).c_str());
  EXPECT_GE(code->registers, 60);
  EXPECT_GT(occupancy_of(*code, code_limits(target.gpu), source.threads), 0);
  if (code->spill_bytes == 0) {
    EXPECT_EQ(reject_reason(*code, code_limits(target.gpu), source), "");
  }
}

// Returns the target's index among the GPU targets. It is passed to testing::sampled(), which then gives each target
// another part of a list.
uint64_t turn_of(const std::string& target) {
  const std::vector<std::string> names = gpu_targets();
  return static_cast<uint64_t>(std::find(names.begin(), names.end(), target) - names.begin());
}

// Compiles every third seed of the space. At a test scale below 1, each target compiles another part of these seeds.
TEST_P(DeviceCode, OfAContractionIsWideAndSpillsNothing) {
  const Machine machine = testing::machine_named(GetParam());
  const Graph graph = parse(kGemmGelu).value();
  const Domain domain = analyze(graph, machine).value();
  const Space space = space_of(graph, domain, machine).value();
  std::vector<Point> points;
  for (size_t i = 0; i < space.seeds.size(); i += 3) points.push_back(space.seeds[i]);
  for (const Point& point : testing::sampled(points, turn_of(GetParam()))) {
    SCOPED_TRACE(space.text(point));
    const Kernel kernel = lower(graph, domain, space.schedule(point), machine).value();
    const auto code = compile_one(emit(kernel, machine).value(), folder_);
    ASSERT_TRUE(code.ok()) << code.status();
    EXPECT_EQ(code->spill_bytes, 0);
    EXPECT_EQ(code->stack_bytes, 0);
    EXPECT_LE(code->registers, machine.target->gpu.lane_registers);
    // Asynchronous copies transpose an operand by copying single elements of 4 bytes.
    EXPECT_EQ(code->narrowest_load, space.schedule(point)[kAsyncCopies] != 0 ? 4 : 16);
    EXPECT_EQ(code->narrowest_store, 16);
    std::printf("%s: %d registers, %d threads\n", space.text(point).c_str(), code->registers, kernel.threads);
  }
}

TEST_P(DeviceCode, OfEveryClassCompiles) {
  const Machine machine = testing::machine_named(GetParam());
  int kernels = 0;
  const std::vector<const char*> groups(std::begin(testing::kGroups), std::end(testing::kGroups));
  for (const char* text : testing::sampled(groups, turn_of(GetParam()))) {
    const Graph graph = parse(text).value();
    const Domain domain = analyze(graph, machine).value();
    const Space space = space_of(graph, domain, machine).value();
    const std::vector<Point> points = testing::sample_points(space, 1, 5);
    const auto kernel = lower(graph, domain, space.schedule(points.back()), machine);
    if (absl::IsUnimplemented(kernel.status())) continue;
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const auto code = compile_one(emit(*kernel, machine).value(), folder_);
    ASSERT_TRUE(code.ok()) << code.status() << space.text(points.back()) << emit(*kernel, machine)->text;
    ++kernels;
  }
  EXPECT_GT(kernels, 0);
}

// hipRTC gives no assembly. The disassembly of a code object by AMD's library has the same facts as clang's assembly.
TEST_P(DeviceCode, DisassembledHasTheSameAccesses) {
  const std::string architecture = GetParam().substr(GetParam().find(':') + 1);
  const std::vector<std::string>& known = comgr_architectures();
  if (!GetParam().starts_with("hip:")) GTEST_SKIP() << "not for an AMD GPU";
  if (std::count(known.begin(), known.end(), architecture) == 0)
    GTEST_SKIP() << "no libamd_comgr here that knows " << architecture;
  const Machine machine = testing::machine_named(GetParam());
  const Graph graph = parse(kSoftmax).value();
  const Domain domain = analyze(graph, machine).value();
  const Space space = space_of(graph, domain, machine).value();
  const Source source = emit(lower(graph, domain, space.schedule(space.seeds[0]), machine).value(), machine).value();
  const auto unit = compile_gpu({&source, 1}, folder_);
  ASSERT_TRUE(unit.ok()) << unit.status();
  CodeFacts printed;
  read_amd_assembly(comgr_disassembly(unit->binary, architecture), printed);
  const GpuCode& code = unit->kernels.front();
  EXPECT_EQ(printed.narrowest_load, code.narrowest_load);
  EXPECT_EQ(printed.widest_load, code.widest_load);
  EXPECT_EQ(printed.narrowest_store, code.narrowest_store);
  EXPECT_EQ(printed.widest_store, code.widest_store);
}

using DeviceCodeOfFamilies = DeviceCode;
using DeviceCodeOfMoves = DeviceCode;
// Loads of data that is read once have a streaming hint and are as wide as other loads.
TEST_P(DeviceCodeOfMoves, OfStreamingLoadsGoesPastTheCaches) {
  const Machine machine = testing::machine_named(GetParam());
  const Graph graph = parse(kSoftmax).value();
  const Domain domain = analyze(graph, machine).value();
  const Space space = space_of(graph, domain, machine).value();
  Schedule schedule = space.schedule(space.seeds[0]);
  const std::regex hint(machine.target->family == "cuda" ? "ld\\.global\\.nc\\.L1::no_allocate\\.v4"
                                                         : "global_load_(dwordx4|b128).*(slc|nt)");
  std::string binaries[2];
  for (const int64_t past : {0, 1}) {
    schedule.set(kStreamLoads, past);
    const Source source = emit(lower(graph, domain, schedule, machine).value(), machine).value();
    const auto unit = compile_gpu({&source, 1}, folder_);
    ASSERT_TRUE(unit.ok()) << unit.status();
    const GpuCode& code = unit->kernels.front();
    EXPECT_EQ(std::regex_search(code.assembly, hint), past != 0) << code.assembly;
    EXPECT_EQ(code.narrowest_load, 16);
    EXPECT_EQ(code.spill_bytes, 0);
    binaries[past] = unit->binary;
  }
  EXPECT_NE(binaries[0], binaries[1]);
}

// Operands are copied to shared memory asynchronously, without passing through registers: 16 bytes at a time if the
// operand's columns are adjacent in memory, 4 bytes at a time if the operand is transposed.
TEST_P(DeviceCodeOfMoves, OfAsynchronousCopiesIsWideAndSpillsNothing) {
  const Machine machine = testing::machine_named(GetParam());
  const Graph graph = parse(kGemmGelu).value();
  const Domain domain = analyze(graph, machine).value();
  const Space space = space_of(graph, domain, machine).value();
  Schedule schedule = space.schedule(space.seeds[0]);
  schedule.set(kAsyncCopies, 1);
  schedule.set(kMinBlocks, 1);
  using Stages = std::pair<int64_t, int64_t>;  // numbers of stages in shared memory and in registers
  constexpr Stages kAll[] = {{2, 1}, {3, 1}, {4, 1}, {3, 2}, {5, 2}};
  // At a test scale below 1, each target tests other entries of kAll.
  for (const auto& [stages, registers] : testing::sampled(kAll, turn_of(GetParam()))) {
    schedule.set(kStages, stages);
    schedule.set(kRegisterStages, registers);
    ASSERT_TRUE(space.legal(schedule));
    Source source = emit(lower(graph, domain, schedule, machine).value(), machine).value();
    EXPECT_EQ(source.load_bytes, 16);
    const auto code = compile_one(source, folder_);
    ASSERT_TRUE(code.ok()) << code.status();
    std::printf("%d stages, %d in registers: %s\n", static_cast<int>(stages), static_cast<int>(registers),
                code_text(*code).c_str());
    EXPECT_EQ(code->spill_bytes, 0);
    EXPECT_EQ(code->widest_load, 16);
    if (machine.target->family != "cuda") continue;
    EXPECT_EQ(code->narrowest_load, 4);
    EXPECT_NE(code->assembly.find("cp.async.cg.shared.global"), std::string::npos);
    EXPECT_NE(code->assembly.find(cat("cp.async.wait_group ", stages - 2, ";")), std::string::npos) << code->assembly;
    // On targets before sm_80, the same text compiles to synchronous copies.
    source.target = "cuda:sm_75";
    const auto older = compile_one(source, folder_);
    ASSERT_TRUE(older.ok()) << older.status();
    EXPECT_EQ(older->assembly.find("cp.async"), std::string::npos);
  }
}

// The preludes of both families have every dtype, cast and op of random graphs.
TEST_P(DeviceCodeOfFamilies, OfRandomGraphsCompiles) {
  const Machine machine = testing::machine_named(GetParam());
  const uint64_t first = testing::test_seed(20260501);
  int kernels = 0;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(8)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph graph = random_graph(seed, {.nodes = 14, .largest = 2000, .f32_only = false});
    const auto cover = cover_greedy(graph, machine);
    ASSERT_TRUE(cover.ok()) << cover.status() << "\n" << print(graph);
    for (const Group& group : cover->groups) {
      const Graph extracted = extract(graph, group);
      const Domain domain = analyze(extracted, machine).value();
      const Space space = space_of(extracted, domain, machine).value();
      const Point point = testing::sample_points(space, 1, seed).back();
      const auto kernel = lower(extracted, domain, space.schedule(point), machine);
      if (absl::IsUnimplemented(kernel.status())) continue;
      ASSERT_TRUE(kernel.ok()) << kernel.status() << print(extracted);
      if (kernel->grid == 0) continue;
      const auto code = compile_one(emit(*kernel, machine).value(), folder_);
      ASSERT_TRUE(code.ok()) << code.status() << print(extracted) << emit(*kernel, machine)->text;
      ++kernels;
    }
  }
  EXPECT_GE(kernels, testing::scaled(8));
  std::printf("%d kernels\n", kernels);
}

std::string name_of_target(const ::testing::TestParamInfo<std::string>& target) {
  std::string name = target.param;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Targets, DeviceCode, ::testing::ValuesIn(gpu_targets()), name_of_target);
INSTANTIATE_TEST_SUITE_P(Targets, DeviceCodeOfFamilies, ::testing::Values("cuda:sm_80", "hip:gfx90a"), name_of_target);
INSTANTIATE_TEST_SUITE_P(Targets, DeviceCodeOfMoves,
                         ::testing::Values("cuda:sm_80", "cuda:sm_90a", "cuda:sm_120", "hip:gfx90a"), name_of_target);

}  // namespace
}  // namespace wl

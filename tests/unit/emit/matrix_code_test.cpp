// Contractions by matrix instructions through the real compiler, which needs no GPU: the code has one instruction for
// each fragment of a wave's tile, spills nothing, and accesses memory in wide words.
#include <gtest/gtest.h>

#include <cstring>

#include "compiler/base/code.h"
#include "compiler/cover/stitching.h"
#include "compiler/emit/emit.h"
#include "compiler/ir/text.h"
#include "compiler/kernel/shared_factors.h"
#include "compiler/schedule/contract/contract.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/unit/emit/compiled.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/contract/stitched_products.h"
#include "tests/unit/schedule/stitched_groups.h"
#include "tests/unit/scratch.h"
#include "worker/drivers/gpu/code.h"
#include "worker/drivers/gpu/elf_sections.h"

namespace wl {
namespace {

constexpr const char* kAlongK = R"(graph {
  %0 = input "a" : bf16[2048,1024] normal(0,1)
  %1 = input "b" : bf16[4096,1024] normal(0,1)
  %2 = input "bias" : bf16[4096] normal(0,1)
  %3 = contract %0 %1 "mk,nk->mn" : bf16[2048,4096]
  %4 = broadcast %2 dims=[1] : bf16[2048,4096]
  %5 = add %3 %4 : bf16[2048,4096]
  output "y" %5
})";

constexpr const char* kAcrossK = R"(graph {
  %0 = input "a" : f16[2048,1024] normal(0,1)
  %1 = input "b" : f16[1024,4096] normal(0,1)
  %2 = contract %0 %1 "mk,kn->mn" : f16[2048,4096]
  output "y" %2
})";

constexpr const char* kBytes = R"(graph {
  %0 = input "a" : u8[2048,1024] uniform(0,255)
  %1 = input "b" : i8[4096,1024] uniform(-128,127)
  %2 = contract %0 %1 "mk,nk->mn" : i32[2048,4096]
  output "y" %2
})";

// A norm and the product that reads it, and two products with a function between them.
constexpr const char* kStages[] = {R"(graph {
  %0 = input "x" : f32[8192,1024] normal(0,1)
  %1 = input "w" : bf16[1024,1024] normal(0,1)
  %2 = mul %0 %0 : f32[8192,1024]
  %3 = reduce_sum %2 axes=[1] : f32[8192]
  %4 = rsqrt %3 : f32[8192]
  %5 = broadcast %4 dims=[0] : f32[8192,1024]
  %6 = mul %0 %5 : f32[8192,1024]
  %7 = cast %6 : bf16[8192,1024]
  %8 = contract %7 %1 "mk,kn->mn" : bf16[8192,1024]
  output "y" %8
})",
                                   R"(graph {
  %0 = input "x" : bf16[8192,256] normal(0,1)
  %1 = input "a" : bf16[256,512] normal(0,1)
  %2 = input "b" : bf16[512,256] normal(0,1)
  %3 = contract %0 %1 "mk,kn->mn" : bf16[8192,512]
  %4 = tanh %3 : bf16[8192,512]
  %5 = contract %4 %2 "mk,kn->mn" : bf16[8192,256]
  output "y" %5
})"};

std::string_view instructions_of(const std::string& binary, const std::string& entry) {
  constexpr uint16_t kCuda = 190;  // the ELF machine number EM_CUDA
  const std::optional<ElfSections> cubin = ElfSections::of(binary, kCuda);
  return cubin ? cubin->named(cat(".text.", entry)) : std::string_view();
}

// Opcodes of NVIDIA's machine instructions, which are 16 bytes long. The opcode is the low 12 bits of an instruction,
// which kWhole masks.
constexpr uint64_t kHmma = 0x23c, kImma = 0x237, kHgmma = 0x9f0, kIgmma = 0x9f1, kHgmmaResident = 0xdf0, kLdsm = 0x83b,
                   kSts = 0x388, kLdgsts = 0xfae, kUtmaldg = 0x5b4, kWhole = 0xfff;
// Multiply-adds of integers, which compilers also use to move registers. kFamily masks the low 8 bits of an
// instruction, by which these are recognised.
constexpr uint64_t kImad = 0x24, kFamily = 0xff;

int64_t count_of(uint64_t instruction, uint64_t mask, std::string_view instructions) {
  int64_t n = 0;
  for (size_t at = 0; at + 16 <= instructions.size(); at += 16) {
    uint64_t low = 0;
    std::memcpy(&low, instructions.data() + at, sizeof low);
    n += (low & mask) == instruction;
  }
  return n;
}

class MatrixCode : public ::testing::TestWithParam<std::string> {};

TEST_P(MatrixCode, HasAnInstructionForEachFragmentAndSpillsNothing) {
  if (const std::string missing = gpu_compiler_missing(GetParam()); !missing.empty()) GTEST_SKIP() << missing;
  const Scratch scratch;
  const Machine machine = testing::machine_named(GetParam());
  constexpr const char* kAll[] = {kAlongK, kAcrossK, kBytes};
  // A run at a small scale tests only the first product for sm_80, and only the last one for sm_90a.
  for (const char* text : testing::sampled(kAll, GetParam() == "cuda:sm_80" ? 0 : 2)) {
    const Graph graph = parse(text).value();
    const Domain domain = analyze(graph, machine).value();
    const Space space = space_of(graph, domain, machine).value();
    int kernels = 0;
    for (const Point& seed : space.seeds) {
      const Schedule schedule = space.schedule(seed);
      const std::optional<MatrixOp> matrix = matrix_of(schedule);
      if (!matrix) continue;
      SCOPED_TRACE(space.text(seed));
      const Source source = emit(lower(graph, domain, schedule, machine).value(), machine).value();
      const auto unit = compile_gpu({&source, 1}, scratch.folder());
      ASSERT_TRUE(unit.ok()) << unit.status() << source.text;
      const GpuCode& code = unit->kernels.front();
      EXPECT_EQ(code.spill_bytes, 0);
      EXPECT_EQ(code.stack_bytes, 0);
      EXPECT_EQ(code.narrowest_store, 2 * size_of(graph.nodes[graph.outputs[0].node].dtype));
      // The loop over K is neither unrolled nor followed by a remainder, so the code contains the instructions of one
      // step.
      const WaveTile wave = wave_tile(*matrix, schedule[kThreadRows], schedule[kThreadColumns]);
      const std::string_view instructions = instructions_of(unit->binary, source.entry);
      ++kernels;
      if (multiplies_in_memory(*matrix)) {
        const int64_t columns = std::min(wave.columns, kSharedFactorColumns);
        EXPECT_EQ(count_of(is_float(info(*matrix).sum) ? kHgmma : kIgmma, kWhole, instructions),
                  wave.rows / 64 * (wave.columns / columns) * (schedule[kStepK] / info(*matrix).k));
        EXPECT_EQ(count_of(kLdsm, kWhole, instructions) + count_of(kHmma, kWhole, instructions), 0);
        continue;
      }
      const int64_t steps = schedule[kStepK] / info(*matrix).k, expected = wave.rows / 16 * (wave.columns / 8) * steps;
      EXPECT_EQ(count_of(is_float(info(*matrix).sum) ? kHmma : kImma, kWhole, instructions), expected);
      // One LDSM instruction loads four fragments into the registers from which they are multiplied, so no values
      // are moved between registers.
      EXPECT_EQ(count_of(kLdsm, kWhole, instructions),
                (wave.rows + wave.columns) / 16 * (steps + schedule[kRegisterStages] - 1));
      EXPECT_LT(count_of(kImad, kFamily, instructions), expected + 64);
      std::printf("%s: %d registers, %lld products\n", space.text(seed).c_str(), code.registers,
                  static_cast<long long>(expected));
    }
    EXPECT_GE(kernels, 3);
  }
}

// Attention over 4096 keys with 128 features: for each step along the keys, the code has one instruction per fragment
// of both products and one load per four fragments, and keeps all values between the products in registers.
TEST_P(MatrixCode, KeepsTheValuesOfATurnInRegisters) {
  if (const std::string missing = gpu_compiler_missing(GetParam()); !missing.empty()) GTEST_SKIP() << missing;
  const Scratch scratch;
  const Machine machine = testing::machine_named(GetParam());
  constexpr int64_t kFeatures = 128;
  const Graph graph = parse(testing::attention_of_halves("bf16", 4096, 4096, kFeatures, kFeatures)).value();
  const Domain domain = analyze_group(graph, machine).value();
  const Space space = space_of(graph, domain, machine).value();
  std::vector<Point> points = testing::with_resident_values(space, space.seeds);
  // Where waves only copy, shared memory also has phases, which threads set up.
  std::erase_if(points, [&](const Point& point) { return space.schedule(point)[kCopyingWaves] != 0; });
  ASSERT_FALSE(points.empty());
  for (const Point& point : points) {
    const Schedule schedule = space.schedule(point);
    SCOPED_TRACE(space.text(point));
    const Source source = emit(lower(graph, domain, schedule, machine).value(), machine).value();
    const auto unit = compile_gpu({&source, 1}, scratch.folder());
    ASSERT_TRUE(unit.ok()) << unit.status() << source.text;
    const GpuCode& code = unit->kernels.front();
    const std::string_view instructions = instructions_of(unit->binary, source.entry);
    const int64_t rows = schedule[kBlockRows] / (schedule[kTeam] / 32), keys = schedule[kTurnLength];
    const int64_t scores = keys / 8 * (kFeatures / 16), sums = kFeatures / 8 * (keys / 16);
    // One wgmma instruction multiplies 64 rows by all keys or all features, and reads its right factor from shared
    // memory.
    const bool groups = (machine.target->features & kWaveGroups) != 0;
    EXPECT_EQ(count_of(kHmma, kWhole, instructions), groups ? 0 : rows / 16 * (scores + sums));
    EXPECT_EQ(count_of(kLdsm, kWhole, instructions), groups ? 0 : (scores + sums) / 2);
    EXPECT_EQ(count_of(kHgmmaResident, kWhole, instructions), groups ? rows / 16 * (kFeatures / 16 + keys / 16) : 0);
    EXPECT_EQ(count_of(kSts, kWhole, instructions), 0);
    std::printf("%lld rows a wave, %lld keys: %d registers, %lld bytes spilled\n", static_cast<long long>(rows),
                static_cast<long long>(keys), code.registers, static_cast<long long>(code.spill_bytes));
    // with more than 64 keys, the scores take nearly all registers, so a few values may be spilled
    EXPECT_LE(code.spill_bytes, keys <= 64 ? 0 : 256);
  }
}

// The default schedule of a product that is a stage of a stitched group has asynchronous copies and the fastest matrix
// instructions, as that of a product alone.
TEST_P(MatrixCode, HasCopiesAndProductsOfStages) {
  if (const std::string missing = gpu_compiler_missing(GetParam()); !missing.empty()) GTEST_SKIP() << missing;
  const Scratch scratch;
  const Machine machine = testing::machine_named(GetParam());
  const bool groups = (machine.target->features & kWaveGroups) != 0;
  for (const char* text : kStages) {
    const Graph graph = parse(text).value();
    const Domain domain = analyze_group(graph, machine).value();
    ASSERT_EQ(domain.cls, LoopClass::kStitched);
    const Space space = space_of(graph, domain, machine).value();
    SCOPED_TRACE(space.text(space.seeds[0]));
    const Schedule schedule = space.schedule(space.seeds[0]);
    const Source source = emit(lower(graph, domain, schedule, machine).value(), machine).value();
    const auto unit = compile_gpu({&source, 1}, scratch.folder());
    ASSERT_TRUE(unit.ok()) << unit.status() << source.text;
    EXPECT_EQ(unit->kernels.front().spill_bytes, 0);
    const std::string_view instructions = instructions_of(unit->binary, source.entry);
    const int64_t copies = count_of(kLdgsts, kWhole, instructions), products = count_of(kHmma, kWhole, instructions),
                  of_groups = count_of(kHgmma, kWhole, instructions);
    std::printf("%ld copies, %ld products of waves, %ld of groups of waves\n", static_cast<long>(copies),
                static_cast<long>(products), static_cast<long>(of_groups));
    EXPECT_GT(copies, 0);
    EXPECT_EQ(of_groups > 0, groups);
    EXPECT_EQ(products > 0, !groups);
  }
}

// Attention whose keys and values other waves copy as boxes: the tensor memory accelerator moves them, and products are
// of groups of waves.
TEST_P(MatrixCode, HasBoxesThatOtherWavesCopy) {
  if (const std::string missing = gpu_compiler_missing(GetParam()); !missing.empty()) GTEST_SKIP() << missing;
  const Scratch scratch;
  const Machine machine = testing::machine_named(GetParam());
  const Graph graph = parse(testing::attention_of_halves("bf16", 4096, 4096, 128, 128)).value();
  const Domain domain = analyze_group(graph, machine).value();
  const Space space = space_of(graph, domain, machine).value();
  const std::vector<Point> points =
      testing::with_copying_waves(space, testing::with_resident_values(space, space.seeds), true);
  EXPECT_EQ(points.empty(), (machine.target->features & kWaveGroups) == 0);
  for (const Point& point : points) {
    SCOPED_TRACE(space.text(point));
    const Source source = emit(lower(graph, domain, space.schedule(point), machine).value(), machine).value();
    const auto unit = compile_gpu({&source, 1}, scratch.folder());
    ASSERT_TRUE(unit.ok()) << unit.status() << source.text;
    const GpuCode& code = unit->kernels.front();
    const std::string_view instructions = instructions_of(unit->binary, source.entry);
    const int64_t boxes = count_of(kUtmaldg, kWhole, instructions),
                  products = count_of(kHgmmaResident, kWhole, instructions);
    std::printf("%ld boxes, %ld products, %d registers, %ld bytes spilled\n", static_cast<long>(boxes),
                static_cast<long>(products), code.registers, static_cast<long>(code.spill_bytes));
    EXPECT_GT(boxes, 0);
    EXPECT_GT(products, 0);
    EXPECT_EQ(count_of(kLdgsts, kWhole, instructions), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, MatrixCode, ::testing::Values("cuda:sm_80", "cuda:sm_90a"),
                         [](const ::testing::TestParamInfo<std::string>& target) {
                           std::string name = target.param;
                           name[4] = '_';
                           return name;
                         });

}  // namespace
}  // namespace wl

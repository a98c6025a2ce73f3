// Contractions by matrix instructions: every schedule computes its graph, and the space offers these instructions for
// suitable contractions only.
#include "compiler/target/matrix.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/schedule/contract/contract.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/compare.h"
#include "tests/unit/schedule/contract/convolutions.h"
#include "tests/unit/schedule/contractions.h"
#include "tests/unit/schedule/groups.h"
#include "tests/unit/schedule/instrs_in.h"
#include "tests/unit/schedule/traffic.h"

namespace wl {
namespace {

using testing::instrs_in;
using testing::machine_with;
using testing::parsed;

std::string product(const char* dtype, int m, int n, int k, const char* b = "nk") {
  return testing::shared_factor_product_of(dtype, m, n, k, "mk", b);
}

Space space_for(const Graph& group, const char* target) {
  const Machine machine = machine_with(std::string_view(target));
  return space_of(group, analyze(group, machine).value(), machine).value();
}

// Random products and random schedules with matrix instructions: with partial tiles of rows, columns and K, with
// batches, with several loops over K, and with operands in any order of axes or computed elementwise.
TEST(MatrixSchedules, OfRandomProductsMeanTheirGraphs) {
  int kernels = 0, with = 0, async = 0, tails = 0;
  const uint64_t first = testing::test_seed(20261201);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(120)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph group = parsed(testing::ContractionText(seed, 200'000, seed % 2 == 0 ? "bf16" : "f16").text());
    const char* const targets[] = {"cuda:sm_80", "hip:gfx942", "hip:gfx1100", "hip:gfx1201", "cuda:sm_120"};
    const Machine machine = machine_with(std::string_view(targets[seed % std::size(targets)]));
    const Domain domain = analyze(group, machine).value();
    if (domain.cls != LoopClass::kContract) continue;
    const Space space = space_of(group, domain, machine).value();
    std::vector<Point> points = testing::sample_points(space, 12, seed);
    points.erase(points.begin() + 1, points.begin() + static_cast<int64_t>(space.seeds.size()));
    std::erase_if(points, [&](const Point& point) { return space.schedule(point)[kMatrix] == kNoMatrix; });
    points.resize(std::min<size_t>(points.size(), 3));
    testing::expect_meanings(group, domain, space, machine, points, &kernels,
                             [&](const Kernel& kernel, const Point& point) {
                               EXPECT_GT(instrs_in(kernel.body, InstrOp::kMma), 0);
                               ++with;
                               async += instrs_in(kernel.body, InstrOp::kAsyncLoad) > 0;
                               tails += print(kernel).find(" where ") != std::string::npos;
                               EXPECT_LE(kernel.scratch_bytes(), contract_shared(space.schedule(point), 4));
                               testing::expect_reads_back(kernel);
                             });
    if (HasFatalFailure()) return;
  }
  std::printf("%d kernels with matrices, %d with asynchronous copies, %d with guards\n", with, async, tails);
  if (testing::scaled(120) >= 30) {
    EXPECT_GT(with, 10);
    EXPECT_GT(tails, 5);
  }
}

TEST(MatrixSchedules, OfBytesMeanTheirGraphs) {
  int kernels = 0;
  const uint64_t first = testing::test_seed(20261203);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(40)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph group = parsed(testing::byte_product(seed));
    const char* const targets[] = {"cuda:sm_80", "hip:gfx1100", "hip:gfx1201", "cuda:sm_90a"};
    const Machine machine = machine_with(std::string_view(targets[seed % std::size(targets)]));
    const Domain domain = analyze(group, machine).value();
    if (domain.cls != LoopClass::kContract) continue;
    const Space space = space_of(group, domain, machine).value();
    testing::expect_meanings(group, domain, space, machine, testing::matrix_points(space, 2, seed), &kernels,
                             [&](const Kernel& kernel, const Point& point) {
                               EXPECT_GT(instrs_in(kernel.body, InstrOp::kMma), 0);
                               EXPECT_LE(kernel.scratch_bytes(), contract_shared(space.schedule(point), 4));
                             });
    if (HasFatalFailure()) return;
  }
  std::printf("%d kernels\n", kernels);
  EXPECT_GE(kernels, testing::scaled(40));
}

// Operands that are contiguous along k are copied to shared memory 16 bytes at a time. Each step of the loop over k has
// one wait and one barrier.
TEST(MatrixSchedules, CopyOperandsAlongK) {
  const Graph group = parsed(product("bf16", 128, 128, 256));
  const Machine machine = machine_with("cuda:sm_80");
  const Domain domain = analyze(group, machine).value();
  const Space space = space_of(group, domain, machine).value();
  Schedule schedule = space.schedule(space.seeds[0]);
  EXPECT_EQ(schedule[kMatrix], 1 + static_cast<int64_t>(MatrixOp::kM16n8k16Bf16));
  // A block of the default schedule has a part of K, and the part is one step.
  EXPECT_GT(schedule[kReductionBlocks], 1);
  for (const auto& [choice, value] : Chosen{{kReductionBlocks, 1}, {kAsyncCopies, 1}, {kStages, 3}})
    schedule.set(choice, value);
  EXPECT_TRUE(space.admits(schedule));
  const Kernel kernel = lower(group, domain, schedule, machine).value();
  SCOPED_TRACE(print(kernel));
  EXPECT_EQ(instrs_in(kernel.body, InstrOp::kStore), 1);
  for (const Instr& instr : kernel.body) {
    if (instr.op != InstrOp::kLoop) continue;
    EXPECT_EQ(instrs_in(instr.body, InstrOp::kBarrier), 1);
    EXPECT_EQ(instrs_in(instr.body, InstrOp::kWait), 1);
    EXPECT_EQ(instrs_in(instr.body, InstrOp::kAsyncLoad), 2);
    EXPECT_EQ(instrs_in(instr.body, InstrOp::kMma), schedule[kStepK] / 16);
    for (const Instr& inner : instr.body)
      if (inner.op == InstrOp::kAsyncLoad) {
        EXPECT_EQ(kernel.tiles[inner.args[0]].layout.lanes(), 8);
      }
  }
  const std::vector<int64_t> moved = testing::elements_moved(kernel);
  const int64_t row_tiles = 128 / schedule[kTileRows], column_tiles = 128 / schedule[kTileColumns];
  EXPECT_EQ(moved[0], 128 * 256 * column_tiles);
  EXPECT_EQ(moved[1], 128 * 256 * row_tiles);
}

// Operands that are not contiguous along k are copied through registers. Elements computed from an operand are set to 0
// beyond the end of K.
TEST(MatrixSchedules, FillUpWhatWorkOnOperandsWouldNot) {
  const Graph group = parsed(R"(graph {
  %0 = input "a" : f16[40,37] normal(0,1)
  %1 = input "b" : f16[37,24] normal(0,1)
  %2 = exp %0 : f16[40,37]
  %3 = contract %2 %1 "mk,kn->mn" : f16[40,24]
  output "y" %3
})");
  const Machine machine = machine_with("cuda:sm_80");
  const Domain domain = analyze(group, machine).value();
  const Space space = space_of(group, domain, machine).value();
  int kernels = 0;
  std::vector<Point> points = space.seeds;
  std::erase_if(points, [&](const Point& point) { return space.schedule(point)[kMatrix] == kNoMatrix; });
  ASSERT_FALSE(points.empty());
  testing::expect_meanings(group, domain, space, machine, points, &kernels, [&](const Kernel& kernel, const Point&) {
    EXPECT_NE(print(kernel).find("select"), std::string::npos) << print(kernel);
  });
}

TEST(MatrixSchedules, AreOfferedWhereOperandsAndTargetHaveThem) {
  const auto offers = [](const std::string& text, const char* target) {
    const Space space = space_for(parsed(text), target);
    return axis_of(space.axes, kMatrix) != nullptr;
  };
  EXPECT_TRUE(offers(product("bf16", 64, 64, 64), "cuda:sm_80"));
  EXPECT_TRUE(offers(product("f16", 64, 64, 64, "kn"), "cuda:sm_90a"));
  EXPECT_FALSE(offers(product("f32", 64, 64, 64), "cuda:sm_80"));
  std::string allowed = product("f32", 64, 64, 64);
  allowed.insert(allowed.find("\" :", allowed.find("contract")) + 1, " tf32");
  EXPECT_TRUE(offers(allowed, "cuda:sm_80")) << allowed;
  EXPECT_FALSE(offers(allowed, "cuda:sm_75"));
  EXPECT_FALSE(offers(allowed, "hip:gfx942"));
  EXPECT_FALSE(offers(product("bf16", 64, 64, 64), "cuda:sm_75"));
  EXPECT_TRUE(offers(product("bf16", 64, 64, 64), "hip:gfx90a"));
  EXPECT_FALSE(offers(product("f16", 64, 64, 64), "hip:gfx90a")) << "its instructions take denormals of f16 for zeros";
  EXPECT_TRUE(offers(product("f16", 64, 64, 64), "hip:gfx908"));
  for (const char* target : {"hip:gfx942", "hip:gfx950", "hip:gfx1100", "hip:gfx1201"})
    for (const char* dtype : {"bf16", "f16"}) EXPECT_TRUE(offers(product(dtype, 64, 64, 64, "kn"), target)) << target;
  for (const char* target : {"hip:gfx906", "hip:gfx1030"}) EXPECT_FALSE(offers(product("f16", 64, 64, 64), target));
  EXPECT_FALSE(offers(product("bf16", 8, 64, 64), "cuda:sm_80"));
  EXPECT_FALSE(offers(product("bf16", 64, 64, 8), "cuda:sm_80"));
}

// A plan calls a matrix instruction by its name in matrix.def. No schedule with a matrix instruction has choices that
// the instruction makes meaningless.
TEST(MatrixSchedules, NameTheRowsOfTheTable) {
  EXPECT_EQ(value_text(kMatrix, kNoMatrix), "no");
  for (const MatrixInfo& row : matrices()) EXPECT_EQ(value_text(kMatrix, 1 + static_cast<int64_t>(row.op)), row.name);
  const Space space = space_for(parsed(product("f16", 256, 256, 256)), "cuda:sm_80");
  const int64_t unroll = axis_of(space.axes, kUnrollK)->values[0];
  int with = 0, without = 0;
  for (const Point& point : testing::sample_points(space, 2000, 1)) {
    const Schedule schedule = space.schedule(point);
    const std::optional<MatrixOp> matrix = matrix_of(schedule);
    (matrix ? with : without) += 1;
    if (!matrix) continue;
    const WaveTile wave = wave_tile(*matrix, schedule[kThreadRows], schedule[kThreadColumns]);
    EXPECT_EQ(wave.rows * wave.columns, 32 * schedule[kThreadRows] * schedule[kThreadColumns]);
    EXPECT_EQ(schedule[kUnrollK], unroll);
    EXPECT_EQ(schedule[kStepK] % info(*matrix).k, 0);
  }
  EXPECT_GT(with, 100);
  EXPECT_GT(without, 100);
}

}  // namespace
}  // namespace wl

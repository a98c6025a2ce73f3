// Contractions by matrix instructions that read their factors from shared memory (compiler/kernel/shared_factors.h):
// every schedule computes its graph.
#include "compiler/kernel/shared_factors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/kernel/verify.h"
#include "compiler/schedule/contract/contract.h"
#include "tests/unit/fuzz.h"
#include "tests/unit/schedule/compare.h"
#include "tests/unit/schedule/contract/shared_factor_products.h"
#include "tests/unit/schedule/instrs_in.h"

namespace wl {
namespace {

using ::testing::HasSubstr;
using testing::instrs_in;
using testing::machine_with;
using testing::parsed;

TEST(SharedFactorSchedules, OfRandomProductsMeanTheirGraphs) {
  int kernels = 0, async = 0, across = 0, panels = 0, tails = 0;
  const uint64_t first = testing::test_seed(20261127);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(24)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph group = parsed(testing::shared_factor_product(seed));
    const Machine machine = machine_with("cuda:sm_90a");
    const Domain domain = analyze(group, machine).value();
    ASSERT_EQ(domain.cls, LoopClass::kContract);
    const Space space = space_of(group, domain, machine).value();
    testing::expect_meanings(group, domain, space, machine, testing::shared_factor_points(space, 2, seed), &kernels,
                             [&](const Kernel& kernel, const Point& point) {
                               const std::string text = print(kernel);
                               EXPECT_GT(instrs_in(kernel.body, InstrOp::kMmaWait), 0);
                               EXPECT_LE(kernel.scratch_bytes(), contract_shared(space.schedule(point), 4));
                               async += instrs_in(kernel.body, InstrOp::kAsyncLoad) > 0;
                               across += instrs_in(kernel.body, InstrOp::kWordsAcross) > 0;
                               panels += text.find(" panels ") != std::string::npos;
                               tails += text.find(" where ") != std::string::npos;
                               testing::expect_reads_back(kernel);
                             });
    if (HasFatalFailure()) return;
  }
  std::printf("%d kernels, %d with asynchronous copies, %d across k, %d with panels, %d with guards\n", kernels, async,
              across, panels, tails);
  if (testing::scaled(24) < 6) return;
  for (const int n : {async, across, panels, tails}) EXPECT_GT(n, 0);
}

TEST(SharedFactorSchedules, OfBytesMeanTheirGraphs) {
  int kernels = 0, async = 0, scattered = 0;
  const uint64_t first = testing::test_seed(20261205);
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(testing::scaled(16)); ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph group = parsed(testing::shared_factor_byte_product(seed));
    const Machine machine = machine_with("cuda:sm_90a");
    const Domain domain = analyze(group, machine).value();
    const Space space = space_of(group, domain, machine).value();
    testing::expect_meanings(group, domain, space, machine, testing::shared_factor_points(space, 2, seed), &kernels,
                             [&](const Kernel& kernel, const Point& point) {
                               EXPECT_EQ(space.schedule(point)[kStepK], shared_row_elements(DType::u8));
                               EXPECT_EQ(instrs_in(kernel.body, InstrOp::kWordsAcross), 0);
                               async += instrs_in(kernel.body, InstrOp::kAsyncLoad) > 0;
                               scattered += instrs_in(kernel.body, InstrOp::kConvert) > 0;
                             });
    if (HasFatalFailure()) return;
  }
  std::printf("%d kernels, %d with asynchronous copies, %d stored byte by byte\n", kernels, async, scattered);
  if (testing::scaled(16) < 6) return;
  for (const int n : {kernels, async, scattered}) EXPECT_GT(n, 0);
}

// The copies for the next step are started while the matrix instruction computes its product, and no other instruction
// lies between the matrix instruction and the wait for it.
TEST(SharedFactorSchedules, StartCopiesBesideProducts) {
  const Graph group = parsed(testing::shared_factor_product_of("bf16", 256, 256, 512, "mk", "nk"));
  const Machine machine = machine_with("cuda:sm_90a");
  const Domain domain = analyze(group, machine).value();
  const Space space = space_of(group, domain, machine).value();
  Schedule schedule = space.schedule(space.seeds[0]);
  schedule.set(kReductionBlocks, 1);
  ASSERT_EQ(schedule[kMatrix], 1 + static_cast<int64_t>(MatrixOp::kWgmma64Bf16));
  const Kernel kernel = lower(group, domain, schedule, machine).value();
  SCOPED_TRACE(print(kernel));
  int loops = 0;
  for (const Instr& loop : kernel.body) {
    if (loop.op != InstrOp::kLoop) continue;
    ++loops;
    std::vector<InstrOp> ops;
    for (const Instr& instr : loop.body) ops.push_back(instr.op);
    EXPECT_THAT(
        ops, ::testing::ElementsAre(InstrOp::kWait, InstrOp::kBarrier, InstrOp::kWords, InstrOp::kWords, InstrOp::kMma,
                                    InstrOp::kAsyncLoad, InstrOp::kAsyncLoad, InstrOp::kCommit, InstrOp::kMmaWait));
  }
  EXPECT_EQ(loops, 1);
}

TEST(SharedFactorSchedules, VerifierRejectsOtherOrders) {
  const Graph group = parsed(testing::shared_factor_product_of("bf16", 256, 256, 512, "mk", "kn"));
  const Machine machine = machine_with("cuda:sm_90a");
  const Domain domain = analyze(group, machine).value();
  const Space space = space_of(group, domain, machine).value();
  const Kernel good = lower(group, domain, space.schedule(space.seeds[0]), machine).value();
  ASSERT_TRUE(verify(good).ok()) << verify(good);
  const auto refused = [&](const char* says, auto change) {
    Kernel kernel = good;
    change(kernel);
    EXPECT_THAT(verify(kernel).ToString(), HasSubstr(says)) << print(kernel);
  };
  const auto shared = [](Kernel& kernel) -> KernelBuffer& { return kernel.buffers[3]; };
  const auto loop = [](Kernel& kernel) -> std::vector<Instr>& {
    for (Instr& instr : kernel.body)
      if (instr.op == InstrOp::kLoop) return instr.body;
    return kernel.body;
  };
  const auto at = [&](Kernel& kernel, InstrOp op) -> Instr& {
    std::vector<Instr>& body = loop(kernel);
    return *std::find_if(body.begin(), body.end(), [&](const Instr& instr) { return instr.op == op; });
  };
  refused("not in the order in which", [&](Kernel& k) { shared(k).swizzle = {}; });
  refused("not in the order in which", [&](Kernel& k) { shared(k).swizzle = {2, 3, 3}; });
  refused("a multiple of 1024 bytes", [&](Kernel& k) {
    for (KernelBuffer& buffer : k.buffers)
      if (buffer.level == Level::kShared) buffer.byte_offset += 64;
  });
  refused("a multiple of 1024 bytes", [&](Kernel& k) { at(k, InstrOp::kWords).slice.offset.base += 64; });
  refused("not in the order in which", [&](Kernel& k) { at(k, InstrOp::kWords).slice.strides[0] = 128; });
  refused("no wait for the product",
          [&](Kernel& k) { std::erase_if(loop(k), [](const Instr& instr) { return instr.op == InstrOp::kMmaWait; }); });
  // A barrier before the wait for the product is refused, because the matrix instruction still reads shared memory.
  refused("no wait for the product", [&](Kernel& k) {
    Instr barrier;
    barrier.op = InstrOp::kBarrier;
    loop(k).insert(loop(k).end() - 1, barrier);
  });
  refused("is multiplied, and nothing else", [&](Kernel& k) {
    const TileId factor = at(k, InstrOp::kWords).result;
    Instr copy;
    copy.op = InstrOp::kMap;
    copy.result = static_cast<TileId>(k.tiles.size());
    copy.args = {factor};
    copy.expr = {{ExprNode::Kind::kArg, Op::add, DType::u32, 0, 0, {-1, -1, -1}}};
    k.tiles.push_back(k.tiles[factor]);
    loop(k).insert(loop(k).begin() + 4, copy);
  });
  // The part of a factor that a group of waves would read begins in the middle of a row.
  refused("not in the order in which", [&](Kernel& k) {
    for (Tile& tile : k.tiles)
      for (Layout::Base& base : tile.layout.bases)
        if (tile.dtype == DType::u32 && (base.vector == 32 || base.vector == 64)) base.vector = 96 - base.vector;
  });
  refused("has no such matrices", [](Kernel& k) { k.target = "cuda:sm_80"; });
}

TEST(SharedFactorSchedules, SwizzlesAreOneToOneAndPeriodic) {
  for (const int64_t along : {64, 128, 256})
    for (const bool along_k : {true, false}) {
      const Swizzle swizzle = shared_factor_swizzle(DType::bf16, along_k, along);
      const int64_t size = along * 64;
      std::vector<bool> met(static_cast<size_t>(size), false);
      for (int64_t i = 0; i < size; ++i) {
        const int64_t place = swizzle.place_of(i);
        ASSERT_TRUE(place >= 0 && place < size && !met[place]) << i;
        met[place] = true;
        EXPECT_EQ(swizzle.place_of(i + 3 * swizzle.period()), place + 3 * swizzle.period());
        // PTX's canonical layout of shared memory: in each row of 128 bytes, the index of a 16-byte piece is XORed
        // with the row's index modulo 8.
        const int64_t row = along_k ? i / 64 : i % along, k = along_k ? i % 64 : i / along;
        const int64_t byte = along_k ? row * 128 + k * 2 : row / 64 * 8192 + k * 128 + row % 64 * 2;
        EXPECT_EQ(2 * place, byte ^ ((byte >> 7 & 7) << 4));
      }
    }
}

}  // namespace
}  // namespace wl

#include "runtime/arena.h"

#include <gtest/gtest.h>

#include <random>

#include "client/program/program.h"

namespace wl {
namespace {

bool overlap(int64_t a, int64_t a_bytes, int64_t b, int64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

TEST(Arena, ValuesThatLiveTogetherNeverOverlap) {
  std::mt19937 rng(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> values;
    int64_t sum = 0;
    for (unsigned i = 0; i < 1 + rng() % 40; ++i) {
      int first = static_cast<int>(rng() % 30);
      values.push_back({static_cast<int64_t>(rng() % 20000), first, first + static_cast<int>(rng() % 6)});
      sum += values.back().bytes + 8192;
    }
    Arena arena = plan_arena(values);
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(arena.offsets[i] % kArenaAlignment, 0);
      EXPECT_LE(arena.offsets[i] + values[i].bytes, arena.bytes);
      for (size_t j = 0; j < i; ++j) {
        bool together = values[i].first <= values[j].last && values[j].first <= values[i].last;
        EXPECT_FALSE(together && overlap(arena.offsets[i], values[i].bytes, arena.offsets[j], values[j].bytes))
            << "round " << round << ": " << i << " and " << j;
      }
    }
    EXPECT_LE(arena.bytes, sum);
  }
}

TEST(Arena, ReusesWhatIsDead) {
  constexpr int64_t kBytes = 1 << 20;
  Arena arena = plan_arena({{kBytes, 0, 1}, {kBytes, 1, 2}, {kBytes, 2, 3}, {kBytes, 3, 4}});
  EXPECT_LT(arena.bytes, 2 * kBytes + 4 * 4096);
}

TEST(Arena, LargeValuesDifferModuloAPage) {
  Arena arena = plan_arena({{8192, 0, 0}, {8192, 0, 0}, {8192, 0, 0}});
  EXPECT_NE(arena.offsets[0] % 4096, arena.offsets[1] % 4096);
  EXPECT_NE(arena.offsets[1] % 4096, arena.offsets[2] % 4096);
}

Program chain() {
  Program program;
  auto buffer = [](std::string name, Place place) {
    return ProgramBuffer{std::move(name), DType::f32, {1024}, place, 0, {}, 0};
  };
  program.buffers = {buffer("x", Place::kInput), buffer("t0", Place::kArena), buffer("t1", Place::kArena),
                     buffer("y", Place::kOutput)};
  program.kernels.resize(1);
  program.kernels[0].source.entry = "wl_k";
  program.kernels[0].inputs = program.kernels[0].outputs = 1;
  program.steps = {{0, {0, 1}}, {0, {1, 2}}, {0, {2, 3}}};
  program.outputs = {{"y", 3}};
  return program;
}

TEST(Program, LaysOutAChain) {
  Program program = chain();
  ASSERT_TRUE(lay_out(program).ok());
  EXPECT_NE(program.buffers[1].offset, program.buffers[2].offset);
}

TEST(Program, SaysWhatIsUnsound) {
  Program reads_early = chain();
  std::swap(reads_early.steps[0], reads_early.steps[1]);
  EXPECT_NE(lay_out(reads_early).message().find("reads t0 before"), std::string::npos) << lay_out(reads_early);
  Program no_output = chain();
  no_output.steps.pop_back();
  EXPECT_NE(lay_out(no_output).message().find("no call stores the output y"), std::string::npos);
  Program spoils_input = chain();
  spoils_input.steps[2].args[1] = 0;
  EXPECT_NE(lay_out(spoils_input).message().find("stores to the input x"), std::string::npos);
  Program arity = chain();
  arity.steps[1].args.push_back(0);
  EXPECT_NE(lay_out(arity).message().find("3 arguments"), std::string::npos);
}

}  // namespace
}  // namespace wl

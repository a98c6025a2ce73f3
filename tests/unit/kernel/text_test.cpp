// The text form of kernels: parse_kernel(print(k)) == k, and texts that are no kernels are refused with an error.
#include "compiler/ir/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "compiler/cover/cover.h"
#include "compiler/kernel/barriers.h"
#include "compiler/kernel/builder.h"
#include "compiler/kernel/moves.h"
#include "compiler/kernel/verify.h"
#include "compiler/schedule/lower/lower.h"
#include "tests/unit/file_text.h"
#include "tests/unit/ir/random_graph.h"
#include "tests/unit/kernel/random_layout.h"
#include "tests/unit/schedule/groups.h"

namespace wl {
namespace {

using testing::machine_with;

using ::testing::HasSubstr;

void expect_round_trip(const Kernel& kernel) {
  const std::string text = print(kernel);
  const auto again = parse_kernel(text);
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << text;
  ASSERT_EQ(print(*again), text);
  // NaN != NaN, so a kernel with a NaN constant is not equal to itself.
  ASSERT_TRUE(text.find("nan") != std::string::npos || *again == kernel) << text;
}

std::vector<Kernel> kernels_of(const Graph& group, const Machine& machine, int points) {
  std::vector<Kernel> out;
  const auto domain = analyze(group, machine);
  EXPECT_TRUE(domain.ok()) << domain.status();
  if (!domain.ok()) return out;
  const auto space = space_of(group, *domain, machine);
  EXPECT_TRUE(space.ok()) << space.status();
  if (!space.ok()) return out;
  for (const Point& point : testing::sample_points(*space, points)) {
    auto kernel = lower(group, *domain, space->schedule(point), machine);
    if (kernel.ok()) out.push_back(std::move(*kernel));
  }
  return out;
}

TEST(KernelText, ReadsBackEveryKernelOfTheClasses) {
  for (int row : {0, 2})
    for (const char* text : testing::kGroups)
      for (const Kernel& kernel : kernels_of(*parse(text), machine_with(row), 12)) expect_round_trip(kernel);
}

TEST(KernelText, ReadsBackEveryKernelWithLanes) {
  for (const char* target : {"cuda:sm_80", "hip:gfx90a"})
    for (const char* text : testing::kGroups)
      for (const Kernel& kernel : kernels_of(*parse(text), machine_with(target), 12)) expect_round_trip(kernel);
}

TEST(KernelText, ReadsBackKernelsOfRandomGraphs) {
  const Machine machine = machine_with(1);
  int kernels = 0;
  for (uint64_t seed = 20260301; seed < 20260301 + 60; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Graph graph = random_graph(seed);
    const auto cover = cover_greedy(graph, machine);
    if (!cover.ok()) continue;
    for (const Group& group : cover->groups)
      for (const Kernel& kernel : kernels_of(extract(graph, group), machine, 1)) {
        expect_round_trip(kernel);
        ++kernels;
      }
  }
  EXPECT_GT(kernels, 100);
}

// Expressions that lowering never makes are read back unchanged too: expressions with shared subexpressions, operands
// in any order, unusual dtypes and very deep nesting.
TEST(KernelText, ReadsBackAnyExpression) {
  std::mt19937_64 random(5);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  for (int round = 0; round < 300; ++round) {
    Kernel kernel;
    kernel.name = "any \"name\"\n";
    kernel.vars.push_back({Var::Kind::kBlock, "block", {}, 1, 0});
    for (int i = 0; i < 4; ++i) kernel.tiles.push_back({DType::f32, cpu_layout({1, 40}, 1, 8), {}});
    for (TileId id = 0; id < 3; ++id) {
      Instr fill;
      fill.op = InstrOp::kFill;
      fill.result = id;
      fill.value = 0.1 * id;
      kernel.body.push_back(fill);
    }
    Instr map;
    map.op = InstrOp::kMap;
    map.result = 3;
    for (int i = 0; i < 1 + below(4); ++i) map.args.push_back(below(3));
    const int nodes = 1 + below(round % 3 == 0 ? 120 : 9);
    for (int i = 0; i < nodes; ++i) {
      ExprNode node;
      node.dtype = below(4) == 0 ? DType::f64 : DType::f32;
      if (i == 0 || below(3) == 0) {
        node.kind = below(2) == 0 ? ExprNode::Kind::kArg : ExprNode::Kind::kConstant;
        if (node.kind == ExprNode::Kind::kArg) node.arg = below(static_cast<int>(map.args.size()));
        if (node.kind == ExprNode::Kind::kConstant) node.value = 1.0 / (1 + below(7)) - 0.3;
      } else {
        const Op kOps[] = {Op::exp, Op::add, Op::select, Op::lt, Op::cast};
        node.op = kOps[below(5)];
        for (int k = 0; k < info(node.op).arity; ++k) node.operands[k] = below(2) == 0 ? i - 1 : below(i);
      }
      map.expr.push_back(node);
    }
    map.expr.back().dtype = DType::f32;
    kernel.body.push_back(map);
    ASSERT_TRUE(verify(kernel).ok()) << verify(kernel);
    expect_round_trip(kernel);
    if (HasFatalFailure()) return;
  }
}

// Kernels that convert a tile from one layout to another, with and without shared memory, are read back unchanged. The
// layouts have bases that are XORs of coordinate bits, and the shared memory is swizzled.
TEST(KernelText, ReadsBackMovesAmongThreads) {
  std::mt19937_64 random(8);
  for (int round = 0; round < 200; ++round) {
    const testing::LayoutSpace space{{16, 32}, 5, 1, round % 3};
    Kernel kernel;
    kernel.name = "moves";
    kernel.target = "sim:cuda";
    kernel.wave = 32;
    kernel.team = kernel.threads = 64;
    kernel.vars = {{Var::Kind::kBlock, "block", {}, 1, 0}, {Var::Kind::kTeam, "team", {}, 1, 0}};
    kernel.buffers = {{"x", DType::f32, {16, 32}, Level::kGlobal, false, false, 0},
                      {"y", DType::f32, {16, 32}, Level::kGlobal, true, true, 0},
                      {"moving", DType::f32, {16, 32}, Level::kShared, false, false, 0, {3, 2, 3 + round % 2}}};
    for (TileId tile = 0; tile < 3; ++tile)
      kernel.tiles.push_back({DType::f32, testing::random_layout(random, space), {}});
    for (TileId tile = 1; tile < 3; ++tile)  // vectors of a swizzled buffer must be contiguous: not along axis 0
      if (kernel.tiles[tile].layout.vector_axis() == 0) kernel.tiles[tile].layout = kernel.tiles[0].layout;
    if (kernel.tiles[0].layout.vector_axis() == 0) continue;
    const Slice x{0, {}, {32, 1}}, y{1, {}, {32, 1}}, moving{2, {}, {32, 1}};
    const bool stays = within_waves(moves_between(kernel.tiles[1].layout, kernel.tiles[2].layout, 64, 32), 32);
    kernel.body = {load_instr(0, x), convert_instr(1, 0, moving), convert_instr(2, 1, stays ? Slice() : moving),
                   store_instr(2, y, false)};
    insert_barriers(kernel);
    ASSERT_TRUE(verify(kernel).ok()) << verify(kernel) << print(kernel);
    expect_round_trip(kernel);
    if (HasFatalFailure()) return;
  }
}

TEST(KernelText, ReadsTheSeedsOfTheFuzzer) {
  for (const auto& seed :
       std::filesystem::directory_iterator(cat(WARPLOOM_SOURCE_DIR, "/tests/fuzz/seeds/kernel_text"))) {
    const auto kernel = parse_kernel(testing::file_text(seed.path()));
    ASSERT_TRUE(kernel.ok()) << seed.path() << ": " << kernel.status();
    expect_round_trip(*kernel);
  }
}

// On a GPU, the text marks an exp whose result is rounded afterwards. Any other op with this mark is refused.
TEST(KernelText, ReadsRoundedExps) {
  const Graph group = parse(
                          "graph {\n  %0 = input \"x\" : bf16[4,64] normal(0,1)\n  %1 = cast %0 : f32[4,64]\n"
                          "  %2 = exp %1 : f32[4,64]\n  %3 = cast %2 : bf16[4,64]\n  output \"y\" %3\n}")
                          .value();
  for (const char* target : {"cuda:sm_80", "hip:gfx942", "cpu:avx2"}) {
    const std::vector<Kernel> kernels = kernels_of(group, machine_with(std::string_view(target)), 2);
    ASSERT_FALSE(kernels.empty());
    std::string text = print(kernels[0]);
    const bool is_gpu = kernels[0].wave > 0;
    EXPECT_EQ(text.find("rounded exp(") != std::string::npos, is_gpu) << text;
    expect_round_trip(kernels[0]);
    if (!is_gpu) continue;
    text.replace(text.find("rounded exp("), 11, "rounded tanh");
    EXPECT_THAT(parse_kernel(text).status().ToString(), HasSubstr("only an exp of at most 32 bits"));
  }
}

// A text is refused if the verifier rejects its kernel.
TEST(KernelText, RefusesMovesThatAreNone) {
  const std::string text =
      testing::file_text(cat(WARPLOOM_SOURCE_DIR, "/tests/fuzz/seeds/kernel_text/exchange.kernel"));
  const auto error = [&](std::string_view from, std::string_view to) {
    std::string wrong = text;
    wrong.replace(wrong.find(from), from.size(), to);
    return parse_kernel(wrong).status().ToString();
  };
  EXPECT_EQ(error("exchange", "exchange"), "OK");
  EXPECT_THAT(error("convert %1 through p2[0] strides [64,1]", "convert %1"), HasSubstr("move to another wave"));
  EXPECT_THAT(error("barrier\n  %1", "%1"), HasSubstr("no barrier between"));
  EXPECT_THAT(error("through p2[0]", "through p0[0]"), HasSubstr("through shared memory of their dtype"));
  EXPECT_THAT(error("[3,2,4]", "[3,1,4]"), HasSubstr("no longer than what stays together"));
  EXPECT_THAT(error("[3,2,4]", "[3,2,2]"), HasSubstr("places without an element"));
  EXPECT_THAT(error("store %0 p2[0]", "store %0 p2[1]"), HasSubstr("are aligned"));
  EXPECT_THAT(error("[64,64] swizzle", "[63,65] swizzle"), HasSubstr("places without an element"));
  EXPECT_THAT(error("l0=257", "l0=2"), HasSubstr("must be independent"));
}

TEST(KernelText, SaysWhereAndWhat) {
  const std::vector<Kernel> kernels = kernels_of(*parse(testing::kGroups[0]), machine_with(0), 0);
  ASSERT_FALSE(kernels.empty());
  const std::string text = print(kernels[0]);
  EXPECT_THAT(parse_kernel("").status().ToString(), HasSubstr("expected 'kernel'"));
  EXPECT_THAT(parse_kernel(text.substr(0, text.size() - 2)).status().ToString(), HasSubstr("expected '}'"));
  EXPECT_THAT(parse_kernel(text + "x").status().ToString(), HasSubstr("nothing after '}'"));
  std::string wrong = text;
  wrong.replace(wrong.find("= map "), 6, "= mop ");
  EXPECT_THAT(parse_kernel(wrong).status().ToString(), HasSubstr("expected an instruction, found 'mop"));
  EXPECT_THAT(parse_kernel(wrong).status().ToString(), HasSubstr("line "));
  wrong = text;
  wrong.replace(wrong.find(" load p0["), 9, " load p9[");
  EXPECT_THAT(parse_kernel(wrong).status().ToString(), HasSubstr("expected an integer from 0 to 2, found '9["));
}

// A damaged text is either read or refused; it never causes a crash.
TEST(KernelText, SurvivesDamage) {
  std::mt19937_64 random(11);
  int read = 0, refused = 0;
  for (const char* group : testing::kGroups) {
    const std::vector<Kernel> kernels = kernels_of(*parse(group), machine_with(2), 1);
    ASSERT_FALSE(kernels.empty());
    const std::string text = print(kernels.back());
    for (int round = 0; round < 400; ++round) {
      std::string damaged = text;
      for (int hits = 0; hits <= round % 3; ++hits) {
        const size_t at = random() % damaged.size(), from = random() % damaged.size();
        if (random() % 3 == 0) {
          damaged.erase(at, random() % 20);
        } else if (random() % 2 == 0) {
          damaged.insert(at, text.substr(from % text.size(), random() % 20));
        } else {
          damaged[at] = text[from % text.size()];
        }
        if (damaged.empty()) damaged = "k";
      }
      const auto kernel = parse_kernel(damaged);
      (kernel.ok() ? read : refused) += 1;
      if (!kernel.ok()) {
        ASSERT_THAT(std::string(kernel.status().message()), HasSubstr("line "));
        continue;
      }
      const std::string again = print(*kernel);
      const auto second = parse_kernel(again);
      ASSERT_TRUE(second.ok()) << second.status() << "\n" << again;
      ASSERT_EQ(print(*second), again);
    }
  }
  EXPECT_GT(read, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace wl

// Which groups the GPU libraries cuBLASLt and hipBLASLt compute, and with which calls.
// tests/fake_gpu/libraries_gpu_test.py compares the results of the calls with the oracle.
#include "compiler/base/matmul.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "compiler/library/library.h"
#include "tests/unit/domain/domain_testing.h"

namespace wl {
namespace {

Machine gpu(const char* library = "cublaslt", const char* target = "cuda:sm_90a") {
  Machine machine = test_machine();
  machine.target = *target_named(target);
  machine.library = library_named(library);
  return machine;
}

std::optional<MatmulCall> call_of(const std::string& text, const Machine& machine = gpu()) {
  const Graph graph = graph_of(cat("graph {\n", text, "}\n"));
  const absl::StatusOr<Domain> domain = analyze(graph, machine);
  EXPECT_TRUE(domain.ok()) << domain.status();
  const std::optional<LibraryGroup> group = library_group(graph, *domain, machine);
  if (!group) return std::nullopt;
  const auto source = library_source(graph, *domain, *group, group->space.schedule(group->space.seeds[0]), machine);
  EXPECT_TRUE(source.ok()) << source.status();
  const auto call = parse_matmul(source->text);
  EXPECT_TRUE(call.ok()) << call.status();
  return call.ok() ? std::optional(*call) : std::nullopt;
}

// Returns the lines of a graph: a product %2 of 12 x 20 by 20 x 24 in `dtype`, followed by the lines `more`.
std::string after(const std::string& dtype, const std::string& more) {
  return cat("%0 = input \"a\" : ", dtype, "[12,20]\n%1 = input \"b\" : ", dtype,
             "[20,24]\n%2 = contract %0 %1 \"mk,kn->mn\" : ", dtype, "[12,24]\n", more);
}

TEST(Matmul, RowsOfTheLibraryAreColumnsOfTheResult) {
  const std::optional<MatmulCall> call = call_of(after("bf16", "output \"y\" %2\n"));
  ASSERT_TRUE(call);
  EXPECT_EQ(call->factors, DType::bf16);
  EXPECT_EQ(call->result, DType::bf16);
  EXPECT_EQ(call->a, (MatmulMatrix{1, 0, 24, 20, 24, 0}));
  EXPECT_EQ(call->b, (MatmulMatrix{0, 0, 20, 12, 20, 0}));
  EXPECT_EQ(call->d, (MatmulMatrix{2, 0, 24, 12, 24, 0}));
  EXPECT_FALSE(call->a_transposed || call->b_transposed || call->c || call->bias);
}

TEST(Matmul, FactorsAreTransposedAndBatched) {
  const std::optional<MatmulCall> call = call_of(
      "%0 = input \"a\" : f16[3,20,12]\n%1 = input \"b\" : f16[24,20]\n"
      "%2 = contract %0 %1 \"bkm,nk->bmn\" : f16[3,12,24]\noutput \"y\" %2\n");
  ASSERT_TRUE(call);
  EXPECT_TRUE(call->a_transposed && call->b_transposed);
  EXPECT_EQ(call->batch, 3);
  EXPECT_EQ(call->a.step, 0);  // stride 0: all products of the batch have the same left factor
  EXPECT_EQ(call->b, (MatmulMatrix{0, 0, 12, 20, 12, 240}));
  EXPECT_EQ(call->d.step, 288);
}

TEST(Matmul, WhatFollowsIsItsEpilogue) {
  const std::optional<MatmulCall> call =
      call_of(after("bf16",
                    "%3 = constant 0.5 : bf16[12,24]\n%4 = mul %2 %3 : bf16[12,24]\n%5 = input \"bias\" : bf16[24]\n"
                    "%6 = broadcast %5 dims=[1] : bf16[12,24]\n%7 = add %4 %6 : bf16[12,24]\n"
                    "%8 = input \"r\" : bf16[12,24]\n%9 = add %7 %8 : bf16[12,24]\n%10 = constant 0 : bf16[12,24]\n"
                    "%11 = max %9 %10 : bf16[12,24]\noutput \"y\" %11\n"));
  ASSERT_TRUE(call);
  EXPECT_EQ(call->alpha, 0.5);
  EXPECT_EQ(call->bias, (MatmulMatrix{2, 0, 24, 1, 24, 0}));
  EXPECT_EQ(call->c, (MatmulMatrix{3, 0, 24, 12, 24, 0}));
  EXPECT_EQ(call->function, MatmulFunction::kRelu);
  EXPECT_EQ(call->d.argument, 4);
}

TEST(Matmul, HalvesMayHaveResultsOfSingles) {
  const std::optional<MatmulCall> call = call_of(after("bf16", "%3 = cast %2 : f32[12,24]\noutput \"y\" %3\n"));
  ASSERT_TRUE(call);
  EXPECT_EQ(call->result, DType::f32);
}

TEST(Matmul, WhatALibraryCannotDoIsNone) {
  const std::string full = "f32[12,24]";
  const std::string others[] = {
      after("f32", "%3 = tanh %2 : f32[12,24]\noutput \"y\" %3\n"),
      // Not an epilogue: a factor after an addition, a function before an addition, and two added matrices.
      after("f32", cat("%3 = input \"r\" : ", full, "\n%4 = add %2 %3 : ", full, "\n%5 = constant 2 : ", full,
                       "\n%6 = mul %4 %5 : ", full, "\noutput \"y\" %6\n")),
      after("f32", cat("%3 = constant 0 : ", full, "\n%4 = max %2 %3 : ", full, "\n%5 = input \"r\" : ", full,
                       "\n%6 = add %4 %5 : ", full, "\noutput \"y\" %6\n")),
      after("f32", cat("%3 = input \"p\" : ", full, "\n%4 = input \"q\" : ", full, "\n%5 = add %2 %3 : ", full,
                       "\n%6 = add %5 %4 : ", full, "\noutput \"y\" %6\n")),
      // Not an epilogue: a bias for each row of the result.
      after("f32", cat("%3 = input \"bias\" : f32[12]\n%4 = broadcast %3 dims=[0] : ", full,
                       "\n%5 = add %2 %4 : ", full, "\noutput \"y\" %5\n")),
      after("f32", cat("%3 = cast %2 : i32[12,24]\n%4 = cast %3 : ", full, "\noutput \"y\" %4\n")),
      "%0 = input \"a\" : i8[12,20]\n%1 = input \"b\" : i8[20,24]\n%2 = contract %0 %1 \"mk,kn->mn\" : i32[12,24]\n"
      "output \"y\" %2\n",
      // Not one call: two batch axes that are in another order in each factor.
      "%0 = input \"a\" : f32[2,3,12,20]\n%1 = input \"b\" : f32[3,2,20,24]\n"
      "%2 = contract %0 %1 \"abmk,bakn->abmn\" : f32[2,3,12,24]\noutput \"y\" %2\n",
  };
  for (const std::string& text : others) EXPECT_FALSE(call_of(text)) << text;
}

TEST(Matmul, ALibraryIsOfOneFamily) {
  const std::string text = after("f32", "output \"y\" %2\n");
  EXPECT_TRUE(call_of(text, gpu("hipblaslt", "hip:gfx942")));
  EXPECT_FALSE(call_of(text, gpu("hipblaslt", "cuda:sm_90a")));
  EXPECT_FALSE(call_of(text, gpu("onednn", "cuda:sm_90a")));
  EXPECT_FALSE(call_of(text, gpu("cublaslt", "sim:cuda")));
  EXPECT_FALSE(call_of(text, gpu("cublaslt", "cpu:avx2")));
}

TEST(Matmul, EveryAlgorithmIsAPlan) {
  const Machine machine = gpu();
  const Graph graph = graph_of(cat("graph {\n", after("f32", "output \"y\" %2\n"), "}\n"));
  const Domain domain = *analyze(graph, machine);
  const std::optional<LibraryGroup> group = library_group(graph, domain, machine);
  ASSERT_TRUE(group);
  std::set<std::string> texts, entries;
  group->space.enumerate([&](const Point& point) {
    const std::string plan = group->space.text(point);
    EXPECT_EQ(library_of_plan(plan), machine.library) << plan;
    EXPECT_EQ(*group->space.parse(plan), point);
    const Source source = *library_source(graph, domain, *group, group->space.schedule(point), machine);
    texts.insert(source.text);
    entries.insert(source.entry);
    return true;
  });
  EXPECT_EQ(texts.size(), static_cast<size_t>(kMostAlgorithms));
  EXPECT_EQ(entries.size(), texts.size());
}

}  // namespace
}  // namespace wl

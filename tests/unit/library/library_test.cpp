// Which groups the kernel library oneDNN computes, how the epilogues of these groups are recognised, and which kernels
// are offered for them. The test e2e.libraries compares the results of the kernels with the oracle.
#include "compiler/library/library.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/domain/domain_testing.h"

namespace wl {
namespace {

Machine with_library(int threads = 2) {
  Machine machine = test_machine();
  machine.target = *target_named("cpu:avx2");
  machine.threads = threads;
  machine.library = library_named("onednn");
  return machine;
}

struct Told {
  Graph graph;
  Domain domain;
  std::optional<Product> product;
};
Told told(const std::string& text) {
  Told out{graph_of(cat("graph {\n", text, "}\n")), {}, {}};
  absl::StatusOr<Domain> domain = analyze(out.graph, with_library());
  EXPECT_TRUE(domain.ok()) << domain.status();
  out.domain = *std::move(domain);
  out.product = product_of(out.graph, out.domain);
  return out;
}

// Returns the lines of a graph: a product %2 of 12 x 20 by 20 x 24, followed by the lines `more`.
std::string after_product(const std::string& more) {
  return cat("%0 = input \"a\" : f32[12,20]\n%1 = input \"b\" : f32[20,24]\n",
             "%2 = contract %0 %1 \"mk,kn->mn\" : f32[12,24]\n", more);
}

Told told_after(const std::string& more) {
  return told(after_product(more));
}

// Returns the lines of a graph that compute 0.5 * x * (1 + inner(%8)), preceded by `argument`, the lines that compute
// %8.
std::string gelu(const std::string& x, const std::string& argument, const std::string& inner) {
  return cat(argument, "%9 = ", inner, " %8 : f32[12,24]\n%10 = constant 1 : f32[12,24]\n",
             "%11 = add %9 %10 : f32[12,24]\n%12 = mul ", x, " %11 : f32[12,24]\n%13 = constant 0.5 : f32[12,24]\n",
             "%14 = mul %12 %13 : f32[12,24]\noutput \"y\" %14\n");
}

TEST(Product, ActivationsAreToldByTheirValues) {
  struct Case {
    const char* name;
    std::string text;
    Activation what;
    double alpha, beta;
  };
  const std::string erf =
      "%3 = constant 0.70710677 : f32[12,24]\n%4 = constant 0 : f32[12,24]\n%5 = constant 0 : f32[12,24]\n"
      "%6 = constant 0 : f32[12,24]\n%7 = constant 0 : f32[12,24]\n%8 = mul %2 %3 : f32[12,24]\n";
  const Case cases[] = {
      {"relu", "%3 = constant 0 : f32[12,24]\n%4 = max %2 %3 : f32[12,24]\noutput \"y\" %4\n", Activation::kRelu, 0, 0},
      {"relu6",
       "%3 = constant 0 : f32[12,24]\n%4 = max %2 %3 : f32[12,24]\n%5 = constant 6 : f32[12,24]\n"
       "%6 = min %4 %5 : f32[12,24]\noutput \"y\" %6\n",
       Activation::kClip, 0, 6},
      {"tanh", "%3 = tanh %2 : f32[12,24]\noutput \"y\" %3\n", Activation::kTanh, 0, 0},
      {"sigmoid", "%3 = sigmoid %2 : f32[12,24]\noutput \"y\" %3\n", Activation::kSigmoid, 0, 0},
      {"silu", "%3 = sigmoid %2 : f32[12,24]\n%4 = mul %2 %3 : f32[12,24]\noutput \"y\" %4\n", Activation::kSwish, 1,
       0},
      {"gelu", gelu("%2", erf, "erf"), Activation::kGeluErf, 0, 0},
      {"scale", "%3 = constant 0.125 : f32[12,24]\n%4 = mul %2 %3 : f32[12,24]\noutput \"y\" %4\n", Activation::kLinear,
       0.125, 0},
  };
  for (const Case& one : cases) {
    const Told is = told_after(one.text);
    ASSERT_TRUE(is.product && is.product->post.size() == 1 && is.product->post[0].activation) << one.name;
    EXPECT_EQ(is.product->post[0].activation->what, one.what) << one.name;
    EXPECT_NEAR(is.product->post[0].activation->alpha, one.alpha, 1e-6) << one.name;
    EXPECT_NEAR(is.product->post[0].activation->beta, one.beta, 1e-6) << one.name;
  }
}

TEST(Product, StepsAreInTheOrderOfTheGroup) {
  const Told is = told_after(
      "%3 = input \"bias\" : f32[24]\n%4 = broadcast %3 dims=[1] : f32[12,24]\n%5 = add %2 %4 : f32[12,24]\n"
      "%6 = tanh %5 : f32[12,24]\n%7 = input \"r\" : f32[12,24]\n%8 = sub %6 %7 : f32[12,24]\noutput \"y\" %8\n");
  ASSERT_TRUE(is.product);
  ASSERT_EQ(is.product->post.size(), 3u);
  EXPECT_EQ(is.product->post[0].op, Op::add);
  EXPECT_EQ(is.product->post[1].activation->what, Activation::kTanh);
  EXPECT_EQ(is.product->post[2].op, Op::sub);
}

TEST(Product, WhatALibraryCannotDoIsNone) {
  const char* const others[] = {
      "%3 = sin %2 : f32[12,24]\noutput \"y\" %3\n",                                    // oneDNN has no sine
      "%3 = input \"r\" : f32[12,24]\n%4 = sub %3 %2 : f32[12,24]\noutput \"y\" %4\n",  // subtracts the product
      "%3 = input \"r\" : f32[12,24]\n%4 = exp %3 : f32[12,24]\n%5 = add %2 %4 : f32[12,24]\noutput \"y\" %5\n",
      "%3 = tanh %2 : f32[12,24]\noutput \"y\" %3\noutput \"z\" %2\n",  // stores two results
      "%3 = cast %2 : f16[12,24]\noutput \"y\" %3\n",
  };
  for (const char* const text : others) EXPECT_FALSE(told_after(text).product) << text;
  const char* const halves =
      "%0 = input \"a\" : f16[12,20]\n%1 = input \"b\" : f16[20,24]\n%2 = contract %0 %1 \"mk,kn->mn\" : f16[12,24]\n"
      "output \"y\" %2\n";
  EXPECT_FALSE(told(halves).product);
  EXPECT_FALSE(told("%0 = input \"x\" : f32[4,8]\n%1 = exp %0 : f32[4,8]\noutput \"y\" %1\n").product);
}

std::string convolution_text(const std::string& pad) {
  return cat("%0 = input \"x\" : f32[6,19,19]\n%1 = input \"w\" : f32[8,6,3,3]\n", "%2 = pad %0 low=[0,", pad,
             "] high=[0,1,1] value=0 : f32[6,21,21]\n%3 = window %2 axes=[1,2] params=[3,2,1,3,2,1] : "
             "f32[6,10,10,3,3]\n%4 = contract %3 %1 \"kmoli,nkli->nmo\" : f32[8,10,10]\noutput \"y\" %4\n");
}

TEST(Product, WindowsOverAnImageAreConvolutions) {
  const Told is = told(convolution_text("1,1"));
  ASSERT_TRUE(is.product && is.product->convolution);
  for (const SlidingLoop* loop : {&is.product->height, &is.product->width}) {
    EXPECT_EQ(loop->extent, 19);
    EXPECT_EQ(loop->stride, 2);
    EXPECT_EQ(loop->dilation, 1);
    EXPECT_EQ(loop->before, 1);
  }
  EXPECT_EQ(is.product->right.offset, 0);
}

std::optional<LibraryGroup> kernels(const Told& of, const Machine& machine) {
  return library_group(of.graph, of.domain, machine);
}

TEST(Library, NeedsAMachineThatHasIt) {
  const Told is = told_after("output \"y\" %2\n");
  EXPECT_TRUE(kernels(is, with_library()));
  Machine without = with_library();
  without.library = nullptr;
  EXPECT_FALSE(kernels(is, without));
  Machine simulated = with_library();
  simulated.target = *target_named("sim:cuda");
  EXPECT_FALSE(kernels(is, simulated));
}

TEST(Library, EveryPlanIsADistinctSource) {
  const Told is = told_after("output \"y\" %2\n");
  const Machine machine = with_library();
  const std::optional<LibraryGroup> library = kernels(is, machine);
  ASSERT_TRUE(library);
  for (const Axis& axis : library->space.axes) EXPECT_TRUE(belongs_to(*axis.choice, "onednn", false)) << axis.name;
  std::set<std::string> texts;
  int64_t points = 0;
  library->space.enumerate([&](const Point& point) {
    const std::string plan = library->space.text(point);
    EXPECT_EQ(library_of_plan(plan), machine.library) << plan;
    EXPECT_TRUE(library->space.parse(plan).ok()) << plan;
    const auto source = library_source(is.graph, is.domain, *library, library->space.schedule(point), machine);
    EXPECT_TRUE(source.ok()) << source.status();
    EXPECT_EQ(source->library, "onednn");
    EXPECT_EQ(source->text.find("WL_ENTRY"), std::string::npos);
    texts.insert(source->text);
    ++points;
    return true;
  });
  // There are three ways to divide the product among threads (by rows, by columns, not at all), each with two formats
  // of the tensors (their own and the one that oneDNN chooses).
  EXPECT_EQ(points, 6);
  EXPECT_EQ(std::ssize(texts), points);
}

// If two threads divide the columns of a weight that has three panels of 64 columns, one thread computes one panel and
// the other computes two: no panel is split.
TEST(Library, PanelsAreAFormatOfTheLibrary) {
  const Told is = told(
      "%0 = input \"a\" : f32[12,32]\n%1 = input \"b\" : f32[3,32,64]\n%2 = contract %0 %1 \"mk,pkq->mpq\" : "
      "f32[12,3,64]\n%3 = reshape %2 : f32[12,192]\noutput \"y\" %3\n");
  const Machine machine = with_library();
  const std::optional<LibraryGroup> library = kernels(is, machine);
  ASSERT_TRUE(library);
  const auto plan = library->space.parse(cat(library->space.prefix, " threads=2 divided=columns own_format=0"));
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto source = library_source(is.graph, is.domain, *library, library->space.schedule(*plan), machine);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_NE(source->text.find("{1,33,2,502,0,{32,64},{64,1}}"), std::string::npos) << source->text;
  EXPECT_NE(source->text.find("{1,33,2,502,0,{32,128},{64,1}}"), std::string::npos) << source->text;
  EXPECT_NE(source->text.find("{1,{0,2048,64}}"), std::string::npos) << source->text;
}

}  // namespace
}  // namespace wl

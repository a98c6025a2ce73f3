#include "compiler/ir/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/ir/build.h"

namespace wl {
namespace {

constexpr std::string_view kExample = R"(graph {
  %0 = input "x" : f32[4,8] normal(0,1)
  %1 = reduce_max %0 axes=[1] : f32[4]
  %2 = broadcast %1 dims=[0] : f32[4,8]
  %3 = sub %0 %2 : f32[4,8]
  %4 = constant 0.1 : f32[4,8]
  %5 = mul %3 %4 : f32[4,8]
  %6 = contract %5 %0 "mk,nk->mn" : f32[4,4]
  %7 = pad %6 low=[0,1] high=[2,0] value=-inf : f32[6,5]
  %8 = input "i \"\\\x01" : i64[2,5] uniform(-3,3)
  %9 = take_along %7 %8 axis=[0] : f32[2,5]
  %10 = input "b" : b1[]
  %11 = input "l" : f16[2] literal(0.5,nan)
  %12 = contract %5 %0 "mk,nk->mn" tf32 : f32[4,4]
  output "y" %9
  output "z" %3
}
)";

TEST(Text, CanonicalTextRoundTrips) {
  auto graph = parse(kExample);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(print(*graph), kExample);
  EXPECT_EQ(print_node(*graph, 4), "%4 = constant 0.1 : f32[4,8]");
}

// A literal of more than 32 floats is printed as bytes, and is read back as the same values as its decimals. Integers
// are always printed as decimals, since graph hashes depend on their text.
TEST(Text, ManyFloatsAreBytes) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32}) {
    Fill fill;
    std::string decimals;
    for (int i = 0; i < 33; ++i) {
      fill.literal.push_back(i == 7 && is_float(dtype) ? -std::numeric_limits<double>::infinity() : i - 16);
      append(&decimals, i == 0 ? "" : ",", fill.literal.back());
    }
    if (dtype == DType::f64) fill.literal[3] = 0.1;
    Builder b;
    b.output("y", b.input("x", dtype, {33}, fill));
    const Graph graph = b.finish().value();
    const std::string text = print(graph);
    EXPECT_EQ(text.find("bytes(\"") != std::string::npos, is_float(dtype)) << text;
    EXPECT_EQ(parse(text).value(), graph) << text;
    const auto spelled = parse(
        cat("graph {\n%0 = input \"x\" : ", type_text(dtype, {33}), " literal(", decimals, ")\noutput \"y\" %0\n}\n"));
    ASSERT_TRUE(spelled.ok()) << spelled.status();
    if (dtype != DType::f64) {
      EXPECT_EQ(*spelled, graph);
    }
  }
}

TEST(Text, CommentsSpacesAndSparseNumbersAreRead) {
  auto graph = parse(
      "# a\n\ngraph {  # b\n%7=input \"x\":f32[ 2 , 3 ]\n %3 = neg   %7 : f32[2,3]#c\r\noutput \"y\" %3\n}\n\n# end");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(print(*graph),
            "graph {\n  %0 = input \"x\" : f32[2,3] normal(0,1)\n  %1 = neg %0 : f32[2,3]\n  output \"y\" %1\n}\n");
}

struct BadText {
  std::string body, message;
};

TEST(Text, IntegersThatDoublesDoNotHoldAreSums) {
  const auto read = [](std::string_view number, std::string_view type) {
    return parse(cat("graph {\n%0 = constant ", number, " : ", type, "\noutput \"y\" %0\n}\n"));
  };
  const auto graph = read("6364136223846793005", "i64[2]");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(print(*graph),
            "graph {\n  %0 = constant 6364136223846791168 : i64[2]\n  %1 = constant 1837 : i64[2]\n"
            "  %2 = add %0 %1 : i64[2]\n  output \"y\" %2\n}\n");
  EXPECT_EQ(parse(print(*graph)).value(), *graph);
  EXPECT_EQ(read("-9007199254740993", "i64[]")->nodes.size(), 3u);
  EXPECT_EQ(read("18446744073709551615", "u64[]")->nodes.size(), 3u);
  EXPECT_EQ(read("9007199254740994", "i64[]")->nodes.size(), 1u);
  EXPECT_EQ(read("9007199254740993", "f64[]")->nodes.size(), 1u);
  const auto filled = parse("graph {\n%0 = input \"x\" : i64[1] literal(9007199254740993)\noutput \"y\" %0\n}\n");
  EXPECT_THAT(filled.status().message(), ::testing::HasSubstr("9007199254740993 has more digits than a double holds"));
}

TEST(Text, MisuseNamesTheLine) {
  const BadText cases[] = {
      {"%0 = neg %7 : f32[2]", "line 2: %7 is used before it is defined (a graph must not contain a cycle)"},
      {"%0 = neg %0 : f32[2]", "line 2: %0 is used before it is defined (a graph must not contain a cycle)"},
      {"%0 = nag %0 : f32[2]", "line 2: unknown op 'nag'"},
      {"%0 = input \"x\" : f33[2]", "line 2: unknown dtype 'f33'"},
      {"%0 = input \"x\" : f32[-2]", "line 2: input: shape [-2] has a negative extent"},
      {"%0 = input \"x\" : f32[9999999999,9999999999]",
       "line 2: input: shape [9999999999,9999999999] has too many elements; the limit is 2^56"},
      {"%0 = input \"x\" : f32[99999999999999999999]",
       "line 2: expected an integer of 64 bits, found '99999999999999999999]'"},
      {"%0 = input \"x\" : f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "line 2: input: rank 17 is above the limit of 16"},
      {"%0 = input \"x : f32[2]", "line 2: a quoted name does not end on its line"},
      {"%0 = input \"x\" : f32[2] junk", "line 2: expected normal, uniform, literal or bytes, found 'junk'"},
      {"%0 = input \"x\" : f32[2] bytes(\"AACAP==\")", "line 2: expected base64 of values of 4 bytes each"},
      {"%0 = input \"x\" : f32[2] bytes(\"AACA\")", "line 2: expected base64 of values of 4 bytes each"},
      {"%0 = input \"x\" : f64[1] bytes(\"AACAPw==\")", "line 2: expected base64 of values of 8 bytes each"},
      {"%0 = input \"x\" : i32[1] bytes(\"AACAPw==\")", "line 2: only the values of floats can be given as bytes"},
      {"%0 = input \"x\" : f32[2] bytes(\"AACAPw==\")", "line 2: input: literal fill has 1 values, shape [2] needs 2"},
      {"%0 = input \"x\" : f32[2] normal(0,1) 7", "line 2: expected the end of the line, found '7'"},
      {"%0 = input \"x\" : f32[2]\n%0 = neg %0 : f32[2]", "line 3: %0 is defined twice"},
      {"%0 = input \"x\" : f32[2]\n%1 = neg %0 : f32[3]", "line 3: neg: expected type f32[2], found f32[3]"},
      {"%0 = input \"x\" : f32[2]\n%1 = add %0 : f32[2]", "line 3: add: expected 2 operands, found 1"},
      {"%0 = input \"x\" : f16[2,2]\n%1 = contract %0 %0 \"mk,kn->mn\" tf32 : f16[2,2]",
       "line 3: contract: tf32 is of factors of f32, not of f16"},
      {"%0 = input \"x\" : f32[2]\noutput \"x\" %1",
       "line 3: %1 is used before it is defined (a graph must not contain a cycle)"},
      {"%0 = input \"x\" : f32[2]", "the graph has no output; expected at least one"},
      {"%0 = input \"x\" : f32[2]\noutput \"y\" %0\noutput \"y\" %0",
       "output \"y\": both %0 and %0 have this name; output names must be unique"},
      {"%0 = input \"x\" : f32[2]\n%1 = input \"x\" : f32[2]\noutput \"y\" %0",
       "%1 = input \"x\": the name is already taken by input %0; input names must be unique"},
  };
  for (const BadText& misuse : cases) {
    auto graph = parse("graph {\n" + misuse.body + "\n}\n");
    ASSERT_FALSE(graph.ok()) << misuse.body;
    EXPECT_EQ(graph.status().message(), misuse.message);
  }
}

TEST(Text, BrokenFramesAreErrors) {
  for (std::string_view text : {"", "graph", "grap {\n}", "graph {\n", "graph {\n}\n}", "graph { }"}) {
    auto graph = parse(text);
    EXPECT_FALSE(graph.ok()) << text;
    EXPECT_THAT(std::string(graph.status().message()), ::testing::StartsWith("line ")) << text;
  }
}

TEST(Text, HashIgnoresNamesAndFillsButNothingElse) {
  auto make = [](std::string x, std::string y, double mean, Op op) {
    Builder b;
    NodeId in = b.input(x, DType::f32, {3}, Fill{.mean = mean});
    b.output(y, b.elementwise(op, {in}));
    return graph_hash(*b.finish());
  };
  EXPECT_EQ(make("x", "y", 0, Op::exp), make("u", "v", 3, Op::exp));
  EXPECT_NE(make("x", "y", 0, Op::exp), make("x", "y", 0, Op::exp2));
}

}  // namespace
}  // namespace wl

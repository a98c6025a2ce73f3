// Conformance of kOps: every elementwise op and every reduction is lowered, printed, compiled and run, for every dtype
// that it takes and for every CPU row of kTargets that this machine can run. Inputs are special numbers: both zeros,
// denormals, infinities, NaN, the largest and smallest of each type. A row that is added to kOps is tested without
// further work.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "compiler/ir/text.h"
#include "tests/conformance/by_compilers.h"
#include "tests/unit/fuzz.h"

namespace wl {
namespace {

constexpr DType kDTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16,     DType::i64,
                             DType::i32, DType::i16, DType::i8,  DType::u64,      DType::u32,
                             DType::u16, DType::u8,  DType::b1,  DType::f8e4m3fn, DType::f8e5m2};
static_assert(std::size(kDTypes) == kDTypeCount);

// Returns numbers of a dtype for which ops often give wrong results.
std::vector<double> special(DType dtype, int arity) {
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> out;
  if (dtype == DType::b1) return {0, 1};
  if (is_float(dtype)) {
    const double tiny = dtype == DType::f64   ? 4e-310
                        : size_of(dtype) == 1 ? info(dtype).smallest
                        : dtype == DType::f16 ? 3e-6
                                              : 1e-40;
    out = {0, 1, kNan, kInf, -kInf, -2.5, tiny, -0.0, 0.3, 3};
    if (arity < 3)
      for (double x : {-tiny, -1.0, 0.5, 1.5, 88.0, -104.0, 6e4, -6e4, 1e-3, 2.0}) out.push_back(x);
  } else {
    out = {0, 1, 2, 3, 100, 127};
    if (name_of(dtype)[0] == 'i')
      for (double x : {-1.0, -3.0, -128.0}) out.push_back(x);
    if (dtype == DType::u8) out.push_back(255);
    if (size_of(dtype) >= 4) out.push_back(46000);
  }
  for (double& x : out) x = round_to(dtype, x);
  return out;
}

Node input(int number, DType dtype, Shape shape, std::vector<double> values) {
  Node node{.op = Op::input, .dtype = dtype, .shape = std::move(shape), .text = cat("x", number)};
  node.fill.literal = std::move(values);
  return node;
}

// Returns a graph with all combinations of the special numbers as `arity` inputs, and an output for every op that takes
// these inputs. `condition`: the first operand is b1. The graph is empty when there is no such op.
Graph elementwise_graph(DType dtype, int arity, bool condition, std::set<Op>& tested) {
  Graph graph;
  const std::vector<double> values = special(dtype, arity);
  const auto values_of = [&](int operand) { return condition && operand == 0 ? std::vector<double>{0, 1} : values; };
  int64_t n = 1;
  for (int k = 0; k < arity; ++k) n *= static_cast<int64_t>(values_of(k).size());
  int64_t stride = 1;
  for (int k = 0; k < arity; ++k) {
    const std::vector<double> mine = values_of(k);
    std::vector<double> literal;
    for (int64_t i = 0; i < n; ++i) literal.push_back(mine[i / stride % static_cast<int64_t>(mine.size())]);
    stride *= static_cast<int64_t>(mine.size());
    graph.nodes.push_back(input(k, condition && k == 0 ? DType::b1 : dtype, {n}, std::move(literal)));
  }
  for (const OpInfo& row : ops()) {
    if (row.cls != OpClass::kElementwise || row.arity != arity) continue;
    std::vector<DType> results = {dtype};
    if (row.result == ResultType::kAttr) results.assign(std::begin(kDTypes), std::end(kDTypes));
    for (DType result : results) {
      if (row.result == ResultType::kAttr && result == dtype) continue;
      Node node{.op = row.op, .dtype = result};
      for (int k = 0; k < arity; ++k) node.operands.push_back(k);
      if (!infer(graph.nodes, node).ok()) continue;
      // Integer powers are left out, since those with non-integer results are undefined.
      if (row.op == Op::pow && !is_float(dtype)) continue;
      graph.nodes.push_back(std::move(node));
      graph.outputs.push_back({cat(row.name, ".", name_of(result)), static_cast<NodeId>(graph.nodes.size()) - 1});
      tested.insert(row.op);
    }
  }
  return graph;
}

// Returns a graph that reduces rows, or columns, each of which holds ordinary numbers and one special number.
Graph reduce_graph(DType dtype, bool rows, std::set<Op>& tested) {
  Graph graph;
  std::vector<double> values = special(dtype, 1);
  // Denormals are left out, because the error bound of a product does not include every rounding of a denormal.
  std::erase_if(values, [](double x) { return x != 0 && std::fabs(x) < 1e-5; });
  const int64_t kept = static_cast<int64_t>(values.size()), reduced = 37;
  std::vector<double> literal;
  for (int64_t r = 0; r < kept; ++r)
    for (int64_t i = 0; i < reduced; ++i) {
      const double ordinary = is_float(dtype) ? 0.75 + 0.01 * static_cast<double>(i) : static_cast<double>(i % 2);
      literal.push_back(round_to(dtype, i == r % reduced ? values[r] : ordinary));
    }
  if (!rows) {
    std::vector<double> columns(literal.size());
    for (int64_t r = 0; r < kept; ++r)
      for (int64_t i = 0; i < reduced; ++i) columns[i * kept + r] = literal[r * reduced + i];
    literal = columns;
  }
  graph.nodes.push_back(input(0, dtype, rows ? Shape{kept, reduced} : Shape{reduced, kept}, std::move(literal)));
  for (const OpInfo& row : ops()) {
    if (row.cls != OpClass::kReduce) continue;
    Node node{.op = row.op, .dtype = dtype, .operands = {0}, .ints = {rows ? 1 : 0}};
    if (!infer(graph.nodes, node).ok()) continue;
    graph.nodes.push_back(std::move(node));
    graph.outputs.push_back({std::string(row.name), static_cast<NodeId>(graph.nodes.size()) - 1});
    tested.insert(row.op);
  }
  return graph;
}

class Conformance : public ::testing::TestWithParam<std::string> {};

void expect_right(const std::vector<Graph>& graphs, const std::string& target) {
  testing::CompiledChecks checks("conformance_" + target.substr(4));
  int kernels = 0;
  for (const Graph& graph : graphs) {
    ASSERT_TRUE(verify(graph).ok()) << verify(graph) << "\n" << print(graph);
    testing::add_by_compilers(checks, graph, target, graph.nodes[0].dtype == DType::f32, "", &kernels);
    if (::testing::Test::HasFatalFailure()) return;
  }
  checks.expect_right();
}

TEST_P(Conformance, ElementwiseOps) {
  std::vector<Graph> graphs;
  std::set<Op> tested;
  for (DType dtype : kDTypes)
    for (int arity = 1; arity <= 3; ++arity)
      for (bool condition : {false, true}) {
        if (condition && dtype == DType::b1) continue;
        Graph graph = elementwise_graph(dtype, arity, condition, tested);
        if (!graph.outputs.empty()) graphs.push_back(std::move(graph));
      }
  for (const OpInfo& row : ops()) EXPECT_TRUE(row.cls != OpClass::kElementwise || tested.contains(row.op)) << row.name;
  // The first target is tested with every op and dtype. In short runs, all other targets are tested with a sample.
  if (GetParam() != testing::runnable_targets().front()) graphs = testing::sampled(graphs);
  expect_right(graphs, GetParam());
}

TEST_P(Conformance, Reductions) {
  std::vector<Graph> graphs;
  std::set<Op> tested;
  for (DType dtype : kDTypes)
    for (bool rows : {true, false}) {
      Graph graph = reduce_graph(dtype, rows, tested);
      if (!graph.outputs.empty()) graphs.push_back(std::move(graph));
    }
  for (const OpInfo& row : ops()) EXPECT_TRUE(row.cls != OpClass::kReduce || tested.contains(row.op)) << row.name;
  expect_right(graphs, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Targets, Conformance, ::testing::ValuesIn(testing::runnable_targets()),
                         [](const ::testing::TestParamInfo<std::string>& target) { return target.param.substr(4); });

}  // namespace
}  // namespace wl

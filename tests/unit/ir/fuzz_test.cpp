// Random graphs against the oracle, the text form, the rules and the verifier. A failure names its seed.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <random>

#include "compiler/ir/build.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/rules.h"
#include "compiler/ir/text.h"
#include "random_graph.h"

namespace wl {
namespace {

// Seeds 0, 1, ...; WARPLOOM_FUZZ_GRAPHS asks for a longer run.
const uint64_t kGraphs = [] {
  const char* wanted = std::getenv("WARPLOOM_FUZZ_GRAPHS");
  return wanted == nullptr ? uint64_t{3000} : std::strtoull(wanted, nullptr, 10);
}();

std::vector<std::vector<Value>> lazy_outputs(const Graph& graph, uint64_t seed) {
  std::vector<Query> queries;
  for (const Output& output : graph.outputs) {
    Query& query = queries.emplace_back(Query{output.node, {}});
    for (int64_t i = 0; i < elements(graph.nodes[output.node].shape); ++i) query.indices.push_back(i);
  }
  auto values = evaluate(graph, generated_inputs(graph, seed), queries);
  EXPECT_TRUE(values.ok()) << values.status();
  return values.ok() ? *values : std::vector<std::vector<Value>>(queries.size());
}

bool agrees(double got, double expected, double bound) {
  if (std::isinf(bound) || got == expected || (std::isnan(got) && std::isnan(expected))) return true;
  return std::fabs(got - expected) <= bound;
}

TEST(Fuzz, TextRoundTrips) {
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    Graph graph = random_graph(seed);
    std::string text = print(graph);
    auto again = parse(text);
    ASSERT_TRUE(again.ok()) << again.status() << "\nseed " << seed << "\n" << text;
    EXPECT_EQ(*again, graph) << "seed " << seed;
    ASSERT_EQ(print(*again), text) << "seed " << seed;
    EXPECT_EQ(graph_hash(*again), graph_hash(graph));
  }
}

TEST(Fuzz, MutatedTextNeverCrashesAndWhatIsReadIsCanonical) {
  int read = 0;
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    std::mt19937_64 random(seed);
    std::string text = print(random_graph(seed));
    for (uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
      size_t at = random() % text.size();
      constexpr std::string_view kBytes = "0123456789-%[],:\"\n #x()=}";
      switch (random() % 4) {
        case 0:
          text[at] = kBytes[random() % kBytes.size()];
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 12));
          break;
        default:
          text[at] = static_cast<char>(random());
      }
    }
    auto graph = parse(text);
    if (!graph.ok()) continue;
    ++read;
    std::string canonical = print(*graph);
    auto again = parse(canonical);
    ASSERT_TRUE(again.ok()) << again.status() << "\nseed " << seed << "\n" << canonical;
    EXPECT_EQ(print(*again), canonical) << "seed " << seed;
  }
  EXPECT_GT(read, 50);
}

TEST(Fuzz, LazyOracleComputesWhatAnEagerOneDoes) {
  int64_t compared = 0;
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    Graph graph = random_graph(seed);
    auto lazy = lazy_outputs(graph, seed);
    auto eager = eager_outputs(graph, seed, false);
    for (size_t o = 0; o < lazy.size(); ++o) {
      for (size_t i = 0; i < lazy[o].size(); ++i) {
        const Value& v = lazy[o][i];
        if (std::isinf(v.bound) || std::isinf(v.value)) continue;  // overflow depends on the dtype's range
        ++compared;
        const bool floats = is_float(graph.nodes[graph.outputs[o].node].dtype);
        ASSERT_TRUE(agrees(eager[o][i], v.value, floats ? 1e-9 * std::fabs(v.value) + v.bound * 1e-3 : v.bound))
            << "seed " << seed << " output " << o << " element " << i << ": lazy " << v.value << " +- " << v.bound
            << ", eager " << eager[o][i] << "\n"
            << print(graph);
      }
    }
  }
  EXPECT_GT(compared, 30000);
}

TEST(Fuzz, ARoundedEvaluationStaysWithinTheBound) {
  int64_t compared = 0, close = 0;
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    Graph graph = random_graph(seed);
    auto lazy = lazy_outputs(graph, seed);
    auto eager = eager_outputs(graph, seed, true);
    for (size_t o = 0; o < lazy.size(); ++o) {
      for (size_t i = 0; i < lazy[o].size(); ++i) {
        const Value& v = lazy[o][i];
        if (std::isinf(v.bound)) continue;
        ++compared;
        close += v.bound <= 1e-3 * std::fabs(v.value) + 1e-3;
        ASSERT_TRUE(agrees(eager[o][i], v.value, v.bound))
            << "seed " << seed << " output " << o << " element " << i << ": exact " << v.value << " +- " << v.bound
            << ", rounded " << eager[o][i] << "\n"
            << print(graph);
      }
    }
  }
  EXPECT_GT(compared, 30000);
  EXPECT_GT(close, compared * 3 / 4) << "bounds are too wide to mean anything";
}

void expect_same_values(const Graph& before, const Graph& after, uint64_t seed, std::string_view rule) {
  auto a = lazy_outputs(before, seed), b = lazy_outputs(after, seed);
  ASSERT_EQ(a.size(), b.size());
  for (size_t o = 0; o < a.size(); ++o) {
    ASSERT_EQ(a[o].size(), b[o].size()) << "seed " << seed << " rule " << rule;
    for (size_t i = 0; i < a[o].size(); ++i) {
      // The sign of a zero is not promised, so neither is that of its reciprocal.
      if (std::isinf(a[o][i].value) && std::isinf(b[o][i].value)) continue;
      // What overflows on its way to a denormal may become zero (docs/numerics.md).
      const DTypeInfo& type = info(before.nodes[before.outputs[o].node].dtype);
      const double denormal = type.is_float ? type.smallest / type.unit_roundoff : 0;
      ASSERT_TRUE(std::isinf(a[o][i].bound) ||
                  agrees(b[o][i].value, a[o][i].value, a[o][i].bound + b[o][i].bound + denormal))
          << "seed " << seed << " rule " << rule << " output " << o << " element " << i << ": " << a[o][i].value
          << " became " << b[o][i].value << "\n"
          << print(before) << print(after);
    }
  }
}

TEST(Fuzz, EveryRuleAloneKeepsValuesAndFires) {
  std::set<std::string, std::less<>> all;
  for (const Rule& rule : rules()) all.emplace(rule.name);
  std::map<std::string, int> fired;
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    Graph graph = random_graph(seed);
    std::set<std::string, std::less<>> together;
    auto simple = simplify(graph, {}, &together);
    ASSERT_TRUE(simple.ok()) << simple.status() << "\nseed " << seed << "\n" << print(graph);
    expect_same_values(graph, *simple, seed, "all");
    for (const std::string& name : all) {
      auto others = all;
      others.erase(name);
      std::set<std::string, std::less<>> alone;
      int rounds = 0;
      auto changed = simplify(graph, others, &alone, &rounds);
      ASSERT_LE(rounds, 6) << "seed " << seed << " rule " << name << "\n" << print(graph);
      ASSERT_TRUE(changed.ok()) << changed.status() << "\nseed " << seed << " rule " << name;
      if (alone.empty()) continue;
      ++fired[name];
      expect_same_values(graph, *changed, seed, name);
    }
    if (HasFailure()) return;
  }
  for (const std::string& name : all)
    EXPECT_GE(fired[name], 2) << name << " fired in too few random graphs to be tested";
}

TEST(Fuzz, SimplifyIsIdempotentAndKeepsInputs) {
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    Graph graph = random_graph(seed);
    int rounds = 0;
    auto once = simplify(graph, {}, nullptr, &rounds);
    ASSERT_TRUE(once.ok());
    ASSERT_LE(rounds, 6) << "seed " << seed << "\n" << print(graph);
    auto twice = simplify(*once);
    ASSERT_TRUE(twice.ok());
    ASSERT_EQ(print(*twice), print(*once)) << "seed " << seed;
    ASSERT_EQ(once->inputs().size(), graph.inputs().size());
  }
}

TEST(Fuzz, VerifierRefusesCorruptedGraphsOrTheyAreStillEvaluable) {
  int refused = 0;
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    std::mt19937_64 random(seed);
    Graph graph = random_graph(seed);
    auto at = static_cast<size_t>(random() % graph.nodes.size());
    Node& node = graph.nodes[at];
    switch (random() % 7) {
      case 0:
        node.op = static_cast<Op>(random() % (ops().size() + 2));
        break;
      case 1:
        node.operands.push_back(static_cast<NodeId>(random() % 40));
        break;
      case 2:
        if (!node.shape.empty()) node.shape[random() % node.shape.size()] += 1;
        break;
      case 3:
        node.ints.push_back(static_cast<int64_t>(random() % 5) - 2);
        break;
      case 4:
        if (!node.operands.empty()) node.operands[0] = static_cast<NodeId>(random() % 40) - 2;
        break;
      case 5:
        node.dtype = static_cast<DType>(random() % (kDTypeCount + 1));
        break;
      default:
        if (!node.ints.empty()) node.ints[0] = static_cast<int64_t>(random() % 9) - 4;
    }
    absl::Status status = verify(graph);
    if (status.ok()) {
      // Must return; an index may be out of range.
      (void)evaluate(graph, generated_inputs(graph, seed), {{graph.outputs[0].node, {}}, {0, {}}});
      (void)make_check(graph, seed);
    } else {
      ++refused;
      EXPECT_NE(status.message().find("%"), absl::string_view::npos) << status;
    }
  }
  EXPECT_GT(refused, static_cast<int>(kGraphs) / 4);
}

}  // namespace
}  // namespace wl

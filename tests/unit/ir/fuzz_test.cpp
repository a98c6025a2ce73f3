// Checks random graphs against the oracle, the text form, the rewrite rules and the verifier. A failure prints its
// seed.
#include "tests/unit/fuzz.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "compiler/ir/build.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/rules/rules.h"
#include "compiler/ir/text.h"
#include "random_graph.h"
#include "tests/unit/ir/outputs.h"

namespace wl {
namespace {

constexpr int64_t kGraphs = 100'000;

class Fuzz : public testing::Sharded {};
INSTANTIATE_TEST_SUITE_P(Shards, Fuzz, ::testing::Range(0, testing::kShards));

using testing::agrees;
using testing::OutputValues;
using testing::values_of_outputs;

TEST_P(Fuzz, TextRoundTrips) {
  const auto [first, last] = seeds(kGraphs, 0);
  for (uint64_t seed = first; seed < last; ++seed) {
    Graph graph = random_graph(seed);
    std::string text = print(graph);
    auto again = parse(text);
    ASSERT_TRUE(again.ok()) << again.status() << "\nseed " << seed << "\n" << text;
    EXPECT_EQ(*again, graph) << "seed " << seed;
    ASSERT_EQ(print(*again), text) << "seed " << seed;
    EXPECT_EQ(graph_hash(*again), graph_hash(graph));
  }
}

TEST_P(Fuzz, MutatedTextNeverCrashesAndWhatIsReadIsCanonical) {
  int read = 0;
  const auto [first, last] = seeds(kGraphs, 0);
  for (uint64_t seed = first; seed < last; ++seed) {
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
  EXPECT_GT(read, static_cast<int>(last - first) / 100);
}

TEST_P(Fuzz, LazyOracleComputesWhatAnEagerOneDoes) {
  int64_t compared = 0;
  const auto [first, last] = seeds(kGraphs, 0);
  for (uint64_t seed = first; seed < last; ++seed) {
    Graph graph = random_graph(seed);
    auto lazy = values_of_outputs(graph, seed);
    auto eager = eager_outputs(graph, seed, false);
    for (size_t o = 0; o < lazy.size(); ++o) {
      for (size_t i = 0; i < lazy[o].size(); ++i) {
        const Value& v = lazy[o][i];
        // not compared: near infinity, of two correct evaluations one may overflow and the other not
        if (std::isinf(v.bound) || std::isinf(v.value)) continue;
        ++compared;
        const bool floats = is_float(graph.nodes[graph.outputs[o].node].dtype);
        ASSERT_TRUE(agrees(eager[o][i], v.value, floats ? 1e-9 * std::fabs(v.value) + v.bound * 1e-3 : v.bound))
            << "seed " << seed << " output " << o << " element " << i << ": lazy " << v.value << " +- " << v.bound
            << ", eager " << eager[o][i] << "\n"
            << print(graph);
      }
    }
  }
  EXPECT_GT(compared, static_cast<int64_t>(10 * (last - first)));
}

TEST_P(Fuzz, ARoundedEvaluationStaysWithinTheBound) {
  int64_t compared = 0, close = 0;
  const auto [first, last] = seeds(kGraphs, 0);
  for (uint64_t seed = first; seed < last; ++seed) {
    Graph graph = random_graph(seed);
    auto lazy = values_of_outputs(graph, seed);
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
  EXPECT_GT(compared, static_cast<int64_t>(10 * (last - first)));
  EXPECT_GT(close, compared * 3 / 4) << "bounds are too wide to mean anything";
}

void expect_same_values(const Graph& before, const OutputValues& a, const Graph& after, uint64_t seed,
                        std::string_view rule) {
  const OutputValues b = values_of_outputs(after, seed);
  ASSERT_EQ(a.size(), b.size());
  for (size_t o = 0; o < a.size(); ++o) {
    ASSERT_EQ(a[o].size(), b[o].size()) << "seed " << seed << " rule " << rule;
    for (size_t i = 0; i < a[o].size(); ++i) {
      // The rewritten value may be zero where the original one is denormal, if an intermediate overflows
      // (docs/numerics.md). In dtypes narrower than f32, the result itself may overflow.
      const DTypeInfo& type = info(before.nodes[before.outputs[o].node].dtype);
      const double denormal = type.is_float && type.bytes >= 4 ? 1 / type.largest : 0;
      ASSERT_TRUE(std::isinf(a[o][i].bound) ||
                  agrees(b[o][i].value, a[o][i].value, a[o][i].bound + b[o][i].bound + denormal))
          << "seed " << seed << " rule " << rule << " output " << o << " element " << i << ": " << a[o][i].value
          << " became " << b[o][i].value << "\n"
          << print(before) << print(after);
    }
  }
}

using Names = std::set<std::string, std::less<>>;

// Returns, for every rule, the list of all other rules' names.
std::map<std::string, Names> all_but_each() {
  Names all;
  for (const Rule& rule : rules()) all.emplace(rule.name);
  std::map<std::string, Names> out;
  for (const std::string& name : all) {
    out[name] = all;
    out[name].erase(name);
  }
  return out;
}

TEST_P(Fuzz, EveryRuleAloneAndAllTogetherKeepValues) {
  const auto rules = all_but_each();
  const auto [first, last] = seeds(kGraphs, 0);
  for (uint64_t seed = first; seed < last; ++seed) {
    const Graph graph = random_graph(seed);
    const OutputValues values = values_of_outputs(graph, seed);
    const auto simple = simplify(graph);
    ASSERT_TRUE(simple.ok()) << simple.status() << "\nseed " << seed << "\n" << print(graph);
    expect_same_values(graph, values, *simple, seed, "all");
    for (const auto& [name, others] : rules) {
      Names fired;
      int rounds = 0;
      auto changed = simplify(graph, others, &fired, &rounds);
      ASSERT_LE(rounds, 6) << "seed " << seed << " rule " << name << "\n" << print(graph);
      ASSERT_TRUE(changed.ok()) << changed.status() << "\nseed " << seed << " rule " << name;
      if (!fired.empty()) expect_same_values(graph, values, *changed, seed, name);
    }
    if (HasFailure()) return;
  }
}

TEST(FuzzRules, EachFiresInSomeOfTheRandomGraphs) {
  const auto rules = all_but_each();
  std::map<std::string, int> fired;
  constexpr int kEnough = 2;
  for (uint64_t seed = 0; seed < 6000; ++seed) {
    const Graph graph = random_graph(seed);
    for (const auto& [name, others] : rules) {
      if (fired[name] >= kEnough) continue;
      Names alone;
      ASSERT_TRUE(simplify(graph, others, &alone).ok());
      fired[name] += alone.empty() ? 0 : 1;
    }
  }
  for (const auto& [name, others] : rules)
    EXPECT_GE(fired[name], kEnough) << name << " fired in too few random graphs to be tested";
}

TEST_P(Fuzz, SimplifyIsIdempotentAndKeepsInputs) {
  const auto [first, last] = seeds(kGraphs, 0);
  for (uint64_t seed = first; seed < last; ++seed) {
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

TEST_P(Fuzz, VerifierRefusesCorruptedGraphsOrTheyAreStillEvaluable) {
  int refused = 0;
  const auto [first, last] = seeds(kGraphs, 0);
  for (uint64_t seed = first; seed < last; ++seed) {
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
      // This only checks that both calls return: an index may be out of range, which is an error.
      (void)evaluate(graph, generated_inputs(graph, seed), {{graph.outputs[0].node, {}}, {0, {}}});
      (void)make_check(graph, seed);
    } else {
      ++refused;
      EXPECT_NE(status.message().find("%"), absl::string_view::npos) << status;
    }
  }
  EXPECT_GT(refused, static_cast<int>(last - first) / 4);
}

}  // namespace
}  // namespace wl

#include "compiler/cover/planned/planned.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <queue>
#include <set>

#include "compiler/base/splitmix.h"
#include "compiler/cover/cover.h"
#include "compiler/cover/explain.h"
#include "compiler/cover/planned/regions.h"
#include "compiler/import/import.h"
#include "compiler/ir/build.h"
#include "compiler/ir/rules/rules.h"
#include "compiler/ir/text.h"
#include "tests/unit/domain/domain_testing.h"
#include "tests/unit/file_text.h"
#include "tests/unit/fuzz.h"

namespace wl {
namespace {

// Returns the least time of any cover, computed by Dijkstra's algorithm instead of the integer program. Its states are
// the values stored so far, and the ops computed so far among those that may run only once.
double shortest(const CoverProgram& program) {
  uint64_t wanted = 0, once = 0;
  for (int op = 0; op < program.ops; ++op) {
    if (program.wanted[op] != 0) wanted |= uint64_t{1} << op;
    if (program.once[op] != 0) once |= uint64_t{1} << op;
  }
  const auto bits = [](const std::vector<int>& list) {
    uint64_t set = 0;
    for (int op : list) set |= uint64_t{1} << op;
    return set;
  };
  struct Step {
    uint64_t ops, stores, reads;
    double micros;
  };
  std::vector<Step> steps;
  for (const ProgramColumn& column : program.columns)
    steps.push_back({bits(column.ops), bits(column.stores), bits(column.reads), column.micros});
  // two sets: the values stored so far, and the ops computed so far among those that may run only once
  using State = std::pair<uint64_t, uint64_t>;
  std::map<State, double> best = {{{0, 0}, 0}};
  std::priority_queue<std::pair<double, State>, std::vector<std::pair<double, State>>, std::greater<>> queue;
  queue.push({0, {0, 0}});
  while (!queue.empty()) {
    const auto [micros, state] = queue.top();
    queue.pop();
    if (micros > best[state]) continue;
    if ((state.first & wanted) == wanted) return micros;
    for (const Step& step : steps) {
      if ((step.reads & ~state.first) != 0 || (step.ops & once & state.second) != 0) continue;
      const State next = {state.first | step.stores, state.second | (step.ops & once)};
      if (next == state) continue;
      const double sum = micros + step.micros;
      const auto [known, is_new] = best.try_emplace(next, sum);
      if (!is_new && known->second <= sum) continue;
      known->second = sum;
      queue.push({sum, next});
    }
  }
  return -1;
}

// Returns a program with a column for each op alone, then columns of two to four ops with random stores dropped. The
// times are random, so that computing an op twice can pay.
CoverProgram random_program(uint64_t seed) {
  uint64_t state = seed * kGolden + 1;
  const auto below = [&](int n) { return static_cast<int>(split_mix(state) % static_cast<uint64_t>(n)); };
  CoverProgram program;
  program.ops = 3 + below(6);
  std::vector<std::set<int>> reads(static_cast<size_t>(program.ops)), readers(reads.size());
  for (int op = 1; op < program.ops; ++op)
    for (int k = below(2); k >= 0; --k) reads[op].insert(below(op));
  for (int op = 0; op < program.ops; ++op)
    for (int read : reads[op]) readers[read].insert(op);
  for (int op = 0; op < program.ops; ++op) {
    program.once.push_back(below(6) == 0);
    program.wanted.push_back(readers[op].empty() || below(8) == 0);
  }
  const auto convex = [&](unsigned set) {  // the set is convex: no path leaves it and enters it again
    unsigned after = 0;
    for (int op = 0; op < program.ops; ++op) {
      const bool inside = (set >> op & 1) != 0;
      bool fed = false;
      for (int read : reads[op]) {
        if (inside && (after >> read & 1) != 0) return false;
        fed = fed || ((set | after) >> read & 1) != 0;
      }
      if (fed && !inside) after |= 1u << op;
    }
    return true;
  };
  for (unsigned set = 1; set < 1u << program.ops; ++set) {
    const int size = std::popcount(set);
    if (size > 4 || (size > 1 && below(3) == 0) || !convex(set)) continue;
    ProgramColumn column;
    std::set<int> outside;
    for (int op = 0; op < program.ops; ++op) {
      if ((set >> op & 1) == 0) continue;
      column.ops.push_back(op);
      for (int read : reads[op])
        if ((set >> read & 1) == 0) outside.insert(read);
      bool needed = program.wanted[op] != 0;
      for (int reader : readers[op]) needed = needed || (set >> reader & 1) == 0;
      if (needed && (size == 1 || below(4) != 0)) column.stores.push_back(op);
    }
    if (column.stores.empty()) continue;
    column.reads.assign(outside.begin(), outside.end());
    column.micros = (0.5 + 0.5 * size) * (1 + below(100) / 50.0);
    program.columns.push_back(std::move(column));
  }
  return program;
}

std::vector<int> singles(const CoverProgram& program) {
  std::vector<int> chosen;
  for (size_t g = 0; g < program.columns.size(); ++g)
    if (program.columns[g].ops.size() == 1) chosen.push_back(static_cast<int>(g));
  return chosen;
}

TEST(CoverProgram, IsWhatTheShortestPathFinds) {
  const int64_t count = testing::scaled(30);
  const uint64_t first = testing::test_seed(1);
  int cuts = 0, repeats = 0, unproven = 0;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(count); ++seed) {
    const CoverProgram program = random_program(seed);
    const std::vector<int> start = singles(program);
    ASSERT_TRUE(is_cover(program, start)) << "seed " << seed;
    const ProgramAnswer answer = solve_program(program, start, 2000);
    ASSERT_TRUE(is_cover(program, answer.chosen)) << "seed " << seed;
    const double least = shortest(program);
    EXPECT_LE(answer.bound, least + 1e-6) << "seed " << seed;
    EXPECT_GE(answer.micros, least - 1e-6) << "seed " << seed;
    if (answer.proven()) {
      EXPECT_NEAR(answer.micros, least, 1e-6) << "seed " << seed;
      EXPECT_NEAR(solve_regions(program, {start}).micros, least, 1e-6) << "seed " << seed;
    }
    // the search reached its limit of loop rows or of search nodes before it proved an optimum
    unproven += !answer.proven();
    cuts += answer.cuts;
    size_t ops = 0;
    for (int g : answer.chosen) ops += program.columns[g].ops.size();
    repeats += ops > static_cast<size_t>(program.ops);
  }
  std::printf("%d loop rows, %d covers that compute an op twice\n", cuts, repeats);
  if (count >= 30) {  // a small sample may have no loop rows or no op that is computed twice
    EXPECT_GT(cuts, 0);
    EXPECT_GT(repeats, 0);
  }
  EXPECT_LE(unproven * 20, count);
}

TEST(CoverProgram, WaitingColumnsAreNoCover) {
  CoverProgram program;
  program.ops = 4;
  program.once = {0, 0, 0, 0};
  program.wanted = {0, 1, 0, 1};
  // The columns {0, 1} and {2, 3} each read a value that the other one stores, so neither can run first.
  program.columns = {{{0, 1}, {0, 1}, {2}, 1}, {{2, 3}, {2, 3}, {0}, 1}, {{0}, {0}, {}, 1}};
  EXPECT_FALSE(is_cover(program, {0, 1}));
  std::vector<int> waiting;
  EXPECT_TRUE(runnable_order(program, {0, 1}, &waiting).empty());
  EXPECT_EQ(waiting, (std::vector<int>{0, 1}));
  EXPECT_TRUE(is_cover(program, {0, 1, 2})) << "a column that stores 0 and reads nothing lets them run";
}

TEST(CoverRegions, SegmentsMakeACoverNoWorse) {
  for (uint64_t seed = 1; seed <= 15; ++seed) {
    const CoverProgram program = random_program(seed);
    std::vector<int> all;
    for (size_t g = 0; g < program.columns.size(); ++g) all.push_back(static_cast<int>(g));
    const std::vector<int> better = improve_by_segments(program, all, singles(program));
    ASSERT_TRUE(is_cover(program, better)) << "seed " << seed;
    std::vector<int> worth;
    const ProgramAnswer priced = price_program(program, singles(program), 3, worth);
    EXPECT_LE(priced.bound, shortest(program) + 1e-6) << "seed " << seed;
  }
}

class PlannedRandom : public testing::Sharded {};
INSTANTIATE_TEST_SUITE_P(Shards, PlannedRandom, ::testing::Range(0, testing::kShards));

// Tests all stages of planning: pool, program, regions, groups. For random graphs of at most ten ops, the planned cover
// is compared with shortest(), and each cover must compute its graph.
TEST_P(PlannedRandom, CoversAreOptimalAndMeanTheGraph) {
  const Seeds range = seeds(500, 1);
  double lost_model = 0, lost_times = 0, worst = 0;
  int graphs = 0;
  for (uint64_t seed = range.first; seed < range.last; ++seed) {
    const Graph graph = random_domain_graph(seed, seed % 2 == 0 ? 0 : 12);
    const absl::StatusOr<ColumnPool> pool = candidate_pool(graph, test_machine());
    ASSERT_TRUE(pool.ok()) << "seed " << seed << ": " << pool.status();
    if (pool->values.anchors().size() > 10 || pool->columns.empty()) continue;
    const absl::StatusOr<ColumnPool> sparse = candidate_pool(graph, test_machine(), /*enumerated=*/0);
    ASSERT_TRUE(sparse.ok());
    for (const bool random_times : {false, true}) {
      // The random time is a hash of a column's ops and stores, so a form that is in both pools has the same time in
      // both.
      const auto times = [&](const ColumnPool& of) {
        std::vector<double> micros = form_times(of, {});
        if (!random_times) return micros;
        for (const PoolColumn& column : of.columns) {
          uint64_t hash = seed;
          for (int op : column.ops) hash = mix(hash + static_cast<uint64_t>(op) + 1);
          for (int store : column.stores) hash = mix(hash * 3 + static_cast<uint64_t>(store) + 1);
          micros[column.form] = of.forms[column.form].cost.micros * (0.6 + static_cast<double>(hash % 1000) / 1000);
        }
        return micros;
      };
      const std::vector<double> micros = times(*pool);
      const PlannedCover planned = solve_cover(*pool, micros).value();
      const double least = shortest(program_of(*pool, micros));
      ASSERT_NEAR(planned.total, least, 1e-6 * (1 + least)) << "seed " << seed << "\n" << print(graph);
      EXPECT_TRUE(planned.proven()) << "seed " << seed;
      EXPECT_EQ(check_cover(graph, planned.cover), "") << "seed " << seed;
      const double loss = shortest(program_of(*sparse, times(*sparse))) / least - 1;
      (random_times ? lost_times : lost_model) += loss;
      worst = std::max(worst, loss);
    }
    ++graphs;
  }
  std::printf(
      "%d graphs; without enumeration the pool loses %.3f %% under modelled, %.3f %% under random times, worst "
      "%.1f %%\n",
      graphs, 100 * lost_model / graphs, 100 * lost_times / graphs, 100 * worst);
  EXPECT_GT(graphs, testing::scaled(160) / testing::kShards);
}

Graph model(const std::string& name) {
  return simplify(import_onnx(testing::file_text(WARPLOOM_SOURCE_DIR "/tests/data/" + name)).value().graph).value();
}

const std::vector<std::string> kModels = {"bert_base_layer_b1_s512.onnx", "gelu_ffn.onnx", "layernorm_residual.onnx",
                                          "mha_s512.onnx", "softmax_xent.onnx"};

TEST(CoverPlanned, IsPricedNoHigherThanGreedyAndProven) {
  for (const std::string& name : kModels)
    for (const char* target : {"cpu:avx512", "cuda:sm_90a", "hip:gfx942"}) {
      Machine machine = test_machine();
      machine.target = target_named(target).value();
      const Graph graph = model(name);
      const ColumnPool pool = candidate_pool(graph, machine).value();
      const PlannedCover planned = solve_cover(pool, form_times(pool, {})).value();
      EXPECT_TRUE(planned.proven()) << name << " " << planned.total << " " << planned.bound;
      double greedy = 0;
      const Rates rates = rates_of(machine);
      const absl::StatusOr<Cover> merged = cover_greedy(graph, machine);
      ASSERT_TRUE(merged.ok());
      for (const Group& group : merged->groups) {
        const Graph part = extract(graph, group);
        const Cost cost = cost_of(part, *analyze(part, machine), machine, rates);
        EXPECT_GE(cost.micros, cost.bound);
        EXPECT_GT(cost.bound, 0);
        greedy += cost.micros;
      }
      EXPECT_LE(planned.total, greedy * (1 + 1e-6)) << name << " " << target;
      if (machine.target->is_gpu()) continue;
      EXPECT_EQ(solve_cover(candidate_pool(graph, machine).value(), form_times(pool, {}))->cover.groups,
                planned.cover.groups)
          << name << ": not the same twice";
    }
}

// A simulated search: the "measured" time of each group is the model's time multiplied by a random factor of 0.6 to
// 1.6.
struct Refining {
  Graph graph;
  ColumnPool pool;
  std::vector<double> truth;
  double least = 0;  // least time in us of any cover of the pool
  CoverPrices prices;
  std::vector<std::vector<int>> covers;

  Refining(Graph whole, uint64_t seed) : graph(std::move(whole)), pool(candidate_pool(graph, test_machine()).value()) {
    for (size_t f = 0; f < pool.forms.size(); ++f)
      truth.push_back(pool.forms[f].cost.micros * (0.6 + static_cast<double>(mix(seed * 7919 + f) % 1000) / 1000));
    find_least();
  }

  // Computes the time of the cover that is chosen if the time of every group is known.
  void find_least() {
    CoverPrices all;
    for (size_t f = 0; f < truth.size(); ++f) all.measured.emplace(pool.forms[f].hash, truth[f]);
    least = solve_cover(pool, form_times(pool, all))->total;
  }

  // Measures the groups of up to kCoversOfARound covers. Each cover is planned with a smaller assumed time for
  // unmeasured groups than the previous one. Returns false if all groups of these covers had been measured already.
  bool round() {
    std::map<std::string, double> measured = prices.measured;
    int covers_with_news = 0;
    for (prices.hope = kFirstHope; prices.hope >= kLeastHope; prices.hope *= kFirstHope)
      if (solve_and_measure(measured) && ++covers_with_news == kCoversOfARound) break;
    prices.measured = std::move(measured);
    return covers_with_news > 0;
  }

  bool solve_and_measure(std::map<std::string, double>& measured) {
    covers.push_back(solve_cover(pool, form_times(pool, prices))->columns);
    bool news = false;
    for (int g : covers.back()) {
      if (g < 0) continue;
      const int form = pool.columns[g].form;
      news |= measured.emplace(pool.forms[form].hash, truth[form]).second;
    }
    return news;
  }

  // Returns t / `least` - 1, where t is the time of the best cover whose groups have all been measured.
  double above() {
    CoverPrices known = prices;
    known.otherwise = Unmeasured::kNever;
    return solve_cover(pool, form_times(pool, known), covers)->total / least - 1;
  }
};

TEST(CoverPlanned, RefinementEndsCloseToTheOptimum) {
  double sum = 0, first = 0;
  int count = 0, measured = 0;
  for (const std::string& name : kModels)
    for (uint64_t seed = 1; seed <= static_cast<uint64_t>(testing::scaled(6)); ++seed) {
      Refining refining(model(name), seed);
      refining.solve_and_measure(refining.prices.measured);  // the first cover is chosen without measured times
      first += refining.above();
      for (int round = 1; round <= 5 && refining.round();) ++round;
      sum += refining.above();
      measured += static_cast<int>(refining.prices.measured.size());
      ++count;
    }
  std::printf("first %.1f %% above the optimum, after at most five rounds %.2f %%; %.1f groups measured\n",
              100 * first / count, 100 * sum / count, static_cast<double>(measured) / count);
  EXPECT_LE(sum / count, 0.04);
  EXPECT_LT(sum, first / 4);
}

TEST(CoverPlanned, BoundsForWhatIsUnmeasuredEndAtTheOptimum) {
  for (const char* name : {"gelu_ffn.onnx", "mha_s512.onnx", "softmax_xent.onnx"}) {
    Refining refining(model(name), 3);
    refining.prices.otherwise = Unmeasured::kBound;
    // No kernel is faster than its lower bound, so the drawn times are raised to it.
    for (size_t f = 0; f < refining.truth.size(); ++f)
      refining.truth[f] = std::max(refining.truth[f], refining.pool.forms[f].cost.bound);
    refining.find_least();
    int rounds = 0;
    while (refining.round()) ++rounds;
    EXPECT_NEAR(refining.above(), 0, 1e-6) << name;
    EXPECT_LT(refining.prices.measured.size(), refining.pool.forms.size()) << name;
  }
}

TEST(CoverPlanned, WithoutAMeasuredCoverThereIsNone) {
  const Graph graph = model("gelu_ffn.onnx");
  EXPECT_TRUE(absl::IsNotFound(
      cover_planned(candidate_pool(graph, test_machine()).value(), {{}, Unmeasured::kNever}).status()));
}

// A kernel that fuses the computation of the factor that it reads in place is not worthwhile, but an op alone is always
// a candidate. Models of the ONNX project have such weights: constants of one value, broadcast to the weights' shape.
TEST(CoverPlanned, AFactorMayBeAConstant) {
  for (const char* product :
       {"%0 %1 \"ki,nk->ni\"", "%1 %0 \"nk,ki->ni\"", "%0 %1 \"ki,nk->in\"", "%1 %0 \"nk,ki->in\""}) {
    const Graph graph =
        parse(cat("graph {\n  %0 = input \"x\" : f32[32,24] normal(0,1)\n  %1 = constant 0.02 : f32[24,32]\n",
                  "  %2 = contract ", product, " : f32[24,24]\n  %3 = exp %2 : f32[24,24]\n  output \"y\" %3\n}\n"))
            .value();
    const auto pool = candidate_pool(graph, test_machine());
    ASSERT_TRUE(pool.ok()) << pool.status();
    EXPECT_TRUE(cover_planned(*pool).ok()) << product;
  }
}

TEST(Explain, SaysWhatEveryGroupSaves) {
  const Graph graph = model("bert_base_layer_b1_s512.onnx");
  for (const auto& cover :
       {cover_planned(candidate_pool(graph, test_machine()).value()), cover_greedy(graph, test_machine())}) {
    ASSERT_TRUE(cover.ok());
    const auto made = explain(graph, *cover, test_machine());
    ASSERT_TRUE(made.ok()) << made.status();
    for (size_t g = 0; g < cover->groups.size(); ++g)
      EXPECT_NE(made->text.find(cat("\ng", g, ": ")), std::string::npos) << made->text;
    EXPECT_TRUE(made->picture.starts_with("<svg ") && made->picture.ends_with("</svg>\n"));
  }
}

}  // namespace
}  // namespace wl

// Replays search strategies on recorded spaces (bench/replay/t4.h), without a device:
//
//   replay [--seeds N] [--trials N] [--round N] [--strategies A,B] [--noise N] [--fleet N] [--ranker FILE]
//   [--out FILE.json] TABLE...
// Every strategy proposes rounds of candidates and sees their results, as in the service. A printed figure is the best
// time of the space divided by the best time that was found, so 1 is perfect. It is a geometric mean over seeds, and
// then over tables.
//   --fleet N: the first trials are the winners of at most N of the other tables, nearest first, as the service begins
//   with the winners in its store of similar groups and other devices.
//   --ranker FILE: a ranker's estimate for each kernel of a table recorded by Warploom, for the strategies that use it.
//   --noise N: a strategy sees the least of N of a point's samples, which the seed selects, as the point's time. The
//   points that it found are still judged by all samples. 0: it sees the least of all samples.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "bench/replay/score.h"
#include "compiler/base/splitmix.h"
#include "compiler/base/status.h"
#include "compiler/ir/text.h"
#include "compiler/model/ranker.h"
#include "compiler/schedule/lower/lower.h"
#include "compiler/search/nearest.h"

namespace wl {
namespace {

using Json = nlohmann::json;
constexpr int kBudgets[] = {1, 10, 25, 48, 50, 100, 200};

struct Options {
  int seeds = 40, trials = 200, round = 8, noise = 0, fleet = 0;
  std::vector<std::string> strategies, tables;
  std::string out, ranker;
};

double shown(const Recording::Result& result, int noise, uint64_t draw) {
  if (noise <= 0 || result.samples_ns.empty()) return result.ns;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < noise; ++i)
    least =
        std::min(least, result.samples_ns[mix(draw + static_cast<uint64_t>(i) * kGolden) % result.samples_ns.size()]);
  return least;
}

using Recordings = std::vector<std::unique_ptr<Recording>>;

double default_over_best(const Recording& recording) {
  if (recording.space.seeds.empty()) return std::numeric_limits<double>::infinity();
  const Recording::Result& standard = recording.results.at(recording.space.seeds[0]);
  return standard.correct ? standard.ns / recording.best_ns : std::numeric_limits<double>::infinity();
}

// Returns the points of a table's space that the service would try first if its store had the winners of all other
// tables. Tables of other projects have no graph: those with the same axes count as one kernel on several devices.
std::vector<Point> fleet_points(const Recording& recording, const Recordings& all, int most) {
  std::vector<KnownPlan> known;
  std::vector<Point> points;
  for (const std::unique_ptr<Recording>& other : all) {
    if (other.get() == &recording || other->graph.empty() != recording.graph.empty()) continue;
    for (const auto& [point, result] : other->results) {
      if (!result.correct || result.ns > other->best_ns) continue;
      known.push_back({other->graph, other->space.text(point), default_over_best(*other)});
      if (const auto same = translated(recording.space, known.back().plan); same && recording.graph.empty())
        points.push_back(*same);
      break;
    }
  }
  if (recording.graph.empty()) {
    points.resize(std::min(points.size(), static_cast<size_t>(most)));
    return points;
  }
  const absl::StatusOr<Graph> graph = parse(recording.graph);
  return graph.ok() ? nearest_winners(*graph, recording.space, known, most) : points;
}

Curve replay_once(const Recording& recording, const Strategy& strategy, const Options& options,
                  const std::vector<Point>& fleet, uint64_t seed) {
  double worst = 0;
  for (const auto& [point, result] : recording.results)
    if (result.correct) worst = std::max(worst, result.ns);
  std::vector<Observed> trials;
  Curve curve;
  double best_shown = 0, best = worst;
  while (static_cast<int>(trials.size()) < options.trials) {
    const int n = std::min(options.round, options.trials - static_cast<int>(trials.size()));
    std::vector<Point> points = strategy.propose(recording.space, trials, n, seed);
    if (points.empty()) break;
    if (trials.empty()) {
      // The first proposals are those of the service's first round: the default schedule, winners of other tables, and
      // new points.
      const auto known = [&](const Point& p) { return std::find(fleet.begin(), fleet.end(), p) != fleet.end(); };
      const auto rest = points.begin() + (recording.space.seeds.empty() ? 0 : 1);
      points.erase(std::remove_if(rest, points.end(), known), points.end());
      points.insert(points.begin() + (recording.space.seeds.empty() ? 0 : 1), fleet.begin(), fleet.end());
      points.resize(std::min(points.size(), static_cast<size_t>(n)));
    }
    for (const Point& point : points) {
      const Recording::Result& result = recording.results.at(point);
      Observed trial;
      trial.point = point;
      trial.correct = result.correct;
      trial.ns = result.correct ? shown(result, options.noise, mix(seed * 1000003 + trials.size())) : 0;
      if (trial.correct && (best_shown == 0 || trial.ns < best_shown)) {
        best_shown = trial.ns;
        best = result.ns;
      }
      curve.push_back(best);
      trials.push_back(std::move(trial));
    }
  }
  curve.resize(static_cast<size_t>(options.trials), best);
  return curve;
}

struct Row {
  std::string strategy;
  // For each budget of trials: geometric mean and 10th percentile, over seeds, of (best time of the space) / (time
  // found).
  std::vector<double> fraction, spread;
  double score = 0, seconds = 0;
};

Row replay(const Recording& recording, const Strategy& strategy, const Options& options,
           const std::vector<Point>& fleet) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Curve> curves;
  for (int seed = 1; seed <= options.seeds; ++seed)
    curves.push_back(replay_once(recording, strategy, options, fleet, static_cast<uint64_t>(seed)));
  Row row;
  row.strategy = strategy.name;
  Curve mean(curves[0].size(), 0.0);
  for (const Curve& curve : curves)
    for (size_t t = 0; t < curve.size(); ++t) mean[t] += curve[t] / static_cast<double>(curves.size());
  row.score = methodology_score(recording, mean);
  for (int budget : kBudgets) {
    std::vector<double> fractions;
    for (const Curve& curve : curves)
      fractions.push_back(recording.best_ns / curve[static_cast<size_t>(std::min(budget, options.trials)) - 1]);
    row.fraction.push_back(geometric_mean(fractions));
    std::sort(fractions.begin(), fractions.end());
    row.spread.push_back(fractions[fractions.size() / 10]);
  }
  row.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return row;
}

void print_heads(const std::string& first) {
  std::printf("%-28s", first.c_str());
  for (int budget : kBudgets) std::printf("%7d", budget);
  std::printf("   10%%:100  score     s\n");
}

void print_row(const Row& row) {
  std::printf("%-28s", row.strategy.c_str());
  for (double fraction : row.fraction) std::printf("  %.3f", fraction);
  std::printf("    %.3f  %6.3f  %5.1f\n", row.spread[5], row.score, row.seconds);
}

Json json_of(const Row& row) {
  Json out = {{"strategy", row.strategy}, {"score", row.score}};
  for (size_t i = 0; i < std::size(kBudgets); ++i) {
    out["fraction"][absl::StrFormat("%d", kBudgets[i])] = row.fraction[i];
    out["tenth_percentile"][absl::StrFormat("%d", kBudgets[i])] = row.spread[i];
  }
  return out;
}

Row mean_of(const std::vector<const Row*>& rows) {
  Row mean;
  mean.strategy = rows[0]->strategy;
  for (size_t i = 0; i < std::size(kBudgets); ++i) {
    std::vector<double> fractions, spreads;
    for (const Row* row : rows) fractions.push_back(row->fraction[i]), spreads.push_back(row->spread[i]);
    mean.fraction.push_back(geometric_mean(fractions));
    mean.spread.push_back(geometric_mean(spreads));
  }
  for (const Row* row : rows) {
    mean.score += row->score / static_cast<double>(rows.size());
    mean.seconds += row->seconds;
  }
  return mean;
}

absl::StatusOr<Options> options_of(const std::vector<std::string>& words) {
  Options options;
  for (size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--")) {
      options.tables.push_back(words[i]);
      continue;
    }
    if (i + 1 == words.size()) return invalid(words[i], " needs a value");
    const std::string& value = words[++i];
    int* number = words[i - 1] == "--seeds"    ? &options.seeds
                  : words[i - 1] == "--trials" ? &options.trials
                  : words[i - 1] == "--round"  ? &options.round
                  : words[i - 1] == "--noise"  ? &options.noise
                  : words[i - 1] == "--fleet"  ? &options.fleet
                                               : nullptr;
    if (number != nullptr) {
      if (!absl::SimpleAtoi(value, number) || *number < 0) return invalid(words[i - 1], " ", value, ": not a number");
    } else if (words[i - 1] == "--strategies") {
      options.strategies = absl::StrSplit(value, ',');
    } else if (words[i - 1] == "--out") {
      options.out = value;
    } else if (words[i - 1] == "--ranker") {
      options.ranker = value;
    } else {
      return invalid("unknown option ", words[i - 1]);
    }
  }
  if (options.tables.empty())
    return invalid(
        "usage: replay [--seeds N] [--trials N] [--round N] [--noise N] [--fleet N] [--strategies A,B] [--ranker "
        "FILE] [--out FILE] TABLE...");
  if (options.strategies.empty())
    for (const Strategy& row : strategies())
      if (row.name != "exhaustive") options.strategies.emplace_back(row.name);
  return options;
}

absl::StatusOr<Ranker> read_ranker(const std::string& path) {
  if (path.empty()) return Ranker();
  std::ifstream file(path);
  return parse_ranker(std::string(std::istreambuf_iterator<char>(file), {}));
}

absl::Status expect(const Ranker& ranker, Recording& recording) {
  if (ranker.forests.empty() || recording.graph.empty()) return absl::OkStatus();
  WL_ASSIGN_OR_RETURN(const Machine machine, recorded_machine(recording));
  WL_ASSIGN_OR_RETURN(const Graph graph, parse(recording.graph));
  WL_ASSIGN_OR_RETURN(const Domain domain, analyze(graph, machine));
  WL_ASSIGN_OR_RETURN(const Space space, space_of(graph, domain, machine));
  std::map<Point, double> expected;
  for (const auto& [point, result] : recording.results) {
    WL_ASSIGN_OR_RETURN(const Point parsed, space.parse(recording.space.text(point)));
    WL_ASSIGN_OR_RETURN(const Kernel kernel, lower(graph, domain, space.schedule(parsed), machine));
    const Features features = features_of(kernel, machine);
    if (!ranker.knows(features.kind)) return absl::OkStatus();
    expected[point] = ranker.log_ns(features);
  }
  recording.space.expected_log_ns = [expected](const Point& point) { return expected.at(point); };
  return absl::OkStatus();
}

absl::Status run(const std::vector<std::string>& words) {
  WL_ASSIGN_OR_RETURN(const Options options, options_of(words));
  WL_ASSIGN_OR_RETURN(const Ranker ranker, read_ranker(options.ranker));
  Json out = {{"seeds", options.seeds},
              {"trials", options.trials},
              {"round", options.round},
              {"noise", options.noise},
              {"fleet", options.fleet}};
  std::vector<std::vector<Row>> rows(options.strategies.size());
  std::vector<double> first;
  Recordings recordings;
  for (const std::string& path : options.tables) {
    WL_ASSIGN_OR_RETURN(std::unique_ptr<Recording> recording, read_t4(path));
    WL_RETURN_IF_ERROR(expect(ranker, *recording));
    recordings.push_back(std::move(recording));
  }
  for (const std::unique_ptr<Recording>& recording : recordings) {
    const std::vector<Point> fleet = fleet_points(*recording, recordings, options.fleet);
    const auto correct = std::count_if(recording->results.begin(), recording->results.end(),
                                       [](const auto& item) { return item.second.correct; });
    const int budget = methodology_budget(*recording);
    std::string title = absl::StrFormat("%s: %d points, %d correct, best %.1f us, budget %d", recording->name,
                                        recording->results.size(), correct, recording->best_ns / 1e3, budget);
    Json table = {{"name", recording->name},
                  {"points", recording->results.size()},
                  {"correct", correct},
                  {"best_ns", recording->best_ns},
                  {"methodology_budget", budget}};
    if (!recording->space.seeds.empty()) {
      const Recording::Result& pick = recording->results.at(recording->space.seeds[0]);
      first.push_back(pick.correct ? recording->best_ns / pick.ns : 1e-3);
      table["first_seed"] = first.back();
      title += absl::StrFormat(", first seed %.3f", first.back());
    }
    std::printf("\n%s\n", title.c_str());
    print_heads("");
    for (size_t i = 0; i < options.strategies.size(); ++i) {
      WL_ASSIGN_OR_RETURN(const Strategy* strategy, strategy_named(options.strategies[i]));
      rows[i].push_back(replay(*recording, *strategy, options, fleet));
      print_row(rows[i].back());
      table["strategies"].push_back(json_of(rows[i].back()));
    }
    std::fflush(stdout);
    out["tables"].push_back(std::move(table));
  }
  std::printf("\n%zu tables, geometric means over %d seeds each\n", options.tables.size(), options.seeds);
  print_heads("");
  for (const std::vector<Row>& of : rows) {
    std::vector<const Row*> all;
    for (const Row& row : of) all.push_back(&row);
    const Row mean = mean_of(all);
    print_row(mean);
    out["mean"].push_back(json_of(mean));
  }
  if (!first.empty()) {
    out["first_seed"] = geometric_mean(first);
    std::printf("first seed, nothing measured: %.3f\n", geometric_mean(first));
  }
  if (!options.out.empty()) std::ofstream(options.out) << out.dump(1) << "\n";
  return absl::OkStatus();
}

}  // namespace
}  // namespace wl

int main(int argc, char** argv) {
  const absl::Status status = wl::run({argv + 1, argv + argc});
  if (status.ok()) return 0;
  std::fprintf(stderr, "replay: %s\n", std::string(status.message()).c_str());
  return 1;
}

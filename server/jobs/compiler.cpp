#include "server/jobs/compiler.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <mutex>
#include <set>

#include "absl/strings/str_join.h"
#include "compiler/cover/cover.h"
#include "compiler/cover/planned/planned.h"
#include "compiler/cover/stitching.h"
#include "compiler/emit/emit.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/rules/rules.h"
#include "compiler/ir/text.h"
#include "compiler/kernel/verify.h"
#include "compiler/plan/stitch.h"
#include "compiler/schedule/lower/lower.h"
#include "compiler/search/analytic_seeds.h"
#include "compiler/search/strategy.h"

namespace wl {
namespace {

// A pool with the graph and the machine that it refers to. Not to be moved.
struct PooledGraph {
  Graph graph;
  Machine machine;
  absl::StatusOr<ColumnPool> pool = candidate_pool(graph, machine);
};

// Pools of the last graphs that were planned: a job's cover is chosen again many times, from one pool. What is the same
// graph and machine has the same pool, so nothing depends on whether it was here. Any thread.
class Pools {
 public:
  absl::StatusOr<std::shared_ptr<const PooledGraph>> of(const Graph& graph, const Machine& m) {
    const std::string text = print(graph);
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [known, pool] : pools_)
        if (known == text && pool->machine == m) return pool;
    }
    const std::shared_ptr<const PooledGraph> made(new PooledGraph{.graph = graph, .machine = m});
    WL_RETURN_IF_ERROR(made->pool.status());
    const std::lock_guard lock(mutex_);
    if (pools_.size() == kMost) pools_.pop_front();
    pools_.emplace_back(text, made);
    return made;
  }

 private:
  static constexpr size_t kMost = 4;
  std::mutex mutex_;
  std::deque<std::pair<std::string, std::shared_ptr<const PooledGraph>>> pools_;  // by text, oldest first
};

// Ways to decide which ops share a kernel. To add one: a row.
struct CoverAsked {
  const Graph& graph;
  const Machine& machine;
  const Cover& greedy;
  const CoverPrices& prices;
  Pools& pools;
};
struct CoverRow {
  std::string_view name;
  bool refines;       // by measured times
  bool above_greedy;  // groups of the greedy cover may take the place of its own
  absl::StatusOr<Cover> (*make)(const CoverAsked& asked);
};
constexpr CoverRow kCovers[] = {
    {"stitched", false, true, [](const CoverAsked& a) { return cover_stitched(a.graph, a.machine, a.greedy); }},
    {"greedy", false, false, [](const CoverAsked& a) { return absl::StatusOr<Cover>(a.greedy); }},
    {"planned", true, true,
     [](const CoverAsked& a) -> absl::StatusOr<Cover> {
       WL_ASSIGN_OR_RETURN(const std::shared_ptr<const PooledGraph> pooled, a.pools.of(a.graph, a.machine));
       return cover_planned(*pooled->pool, a.prices);
     }},
    {"contractions-alone", false, false,
     [](const CoverAsked& a) { return cover_greedy(a.graph, a.machine, {.contractions_alone = true}); }},
    {"one-per-op", false, false, [](const CoverAsked& a) { return cover_one_per_op(a.graph, a.machine); }},
};

absl::StatusOr<const CoverRow*> cover_named(std::string_view name) {
  for (const CoverRow& row : kCovers)
    if (row.name == name) return &row;
  return invalid("unknown cover \"", name, "\"; known: ",
                 absl::StrJoin(kCovers, ", ", [](std::string* out, const CoverRow& row) { out->append(row.name); }));
}

class RealGroup : public GroupCompiler {
 public:
  RealGroup(Graph graph, Machine machine, Domain domain, Space space, std::shared_ptr<const Ranker> ranker)
      : graph_(std::move(graph)),
        machine_(machine),
        domain_(std::move(domain)),
        space_(std::move(space)),
        ranker_(std::move(ranker)) {
    if (ranker_->forests.empty()) return;
    const auto first = features(space_.seeds.front());
    if (first.ok() && ranker_->knows(first->kind))
      space_.expected_log_ns = [this](const Point& point) {
        const auto made = features(point);
        return made.ok() ? ranker_->log_ns(*made) : std::numeric_limits<double>::max();
      };
  }

  std::vector<std::string> seeds() const override {
    std::vector<std::string> plans;
    for (const Point& point : space_.seeds) plans.push_back(space_.text(point));
    return plans;
  }

  std::vector<std::string> propose(const std::string& strategy, const std::vector<PlanOutcome>& trials, int n,
                                   uint64_t seed) const override {
    auto row = strategy_named(strategy);
    if (!row.ok()) return {};
    std::vector<Observed> observed;
    std::set<Point> seen;
    for (const PlanOutcome& trial : trials) {
      // A plan that an older Warploom wrote may not be in this space any more; it teaches nothing then.
      auto point = space_.parse(trial.plan);
      if (!point.ok()) continue;
      seen.insert(*point);
      observed.push_back({*std::move(point), trial.correct, trial.ns, trial.code});
    }
    std::vector<std::string> plans;
    for (const Point& point : (*row)->propose(space_, observed, n, seed)) {
      if (seen.insert(point).second) plans.push_back(space_.text(point));
    }
    return plans;
  }

  std::vector<std::string> nearest(const std::vector<KnownPlan>& known, int n) const override {
    std::vector<std::string> plans;
    for (const Point& point : nearest_winners(graph_, space_, known, n)) plans.push_back(space_.text(point));
    return plans;
  }

  absl::StatusOr<Source> generate(const std::string& plan) const override {
    WL_ASSIGN_OR_RETURN(const Kernel kernel, kernel_of(plan));
    return emit(kernel, machine_);
  }

  absl::StatusOr<Check> check(uint64_t seed) const override { return make_check(graph_, seed); }

  std::string space_text() const override { return cat(space_.count(), " legal points\n", axes_text(space_)); }

  absl::StatusOr<std::string> kernel_text(const std::string& plan) const override {
    WL_ASSIGN_OR_RETURN(const Kernel kernel, kernel_of(plan));
    return print(kernel);
  }

 private:
  absl::StatusOr<Kernel> kernel_of(const std::string& plan) const {
    WL_ASSIGN_OR_RETURN(const Point point, space_.parse(plan));
    return lower(graph_, domain_, space_.schedule(point), machine_);
  }

  absl::StatusOr<Features> features(const Point& point) const {
    WL_ASSIGN_OR_RETURN(const Kernel kernel, lower(graph_, domain_, space_.schedule(point), machine_));
    return features_of(kernel, machine_);
  }

  Graph graph_;
  Machine machine_;
  Domain domain_;
  Space space_;
  std::shared_ptr<const Ranker> ranker_;
};

class RealCompiler : public Compiler {
 public:
  explicit RealCompiler(Ranker ranker = {}) : ranker_(std::make_shared<const Ranker>(std::move(ranker))) {}
  absl::StatusOr<Graph> simplify(const Graph& graph) const override { return wl::simplify(graph); }
  absl::StatusOr<std::vector<Cover>> covers(const Graph& graph, const Machine& machine, const std::string& cover,
                                            const CoverPrices& prices) const override {
    WL_ASSIGN_OR_RETURN(const CoverRow* row, cover_named(cover));
    WL_ASSIGN_OR_RETURN(Cover greedy, cover_greedy(graph, machine));
    WL_ASSIGN_OR_RETURN(Cover parts, cover_one_per_op(graph, machine));
    std::vector<Cover> covers(1);
    WL_ASSIGN_OR_RETURN(covers[0], row->make({graph, machine, greedy, prices, pools_}));
    if (row->above_greedy && covers[0].groups != greedy.groups && covers[0].groups != parts.groups)
      covers.push_back(std::move(greedy));
    covers.push_back(std::move(parts));
    return covers;
  }
  absl::StatusOr<CoverExplanation> explain(const Graph& graph, const Machine& machine,
                                           const std::string& cover) const override {
    WL_ASSIGN_OR_RETURN(const CoverRow* row, cover_named(cover));
    WL_ASSIGN_OR_RETURN(const Cover greedy, cover_greedy(graph, machine));
    WL_ASSIGN_OR_RETURN(const Cover made, row->make({graph, machine, greedy, {}, pools_}));
    return wl::explain(graph, made, machine);
  }
  absl::StatusOr<std::unique_ptr<GroupCompiler>> open(const Graph& group, const Machine& machine) const override {
    WL_ASSIGN_OR_RETURN(Domain domain, analyze_group(group, machine));
    WL_ASSIGN_OR_RETURN(Space space, space_of(group, domain, machine));
    order_seeds(group, domain, machine, space);
    if (space.seeds.empty()) return unimplemented("no schedule is legal for the group\n", print(group));
    return std::make_unique<RealGroup>(group, machine, std::move(domain), std::move(space), ranker_);
  }
  absl::Status known_strategy(const std::string& name) const override { return strategy_named(name).status(); }
  bool refines(const std::string& cover) const override {
    const absl::StatusOr<const CoverRow*> row = cover_named(cover);
    return row.ok() && (*row)->refines;
  }
  absl::Status known_cover(const std::string& name) const override { return cover_named(name).status(); }

 private:
  std::shared_ptr<const Ranker> ranker_;
  mutable Pools pools_;
};

}  // namespace

const Compiler& warploom_compiler() {
  static const RealCompiler compiler;
  return compiler;
}
std::unique_ptr<Compiler> warploom_compiler(Ranker ranker) {
  return std::make_unique<RealCompiler>(std::move(ranker));
}

}  // namespace wl

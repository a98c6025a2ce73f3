#include "server/jobs/compiler.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>

#include "absl/strings/match.h"
#include "compiler/cover/stitching.h"
#include "compiler/cover/table/covers.h"
#include "compiler/domain/stitch.h"
#include "compiler/emit/emit.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/layout/channels_last.h"
#include "compiler/ir/rules/rules.h"
#include "compiler/ir/text.h"
#include "compiler/kernel/verify.h"
#include "compiler/library/library.h"
#include "compiler/model/cost.h"
#include "compiler/schedule/lower/lower.h"
#include "compiler/search/analytic_seeds.h"
#include "compiler/search/strategy.h"

namespace wl {
namespace {

// A pool of candidate groups for covers, with the graph and the machine that the pool refers to. The object must not be
// moved.
struct PooledGraph {
  Graph graph;
  Machine machine;
  Work* work = nullptr;  // may end the making of `pool` early; not used afterwards
  absl::StatusOr<ColumnPool> pool = candidate_pool(graph, machine, kEnumerated, work);
};

// Keeps the pools of the graphs that were planned last, since a job's cover is chosen many times from one pool. The
// same graph and machine give the same pool, so results do not depend on which pools are kept. Thread-safe.
class Pools {
 public:
  absl::StatusOr<std::shared_ptr<const PooledGraph>> of(const Graph& graph, const Machine& m, Work* work) {
    const std::string text = print(graph);
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [known, pool] : pools_)
        if (known == text && pool->machine == m) return pool;
    }
    const std::shared_ptr<const PooledGraph> made(new PooledGraph{.graph = graph, .machine = m, .work = work});
    WL_RETURN_IF_ERROR(made->pool.status());
    const std::lock_guard lock(mutex_);
    if (pools_.size() == kMost) pools_.pop_front();
    pools_.emplace_back(text, made);
    return made;
  }

 private:
  static constexpr size_t kMost = 4;
  std::mutex mutex_;
  // The pools, each with the text of its graph, oldest first.
  std::deque<std::pair<std::string, std::shared_ptr<const PooledGraph>>> pools_;
};

// Parses the plans of a space, and remembers each point, because every round of a search looks at the plans of all
// earlier trials. Thread-safe.
class ParsedPlans {
 public:
  // Returns the point of a plan, which stays valid as long as this object; null: the plan is not in `space`, which must
  // be the same in all calls.
  const Point* point_of(const Space& space, const std::string& plan) {
    const std::lock_guard lock(mutex_);
    const auto [row, is_new] = points_.try_emplace(plan);
    if (is_new) {
      if (absl::StatusOr<Point> point = space.parse(plan); point.ok()) row->second = *std::move(point);
    }
    return row->second ? &*row->second : nullptr;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::optional<Point>> points_;  // nullopt: the plan is not in the space
};

class RealGroup : public GroupCompiler {
 public:
  RealGroup(Graph graph, Machine machine, Domain domain, Space space, std::shared_ptr<const Ranker> ranker)
      : graph_(std::move(graph)),
        machine_(machine),
        domain_(std::move(domain)),
        space_(std::move(space)),
        library_(library_group(graph_, domain_, machine_)),
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
    // Plans for kernels of a vendor's library alternate with plans for generated kernels, so that even the first round,
    // which may be the only one, has both kinds.
    const std::vector<std::string> of_library = untried_of_library({}, static_cast<int>(space_.seeds.size()));
    std::vector<std::string> plans;
    for (size_t i = 0; i < space_.seeds.size(); ++i) {
      plans.push_back(space_.text(space_.seeds[i]));
      if (i < of_library.size()) plans.push_back(of_library[i]);
    }
    return plans;
  }

  std::vector<std::string> propose(const std::string& strategy, const std::vector<PlanOutcome>& trials, int n,
                                   uint64_t seed) const override {
    auto row = strategy_named(strategy);
    if (!row.ok()) return {};
    std::vector<Observed> observed;
    std::set<Point> seen;
    for (const PlanOutcome& trial : trials) {
      // Trials of plans that this space does not have are left out: plans of the library's kernels or of an older
      // version.
      const Point* point = parsed_.point_of(space_, trial.plan);
      if (point == nullptr) continue;
      seen.insert(*point);
      observed.push_back({*point, trial.correct, trial.ns, trial.code});
    }
    std::vector<std::string> plans;
    const std::vector<std::string> of_library = untried_of_library(trials, n / 2);
    const int own = n - static_cast<int>(of_library.size());
    for (const Point& point : (*row)->propose(space_, observed, own, seed)) {
      if (seen.insert(point).second) plans.push_back(space_.text(point));
    }
    plans.insert(plans.end(), of_library.begin(), of_library.end());
    return plans;
  }

  std::string current(const std::string& plan) const override {
    const Space& space = space_of_plan(plan);
    const absl::StatusOr<Point> point = space.parse(plan);
    return point.ok() ? space.text(*point) : plan;
  }

  std::vector<std::string> nearest(const std::vector<KnownPlan>& known, int n) const override {
    std::vector<std::string> plans;
    for (const Point& point : nearest_winners(graph_, space_, known, n)) plans.push_back(space_.text(point));
    return plans;
  }

  absl::StatusOr<Source> generate(const std::string& plan) const override {
    if (of_library(plan)) {
      WL_ASSIGN_OR_RETURN(const Point point, library_->space.parse(plan));
      return library_source(graph_, domain_, *library_, library_->space.schedule(point), machine_);
    }
    WL_ASSIGN_OR_RETURN(const Schedule schedule, schedule_of(plan));
    WL_ASSIGN_OR_RETURN(const Kernel kernel, kernel_of(schedule));
    return emit(kernel, machine_, hash_, listing_of(graph_, domain_, schedule));
  }

  absl::StatusOr<Check> check(uint64_t seed, Work* work) const override { return make_check(graph_, seed, work); }

  std::string space_text() const override {
    std::string text = cat(space_.count_text(), "\n", axes_text(space_));
    if (library_)
      append(&text, library_->space.count_text(), " of ", library_->space.kind, "\n", axes_text(library_->space));
    return text;
  }

  absl::StatusOr<std::string> kernel_text(const std::string& plan) const override {
    if (of_library(plan)) {
      WL_ASSIGN_OR_RETURN(const Source source, generate(plan));
      return source.text;
    }
    WL_ASSIGN_OR_RETURN(const Schedule schedule, schedule_of(plan));
    WL_ASSIGN_OR_RETURN(const Kernel kernel, kernel_of(schedule));
    return print(kernel);
  }

 private:
  // Whether a plan is for a kernel of the vendor's library, and not for a generated kernel.
  bool of_library(const std::string& plan) const {
    return library_ && absl::StartsWith(plan, cat(library_->space.prefix, " "));
  }
  const Space& space_of_plan(const std::string& plan) const { return of_library(plan) ? library_->space : space_; }

  // Returns at most n plans for kernels of the vendor's library that were not tried yet. A group has only a handful of
  // such plans, so all of them are tried in the first rounds, beside the strategy's proposals. The strategy is not told
  // of them.
  std::vector<std::string> untried_of_library(const std::vector<PlanOutcome>& trials, int n) const {
    std::vector<std::string> plans;
    if (!library_) return plans;
    library_->space.enumerate([&](const Point& point) {
      if (static_cast<int>(plans.size()) >= n) return false;
      const std::string plan = library_->space.text(point);
      const auto is_same = [&](const PlanOutcome& trial) { return trial.plan == plan; };
      if (std::none_of(trials.begin(), trials.end(), is_same)) plans.push_back(plan);
      return true;
    });
    return plans;
  }

  absl::StatusOr<Schedule> schedule_of(const std::string& plan) const {
    WL_ASSIGN_OR_RETURN(const Point point, space_.parse(plan));
    return space_.schedule(point);
  }

  absl::StatusOr<Kernel> kernel_of(const Schedule& schedule) const {
    return lower(graph_, domain_, schedule, machine_);
  }

  absl::StatusOr<Features> features(const Point& point) const {
    WL_ASSIGN_OR_RETURN(const Kernel kernel, kernel_of(space_.schedule(point)));
    return features_of(kernel, machine_);
  }

  Graph graph_;
  const std::string hash_ = graph_hash(graph_);  // hash of the group's graph, which is part of the names of its kernels
  Machine machine_;
  Domain domain_;
  Space space_;
  std::optional<LibraryGroup> library_;
  std::shared_ptr<const Ranker> ranker_;
  mutable ParsedPlans parsed_;  // the points of plans that propose() was given
};

class RealCompiler : public Compiler {
 public:
  explicit RealCompiler(Ranker ranker = {}) : ranker_(std::make_shared<const Ranker>(std::move(ranker))) {}
  absl::StatusOr<Graph> simplify(const Graph& graph) const override { return wl::simplify(graph); }
  absl::StatusOr<Graph> laid_out(const Graph& graph, const std::string& cover, Work* work) const override {
    WL_ASSIGN_OR_RETURN(const CoverRow* row, cover_named(cover));
    if (row->layout == CoverLayout::kAsGiven) return graph;
    WL_ASSIGN_OR_RETURN(const Graph simple, wl::simplify(graph, {}, nullptr, nullptr, work));
    if (row->layout == CoverLayout::kOwn) return simple;
    WL_ASSIGN_OR_RETURN(const Graph stored, channels_last(simple));
    return wl::simplify(stored, {}, nullptr, nullptr, work);
  }
  absl::StatusOr<std::vector<Cover>> covers(const Graph& graph, const Machine& machine, const std::string& cover,
                                            const CoverPrices& prices, Work* work) const override {
    WL_ASSIGN_OR_RETURN(const CoverRow* row, cover_named(cover));
    WL_RETURN_IF_ERROR(fits_cover(*row, graph));
    WL_ASSIGN_OR_RETURN(Cover greedy, cover_greedy(graph, machine, {.work = work}));
    std::vector<Cover> covers(1);
    WL_ASSIGN_OR_RETURN(covers[0], row->make({graph, machine, greedy, prices, pool_of(graph, machine, work), work}));
    // The graph of a group is not cut: its parts are not what it was cut into where it came from.
    if (row->layout == CoverLayout::kAsGiven) return covers;
    WL_ASSIGN_OR_RETURN(Cover parts, cover_one_per_op(graph, machine, work));
    if (row->above_greedy && covers[0].groups != greedy.groups && covers[0].groups != parts.groups)
      covers.push_back(std::move(greedy));
    covers.push_back(std::move(parts));
    return covers;
  }
  absl::StatusOr<CoverExplanation> explain(const Graph& graph, const Machine& machine, const std::string& cover,
                                           Work* work) const override {
    WL_ASSIGN_OR_RETURN(const CoverRow* row, cover_named(cover));
    WL_RETURN_IF_ERROR(fits_cover(*row, graph));
    WL_ASSIGN_OR_RETURN(const Cover greedy, cover_greedy(graph, machine, {.work = work}));
    WL_ASSIGN_OR_RETURN(const Cover made, row->make({graph, machine, greedy, {}, pool_of(graph, machine, work), work}));
    return wl::explain(graph, made, machine, work);
  }
  double modelled_ns(const Graph& group, const Machine& machine) const override {
    const absl::StatusOr<Domain> domain = analyze_group(group, machine);
    return domain.ok() ? 1e3 * cost_of(group, *domain, machine, rates_of(machine)).micros : 0;
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
  std::vector<std::string> simpler(const std::string& cover, bool relaid) const override {
    const absl::StatusOr<const CoverRow*> row = cover_named(cover);
    return row.ok() ? simpler_covers(**row, relaid) : std::vector<std::string>();
  }
  absl::Status known_cover(const std::string& name) const override { return cover_named(name).status(); }

 private:
  std::function<absl::StatusOr<std::shared_ptr<const ColumnPool>>()> pool_of(const Graph& graph, const Machine& m,
                                                                             Work* work) const {
    return [this, &graph, &m, work]() -> absl::StatusOr<std::shared_ptr<const ColumnPool>> {
      WL_ASSIGN_OR_RETURN(std::shared_ptr<const PooledGraph> pooled, pools_.of(graph, m, work));
      return std::shared_ptr<const ColumnPool>(pooled, &*pooled->pool);
    };
  }
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

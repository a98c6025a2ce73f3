// The compiler as the coordinator uses it: the covers of a graph, and for one group its candidates, their sources and
// its oracle. All functions are pure. It is an interface so that the job engine is tested without compiling anything.
// What may take long takes a Work, which may be null; if it ends before, its status is the answer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/base/records.h"
#include "compiler/base/work.h"
#include "compiler/cover/cover.h"
#include "compiler/cover/explain.h"
#include "compiler/cover/planned/prices.h"
#include "compiler/model/ranker.h"
#include "compiler/search/nearest.h"

namespace wl {

// The outcome of a trial, as far as a strategy may look at it.
struct PlanOutcome {
  std::string plan;
  bool correct = false;
  double ns = 0;
  CodeFacts code = {};
};

class GroupCompiler {
 public:
  virtual ~GroupCompiler() = default;
  // Analytic first choices, best first; the first is the default schedule. Never empty.
  virtual std::vector<std::string> seeds() const = 0;
  // At most n new plans; fewer when the space is exhausted. `trials` are in trial order. Depends on nothing but the
  // arguments.
  virtual std::vector<std::string> propose(const std::string& strategy, const std::vector<PlanOutcome>& trials, int n,
                                           uint64_t seed) const = 0;
  // The same plan as this version writes it; the text itself when it is no plan of this group's space.
  virtual std::string current(const std::string& plan) const { return plan; }
  // At most n plans that won for similar groups, nearest first.
  virtual std::vector<std::string> nearest(const std::vector<KnownPlan>& /*known*/, int /*n*/) const { return {}; }
  virtual absl::StatusOr<Source> generate(const std::string& plan) const = 0;
  virtual absl::StatusOr<Check> check(uint64_t seed) const = 0;  // may take seconds
  virtual std::string space_text() const = 0;                    // axes and count, for people
  virtual absl::StatusOr<std::string> kernel_text(const std::string& plan) const = 0;
};

class Compiler {
 public:
  virtual ~Compiler() = default;
  virtual absl::StatusOr<Graph> simplify(const Graph& graph) const = 0;
  // The graph to give to covers() and explain(): simplified, and with its values stored as `cover` wants them.
  virtual absl::StatusOr<Graph> laid_out(const Graph& graph, const std::string& /*cover*/, Work* /*work*/) const {
    return simplify(graph);
  }
  // The covers that launches are chosen from, group by group, once times are known. They are in order from the one that
  // fuses most to one kernel per op. The first is the one that `cover` names; `prices` are for a cover that refines().
  virtual absl::StatusOr<std::vector<Cover>> covers(const Graph& graph, const Machine& machine,
                                                    const std::string& cover, const CoverPrices& prices,
                                                    Work* work) const = 0;
  // Whether `cover` is chosen again with measured times.
  virtual bool refines(const std::string& cover) const = 0;
  // Simpler covers that `cover` is timed whole against, by name.
  virtual std::vector<std::string> simpler(const std::string& /*cover*/) const { return {}; }
  virtual absl::StatusOr<CoverExplanation> explain(const Graph& graph, const Machine& machine, const std::string& cover,
                                                   Work* work) const = 0;
  virtual absl::StatusOr<std::unique_ptr<GroupCompiler>> open(const Graph& group, const Machine& machine) const = 0;
  virtual absl::Status known_strategy(const std::string& name) const = 0;
  virtual absl::Status known_cover(const std::string& name) const = 0;
};

// The compiler of Warploom, without a learned cost model and with one.
const Compiler& warploom_compiler();
std::unique_ptr<Compiler> warploom_compiler(Ranker ranker);

}  // namespace wl

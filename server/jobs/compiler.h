// The compiler as the coordinator uses it: two covers of a graph, and for one group its candidates, their sources and
// its oracle. All pure. An interface so that the job engine is tested without compiling anything.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/base/records.h"
#include "compiler/cover/cover.h"
#include "compiler/cover/explain.h"
#include "compiler/cover/planned/prices.h"
#include "compiler/model/ranker.h"
#include "compiler/search/nearest.h"

namespace wl {

// What became of a plan, in trial order: what a strategy may look at.
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
  // At most n new plans; fewer when the space is exhausted. Depends on nothing but the arguments.
  virtual std::vector<std::string> propose(const std::string& strategy, const std::vector<PlanOutcome>& trials, int n,
                                           uint64_t seed) const = 0;
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
  // Covers to choose from group by group once times are known, from the one that fuses most to one kernel per op.
  // The first is the one that `cover` names, which known_cover() accepts; `prices` are for one that refines().
  virtual absl::StatusOr<std::vector<Cover>> covers(const Graph& graph, const Machine& machine,
                                                    const std::string& cover, const CoverPrices& prices) const = 0;
  // Whether measured times make `cover` another one.
  virtual bool refines(const std::string& cover) const = 0;
  virtual absl::StatusOr<CoverExplanation> explain(const Graph& graph, const Machine& machine,
                                                   const std::string& cover) const = 0;
  virtual absl::StatusOr<std::unique_ptr<GroupCompiler>> open(const Graph& group, const Machine& machine) const = 0;
  virtual absl::Status known_strategy(const std::string& name) const = 0;
  virtual absl::Status known_cover(const std::string& name) const = 0;
};

// The real one, without a learned cost model, and with one.
const Compiler& warploom_compiler();
std::unique_ptr<Compiler> warploom_compiler(Ranker ranker);

}  // namespace wl

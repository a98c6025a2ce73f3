// The compiler as the coordinator uses it: the covers of a graph, and the candidates, sources and oracle of a group.
// All functions are pure. The classes are interfaces, so that the job engine can be tested without compiling anything.
// Functions that may take long get a Work (compiler/base/work.h), which may be null; if the Work ends first, they
// return its status.
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

// The part of a trial's outcome that a strategy may use.
struct PlanOutcome {
  std::string plan;
  bool correct = false;
  double ns = 0;
  CodeFacts code = {};
};

class GroupCompiler {
 public:
  virtual ~GroupCompiler() = default;
  // Returns the plans to try first: the default schedule, then the plans that a model proposes, the best ones first.
  // Never empty.
  virtual std::vector<std::string> seeds() const = 0;
  // Returns at most n new plans; fewer if the space is exhausted. `trials` are in the order of their numbers. The
  // result depends on the arguments only.
  virtual std::vector<std::string> propose(const std::string& strategy, const std::vector<PlanOutcome>& trials, int n,
                                           uint64_t seed) const = 0;
  // Returns the plan as this version of the program writes it; unchanged if it is no plan of this group.
  virtual std::string current(const std::string& plan) const { return plan; }
  // Returns at most n plans of this space from winners of similar groups, those of the most similar groups first.
  virtual std::vector<std::string> nearest(const std::vector<KnownPlan>& /*known*/, int /*n*/) const { return {}; }
  virtual absl::StatusOr<Source> generate(const std::string& plan) const = 0;
  virtual absl::StatusOr<Check> check(uint64_t seed, Work* work) const = 0;  // makes the check for a seed
  virtual std::string space_text() const = 0;  // axes and number of points of the space, for people
  virtual absl::StatusOr<std::string> kernel_text(const std::string& plan) const = 0;
};

class Compiler {
 public:
  virtual ~Compiler() = default;
  virtual absl::StatusOr<Graph> simplify(const Graph& graph) const = 0;
  // Returns the graph for covers() and explain(): simplified, unless the cover keeps it as given, and with its values
  // in the layout that `cover` needs.
  virtual absl::StatusOr<Graph> laid_out(const Graph& graph, const std::string& /*cover*/, Work* /*work*/) const {
    return simplify(graph);
  }
  // Returns the covers from which launches are chosen, group by group, once times are known: from the one that fuses
  // most (the cover named `cover`) to one kernel per op. Only covers for which refines() is true use `prices`.
  virtual absl::StatusOr<std::vector<Cover>> covers(const Graph& graph, const Machine& machine,
                                                    const std::string& cover, const CoverPrices& prices,
                                                    Work* work) const = 0;
  // Whether `cover` is chosen again once kernels have measured times.
  virtual bool refines(const std::string& cover) const = 0;
  // Returns the names of the simpler covers against which `cover` is timed as a whole. If `relaid`, only those that
  // store values in another layout.
  virtual std::vector<std::string> simpler(const std::string& /*cover*/, bool /*relaid*/) const { return {}; }
  virtual absl::StatusOr<CoverExplanation> explain(const Graph& graph, const Machine& machine, const std::string& cover,
                                                   Work* work) const = 0;
  // Returns the time in ns that one launch of a group should take, by the model that prices covers; 0: no answer.
  virtual double modelled_ns(const Graph& /*group*/, const Machine& /*machine*/) const { return 0; }
  virtual absl::StatusOr<std::unique_ptr<GroupCompiler>> open(const Graph& group, const Machine& machine) const = 0;
  virtual absl::Status known_strategy(const std::string& name) const = 0;
  virtual absl::Status known_cover(const std::string& name) const = 0;
};

// Return Warploom's compiler: the first without a learned cost model, the second with one.
const Compiler& warploom_compiler();
std::unique_ptr<Compiler> warploom_compiler(Ranker ranker);

}  // namespace wl

// From a graph and a machine to what has to be known: the distinct groups of several covers, from the one that fuses
// most to the default (one kernel per op), their keys, and how launches of each pass values around. A pure function, so
// a restarted coordinator comes to the same plan; and from the records of those groups to the answer (assemble), which
// is one as well.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler/base/job.h"
#include "compiler/ir/graph.h"
#include "server/jobs/compiler.h"

namespace wl {

struct PlannedGroup {
  std::string key;
  std::string name;  // for people: its ops and the shape it makes
  Graph graph;
  std::string text;  // of the graph
  Problem problem;
  int64_t ops = 0, bytes = 0;
  double flops = 0;
  // Launches in the first cover, in the last (the default), and in those between.
  int64_t fused_count = 0, part_count = 0, between_count = 0;
  bool searched() const { return fused_count + between_count > 0; }  // not only measured, to compare with
};

// One kernel of a cover: which group, and the value of the whole graph behind every buffer of its problem.
struct PlannedLaunch {
  int group = 0;
  std::vector<NodeId> arguments;
  std::vector<NodeId> stores;
};

struct JobPlan {
  Graph graph;  // simplified
  std::string graph_hash;
  Device device;
  Machine machine;
  std::vector<PlannedGroup> groups;  // distinct, in order of first launch, cover by cover
  struct Level {
    std::vector<PlannedLaunch> launches;     // in an order that can run
    std::vector<std::vector<int>> parts_of;  // for every launch: those of the next level that it replaces
  };
  std::vector<Level> levels;  // a cover each; the last has no parts
  double enumerate_s = 0;
};

// Keys. All that may change a kernel's value or its time is in them or in the environment.
std::string problem_key(const Graph& group, const Device& device, const TuneOptions& options);
std::string environment_of(const Device& device);
// Of a whole answer: the graph by name and text, device, environment and policies; not how long was searched.
std::string result_key(const std::string& graph_text, const Device& device, const TuneOptions& options);

absl::StatusOr<JobPlan> make_plan(const std::string& graph_text, const TuneOptions& options, const Device& device,
                                  const Compiler& compiler, const CoverPrices& prices = {});

using Records = std::map<std::string, KernelRecord>;  // by key

struct Chosen {
  int level = 0, launch = 0;
  bool operator==(const Chosen&) const = default;
};
// The launches of the best whole that the records allow. A group that is slower than its parts (or their parts), or has
// no record, is replaced by them where the values they read exist. NotFound: some group has no correct kernel. Records
// of groups that are not measured yet may be missing.
absl::StatusOr<std::vector<Chosen>> choose_launches(const JobPlan& plan, const Records& records);

// Keys of the parts that choose_launches would run instead of fused groups: worth a search of their own.
std::set<std::string> parts_in_use(const JobPlan& plan, const std::vector<Chosen>& launches);

// Groups that their parts replace, each with one of these parts (indices of groups): what the part's search found may
// do for the whole as well.
std::set<std::pair<int, int>> replaced_groups(const JobPlan& plan, const std::vector<Chosen>& launches);

// `searched`: keys whose record this job made; the others' source is "cached". `transferred`: of these, the keys whose
// plan another environment's record had.
absl::StatusOr<JobResult> assemble(const JobPlan& plan, const Records& records, const std::set<std::string>& searched,
                                   const std::set<std::string>& transferred = {});

}  // namespace wl

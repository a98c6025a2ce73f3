// The plan of a job: the distinct groups of several covers of its graph (from the cover that fuses most to the default
// one, one kernel per op) with their keys, and the values that launches exchange. assemble() makes the job's result
// from the records of these groups. Planning and assembling are pure functions, so a restarted coordinator makes the
// same plan and the same result.
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
  std::string name;  // name of the group for people, by describe_group()
  Graph graph;
  std::string text;  // `graph` as text
  std::string kin;   // kin_of(text)
  Problem problem;
  int64_t ops = 0, bytes = 0;
  double flops = 0;
  double model_ns = 0;  // time in ns of one launch by the model of covers (compiler/model/cost.h); 0: it has no answer
  // Numbers of launches of the group: in the first cover, in the last (the default), and in those between.
  int64_t fused_count = 0, part_count = 0, between_count = 0;
  // Whether schedules of the group are searched. Of groups that only the last cover has, the default schedule alone is
  // measured.
  bool searched() const { return fused_count + between_count > 0; }
};

// One kernel launch of a cover: its group (an index in JobPlan::groups), the values of the whole graph that it passes
// as arguments (in the order of the problem's buffers), and the values that it stores.
struct PlannedLaunch {
  int group = 0;
  std::vector<NodeId> arguments;
  std::vector<NodeId> stores;
};

struct JobPlan {
  Graph graph;  // the job's graph, simplified, with its values in the layout that the cover needs
  std::string graph_hash;
  Device device;
  Machine machine;
  std::vector<PlannedGroup> groups;  // distinct groups, cover by cover, in order of first launch
  struct Level {
    std::vector<PlannedLaunch> launches;     // the cover's launches, in an order in which they can run
    std::vector<std::vector<int>> parts_of;  // for every launch, the launches of the next level that it replaces
  };
  // One level for each cover, from most to least fused; the launches of the last level have no parts.
  std::vector<Level> levels;
  // Whether groups are kept even if their parts, each timed by itself, are faster.
  bool keeps_groups = false;
  double enumerate_s = 0;  // seconds that planning took, set by the caller of make_plan() for reports
};

// Return the key and the environment of a group's record. The two together contain everything that may change what a
// kernel of the group computes, or its time.
std::string problem_key(const Graph& group, const Device& device, const TuneOptions& options);
std::string environment_of(const Device& device);
// Returns the id under which a team ("": none) stores the answer to a whole job: a hash of graph text, device,
// environment and options, but not of effort, trials and budget.
std::string result_key(const std::string& graph_text, const Device& device, const TuneOptions& options,
                       const std::string& team = "");

// Whether the job's cover is chosen again by measured times (Compiler::refines()).
bool chooses_again(const TuneOptions& options, const Compiler& compiler);

// Returns the planned group, with all numbers of launches zero.
PlannedGroup planned_group(Graph graph, const std::string& key);

// Makes the plan of a job. InvalidArgument: the graph or an option is invalid. NotFound: with Unmeasured::kNever, no
// cover has a measured kernel for every group. `work`: as in server/jobs/compiler.h.
absl::StatusOr<JobPlan> make_plan(const std::string& graph_text, const TuneOptions& options, const Device& device,
                                  const Compiler& compiler, const CoverPrices& prices = {}, Work* work = nullptr);

using Records = std::map<std::string, KernelRecord>;  // records of groups, by key

struct Chosen {
  int level = 0, launch = 0;
  bool operator==(const Chosen&) const = default;
};
// Returns the launches that compute the graph in the least time, as far as these records tell; some groups may not be
// measured yet. A group that has no record, or that is slower than its parts in the next covers, is replaced by these
// parts if the values that they read exist. With `keeps_groups`, only groups without a record are replaced. NotFound:
// a group has no correct kernel.
absl::StatusOr<std::vector<Chosen>> choose_launches(const JobPlan& plan, const Records& records);

// Returns the keys of the parts that choose_launches() runs instead of fused groups. They are worth a search.
std::set<std::string> parts_in_use(const JobPlan& plan, const std::vector<Chosen>& launches);

// Returns pairs of a group that is replaced by its parts and one of these parts, both as indices in JobPlan::groups.
// The winning plan of the part may suit the whole group, too.
std::set<std::pair<int, int>> replaced_groups(const JobPlan& plan, const std::vector<Chosen>& launches);

// Makes the result of a job. `searched`: keys whose records this job made; the source of all other keys is "cached".
// `transferred`: keys whose plan comes from a record of another environment; their source is "transferred".
absl::StatusOr<JobResult> assemble(const JobPlan& plan, const Records& records, const std::set<std::string>& searched,
                                   const std::set<std::string>& transferred = {});

}  // namespace wl

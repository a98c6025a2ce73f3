// The plan of a job: the distinct groups of several covers of its graph, from the cover that fuses most to the default
// (one kernel per op), with their keys and the values that launches pass on. assemble() makes the job's answer from the
// records of these groups. Both are pure functions, so a restarted coordinator makes the same plan and the same answer.
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
  std::string name;  // describe_group()
  Graph graph;
  std::string text;  // of the graph
  Problem problem;
  int64_t ops = 0, bytes = 0;
  double flops = 0;
  // Launches in the first cover, in the last (the default), and in those between.
  int64_t fused_count = 0, part_count = 0, between_count = 0;
  // Whether schedules of the group are searched. Of a group that occurs in the last cover alone only the default
  // schedule is measured.
  bool searched() const { return fused_count + between_count > 0; }
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
  // Whether a group of the first cover stays whole although its parts were faster, each by itself.
  bool keeps_groups = false;
  double enumerate_s = 0;  // how long planning took, set by who called make_plan() and reported to people
};

// Keys. A key or the environment contains everything that may change what a kernel computes or its time.
std::string problem_key(const Graph& group, const Device& device, const TuneOptions& options);
std::string environment_of(const Device& device);
// The id of a whole answer to a team ("" for none): graph text, device, environment and policies, but not how long was
// searched.
std::string result_key(const std::string& graph_text, const Device& device, const TuneOptions& options,
                       const std::string& team = "");

// What is planned of a group but how often it is launched.
PlannedGroup planned_group(Graph graph, const std::string& key);

// `work`: see compiler.h.
absl::StatusOr<JobPlan> make_plan(const std::string& graph_text, const TuneOptions& options, const Device& device,
                                  const Compiler& compiler, const CoverPrices& prices = {}, Work* work = nullptr);

using Records = std::map<std::string, KernelRecord>;  // by key

struct Chosen {
  int level = 0, launch = 0;
  bool operator==(const Chosen&) const = default;
};
// The launches that compute the graph in the least time by these records. A group that has no record or is slower than
// its parts (or their parts) is replaced by them where the values that they read exist. Records of groups that are not
// measured yet may be missing. A plan that keeps its groups replaces only those without a record. NotFound: some group
// has no correct kernel.
absl::StatusOr<std::vector<Chosen>> choose_launches(const JobPlan& plan, const Records& records);

// Keys of the parts that choose_launches() runs in place of fused groups. They are worth a search.
std::set<std::string> parts_in_use(const JobPlan& plan, const std::vector<Chosen>& launches);

// Groups that their parts replace, each with one of these parts (indices of groups). The plan that won for a part may
// suit the whole group as well.
std::set<std::pair<int, int>> replaced_groups(const JobPlan& plan, const std::vector<Chosen>& launches);

// `searched`: keys whose record this job made; the others' source is "cached". `transferred`: of these, the keys whose
// plan another environment's record had.
absl::StatusOr<JobResult> assemble(const JobPlan& plan, const Records& records, const std::set<std::string>& searched,
                                   const std::set<std::string>& transferred = {});

}  // namespace wl

#include "server/jobs/job_plan.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "absl/strings/numbers.h"
#include "compiler/base/names.h"
#include "compiler/base/sha256.h"
#include "compiler/cover/cover.h"
#include "compiler/ir/eval.h"
#include "compiler/ir/text.h"
#include "compiler/search/nearest.h"
#include "proto/limits.h"

namespace wl {
namespace {

constexpr uint64_t kGroupSteps = 50;  // steps of Work that making the text and key of one group costs
// The version of keys, to be raised when the ABI of kernels, the numerics policy or the way of measuring changes.
constexpr int kKeyVersion = 1;
// The name of the way in which products of f32 are rounded. There is only one way now; its name stays part of keys, so
// that existing records are found.
constexpr std::string_view kProducts = "strict";

class PlanBuilder {
 public:
  PlanBuilder(JobPlan* plan, const TuneOptions& options, const Compiler& compiler)
      : plan_(plan), options_(options), compiler_(compiler) {}

  // Plans a launch of a group. `counted`: the member of PlannedGroup that counts this launch.
  PlannedLaunch add(const Group& group, int64_t PlannedGroup::*counted) {
    Graph graph = extract(plan_->graph, group);
    const std::string key = problem_key(graph, plan_->device, options_);
    const auto [known, is_new] = by_key_.try_emplace(key, static_cast<int>(plan_->groups.size()));
    if (is_new) {
      const double model_ns = compiler_.modelled_ns(graph, plan_->machine);
      plan_->groups.push_back(planned_group(std::move(graph), key));
      plan_->groups.back().model_ns = model_ns;
    }
    PlannedGroup& planned = plan_->groups[known->second];
    ++(planned.*counted);
    PlannedLaunch launch;
    launch.group = known->second;
    launch.stores = group.stores;
    for (const BufferSpec& buffer : planned.problem.buffers) {
      const std::vector<NodeId>& values = buffer.output ? group.stores : group.reads;
      size_t number = 0;
      WL_CHECK(absl::SimpleAtoi(buffer.name.substr(1), &number) && number < values.size(), "buffer ", buffer.name);
      launch.arguments.push_back(values[number]);
    }
    return launch;
  }

 private:
  JobPlan* plan_;
  const TuneOptions& options_;
  const Compiler& compiler_;
  std::unordered_map<std::string, int> by_key_;
};

// Returns for every launch of the cover `fused` its parts, which are launches of the cover `parts`. A part belongs to
// the fused launch that computes the values that the part stores. If no launch computes them, because fusion made them
// unnecessary, the part belongs to the launch that has most ops in common with it.
std::vector<std::vector<int>> match_parts(const Cover& fused, const Cover& parts) {
  std::unordered_map<NodeId, std::vector<size_t>> computed_by;
  for (size_t f = 0; f < fused.groups.size(); ++f)
    for (NodeId op : fused.groups[f].ops) computed_by[op].push_back(f);
  std::vector<std::vector<int>> parts_of(fused.groups.size());
  for (size_t p = 0; p < parts.groups.size(); ++p) {
    const Group& part = parts.groups[p];
    std::map<size_t, size_t> shared;
    for (NodeId op : part.ops)
      for (size_t f : computed_by[op]) ++shared[f];
    for (NodeId op : part.stores)
      for (size_t f : computed_by[op]) shared[f] += part.ops.size();
    size_t best = 0, best_shared = 0;
    for (const auto& [f, count] : shared) {
      if (count <= best_shared) continue;
      best = f;
      best_shared = count;
    }
    if (best_shared > 0) parts_of[best].push_back(static_cast<int>(p));
  }
  return parts_of;
}

}  // namespace

std::string problem_key(const Graph& group, const Device& device, const TuneOptions& options) {
  Encoder key("warploom.problem", kKeyVersion);
  key.text(graph_hash(group)).text(device.fingerprint()).text(kProducts).text(options.cold ? "cold" : "warm");
  // A device without vendor libraries adds nothing to the key, so that keys of records without them stay the same.
  if (!device.libraries.empty()) key.text(device.libraries);
  return key.hash();
}

std::string environment_of(const Device& device) {
  return device.libraries.empty() ? device.compiler_versions : cat(device.compiler_versions, "; ", device.libraries);
}

std::string result_key(const std::string& graph_text, const Device& device, const TuneOptions& options,
                       const std::string& team) {
  Encoder key("warploom.result", kKeyVersion);
  key.text(graph_text)
      .text(device.fingerprint())
      .text(environment_of(device))
      .text(kProducts)
      .text(options.cold ? "cold" : "warm")
      .text(options.cover);
  if (options.kernels_alone) key.text("kernels alone");
  if (!team.empty())
    key.text(team);  // Answers for callers without a team keep the ids that they had before there were teams.
  return key.hash();
}

bool chooses_again(const TuneOptions& options, const Compiler& compiler) {
  return effort_of(options).compares && compiler.refines(options.cover);
}

PlannedGroup planned_group(Graph graph, const std::string& key) {
  PlannedGroup planned;
  planned.key = key;
  planned.name = describe_group(graph);
  planned.text = print(graph);
  planned.kin = kin_of(planned.text);
  planned.problem = {key, buffers_of(graph)};
  planned.bytes = bytes_moved(graph);
  planned.flops = flops_of(graph);
  for (const Node& node : graph.nodes)
    planned.ops += class_of(node.op) != OpClass::kLeaf && class_of(node.op) != OpClass::kView;
  planned.ops = std::max<int64_t>(planned.ops, 1);
  planned.graph = std::move(graph);
  return planned;
}

absl::StatusOr<JobPlan> make_plan(const std::string& graph_text, const TuneOptions& options, const Device& device,
                                  const Compiler& compiler, const CoverPrices& prices, Work* work) {
  JobPlan plan;
  plan.device = device;
  WL_ASSIGN_OR_RETURN(plan.machine, machine_of(device));
  WL_ASSIGN_OR_RETURN(Graph whole, parse(graph_text));
  for (NodeId id : whole.inputs())
    WL_RETURN_IF_ERROR(check_text("graph: name of an input", whole.nodes[id].text, TextKind::kName, kMostName));
  for (const Output& output : whole.outputs)
    WL_RETURN_IF_ERROR(check_text("graph: name of an output", output.name, TextKind::kName, kMostName));
  plan.graph_hash = graph_hash(whole);
  WL_ASSIGN_OR_RETURN(plan.graph, compiler.laid_out(whole, options.cover, work));
  WL_ASSIGN_OR_RETURN(std::vector<Cover> covers,
                      compiler.covers(plan.graph, plan.machine, options.cover, prices, work));
  PlanBuilder builder(&plan, options, compiler);
  // A group that only stores inputs needs no kernel: the input's buffer serves as such an output.
  const auto nothing_to_do = [&](const Group& group) {
    return std::all_of(group.stores.begin(), group.stores.end(),
                       [&](NodeId id) { return plan.graph.nodes[id].op == Op::input; });
  };
  for (size_t level = 0; level < covers.size(); ++level) {
    std::erase_if(covers[level].groups, nothing_to_do);
    const auto counted = level == 0                  ? &PlannedGroup::fused_count
                         : level + 1 < covers.size() ? &PlannedGroup::between_count
                                                     : &PlannedGroup::part_count;
    plan.levels.emplace_back();
    for (const Group& group : covers[level].groups) {
      if (!go_on(work, kGroupSteps)) return work->status();
      plan.levels.back().launches.push_back(builder.add(group, counted));
    }
  }
  for (size_t level = 0; level + 1 < covers.size(); ++level)
    plan.levels[level].parts_of = match_parts(covers[level], covers[level + 1]);
  return plan;
}

}  // namespace wl

// Makes the result of a job from its plan and the records of its groups.
#include <algorithm>

#include "server/jobs/job_plan.h"

namespace wl {
namespace {

// A fused group is replaced by its parts (groups of a less fused cover) only if their total time is below this share of
// the group's time, so that the gain is more than noise.
constexpr double kSplitGain = 0.97;

double default_of(const KernelRecord& record) {
  return median_of(record.default_samples_ns);
}

// Returns the launches of the default cover (the last level) that the launch `at` of any cover replaces.
std::vector<int> default_parts(const JobPlan& plan, Chosen at) {
  if (at.level + 1 == static_cast<int>(plan.levels.size())) return {at.launch};
  std::vector<int> parts;
  for (int part : plan.levels[at.level].parts_of[at.launch])
    for (int own : default_parts(plan, {at.level + 1, part})) parts.push_back(own);
  return parts;
}

class Chooser {
 public:
  Chooser(const JobPlan& plan, const Records& records) : plan_(plan), records_(records) {
    available_.assign(plan.graph.nodes.size(), false);
    for (NodeId input : plan.graph.inputs()) available_[input] = true;
  }

  absl::StatusOr<std::vector<Chosen>> choose() {
    for (int launch = 0; launch < static_cast<int>(plan_.levels[0].launches.size()); ++launch)
      if (!run({0, launch})) return whole_default();
    return chosen_;
  }

 private:
  const PlannedLaunch& launch_of(Chosen at) const { return plan_.levels[at.level].launches[at.launch]; }

  const KernelRecord* record_of(Chosen at) const {
    const auto found = records_.find(plan_.groups[launch_of(at).group].key);
    return found == records_.end() ? nullptr : &found->second;
  }

  std::vector<Chosen> parts_of(Chosen at) const {
    std::vector<Chosen> parts;
    if (at.level + 1 < static_cast<int>(plan_.levels.size()))
      for (int part : plan_.levels[at.level].parts_of[at.launch]) parts.push_back({at.level + 1, part});
    return parts;
  }

  // Returns the time in ns of a launch's parts, where each part is itself split again if that is faster; -1 if a part
  // has no record.
  double parts_time(Chosen at) const {
    double sum = 0;
    for (Chosen part : parts_of(at)) {
      const double best = best_time(part);
      if (best < 0) return -1;
      sum += best;
    }
    return sum;
  }

  bool splits(Chosen at) const {
    const std::vector<Chosen> parts = parts_of(at);
    if (parts.empty()) return false;
    const double parts_ns = parts_time(at);
    const KernelRecord* own = record_of(at);
    // If the group's only part is the same group on the next level, that level decides whether the group is split.
    if (parts.size() == 1 && launch_of(parts[0]).group == launch_of(at).group) return splits(parts[0]);
    if (parts_ns < 0 || own == nullptr) return parts_ns >= 0;
    if (plan_.keeps_groups) return false;
    return parts_ns < kSplitGain * undisturbed_ns(own->samples_ns) || is_slower_than_default(at, *own);
  }

  // Whether a launch's median time is above the sum of the medians of the default launches that it replaces. People
  // see medians, and would take such a launch for a slow one.
  bool is_slower_than_default(Chosen at, const KernelRecord& own) const {
    double ns = 0;
    for (int part : default_parts(plan_, at)) {
      const auto found = records_.find(plan_.groups[plan_.levels.back().launches[part].group].key);
      if (found == records_.end()) return false;
      ns += default_of(found->second);
    }
    return ns > 0 && median_of(own.samples_ns) > ns;
  }

  double best_time(Chosen at) const {
    if (splits(at)) return parts_time(at);
    const KernelRecord* own = record_of(at);
    return own == nullptr ? -1 : undisturbed_ns(own->samples_ns);
  }

  // Chooses a launch, or its parts if they are faster and every value that they read is available: as a graph input or
  // stored by a chosen launch. Returns false, and changes nothing, if neither the launch nor its parts can run.
  bool run(Chosen at) {
    if (splits(at)) {
      const std::vector<bool> available = available_;
      const size_t before = chosen_.size();
      const std::vector<Chosen> parts = parts_of(at);
      const auto stored = [&](NodeId value) { return available_[value]; };
      const std::vector<NodeId>& stores = launch_of(at).stores;
      if (std::all_of(parts.begin(), parts.end(), [&](Chosen part) { return run(part); }) &&
          std::all_of(stores.begin(), stores.end(), stored))
        return true;
      available_ = available;
      chosen_.resize(before);
    }
    if (record_of(at) == nullptr) return false;
    const PlannedLaunch& launch = launch_of(at);
    const auto exists = [&](NodeId value) {
      return available_[value] || std::find(launch.stores.begin(), launch.stores.end(), value) != launch.stores.end();
    };
    if (!std::all_of(launch.arguments.begin(), launch.arguments.end(), exists)) return false;
    for (NodeId value : launch.stores) available_[value] = true;
    chosen_.push_back(at);
    return true;
  }

  absl::StatusOr<std::vector<Chosen>> whole_default() const {
    std::vector<Chosen> launches;
    const int last = static_cast<int>(plan_.levels.size()) - 1;
    for (int p = 0; p < static_cast<int>(plan_.levels.back().launches.size()); ++p) {
      if (record_of({last, p}) == nullptr) {
        return absl::NotFoundError(
            cat("no correct kernel was found for the group\n", plan_.groups[launch_of({last, p}).group].text));
      }
      launches.push_back({last, p});
    }
    return launches;
  }

  const JobPlan& plan_;
  const Records& records_;
  std::vector<bool> available_;
  std::vector<Chosen> chosen_;
};

class Assembler {
 public:
  Assembler(const JobPlan& plan, const Records& records, const std::set<std::string>& searched,
            const std::set<std::string>& transferred)
      : plan_(plan), records_(records), searched_(searched), transferred_(transferred) {
    buffer_of_.assign(plan.graph.nodes.size(), -1);
    double measured = 0, modelled = 0;
    for (const PlannedGroup& group : plan.groups) {
      const auto found = records.find(group.key);
      if (found == records.end() || group.model_ns <= 0 || group.part_count == 0) continue;
      measured += default_of(found->second);
      modelled += group.model_ns;
    }
    if (modelled > 0) model_errs_ = measured / modelled;
  }

  absl::StatusOr<JobResult> run() {
    WL_ASSIGN_OR_RETURN(const std::vector<Chosen> launches, choose_launches(plan_, records_));
    for (NodeId input : plan_.graph.inputs()) {
      const int buffer = add_buffer(input, plan_.graph.nodes[input].text, ResultBuffer::Kind::kInput);
      result_.inputs.push_back({plan_.graph.nodes[input].text, buffer});
    }
    name_outputs();
    for (Chosen chosen : launches) add_step(chosen);
    for (const Output& output : plan_.graph.outputs) {
      WL_CHECK(buffer_of_[output.node] >= 0, "no launch stores output ", output.name);
      result_.outputs.push_back({output.name, buffer_of_[output.node]});
    }
    add_totals();
    return std::move(result_);
  }

 private:
  int add_buffer(NodeId value, std::string name, ResultBuffer::Kind kind) {
    const Node& node = plan_.graph.nodes[value];
    buffer_of_[value] = static_cast<int>(result_.buffers.size());
    result_.buffers.push_back({std::move(name), node.dtype, node.shape, kind});
    return buffer_of_[value];
  }

  // Makes the buffers of outputs. Outputs that share a value share a buffer, which has the name of the first of them.
  void name_outputs() {
    for (const Output& output : plan_.graph.outputs) {
      if (buffer_of_[output.node] < 0) add_buffer(output.node, output.name, ResultBuffer::Kind::kOutput);
    }
  }

  void add_step(Chosen chosen) {
    const PlannedLaunch& launch = plan_.levels[chosen.level].launches[chosen.launch];
    Step step;
    step.group = group_result(launch.group, chosen);
    for (NodeId value : launch.arguments) {
      if (buffer_of_[value] < 0) {
        add_buffer(value, cat("t", intermediates_++), ResultBuffer::Kind::kIntermediate);
      }
      step.arguments.push_back(buffer_of_[value]);
    }
    result_.steps.push_back(std::move(step));
    ++result_.groups[result_.steps.back().group].count;
  }

  int group_result(int group, Chosen chosen) {
    const auto [known, is_new] = result_of_.try_emplace(group, static_cast<int>(result_.groups.size()));
    if (!is_new) return known->second;
    const PlannedGroup& planned = plan_.groups[group];
    const KernelRecord& record = records_.at(planned.key);
    GroupResult out = group_of(record);
    out.key = planned.key;
    out.graph = planned.text;
    out.ops = planned.ops;
    out.source = transferred_.contains(planned.key) ? "transferred"
                 : searched_.contains(planned.key)  ? "searched"
                                                    : "cached";
    out.bytes = planned.bytes;
    out.flops = planned.flops;
    const std::vector<int> parts = default_parts(plan_, chosen);
    for (int p : parts) {
      const PlannedGroup& part = plan_.groups[plan_.levels.back().launches[p].group];
      ++out.kernels_default;
      out.bytes_default += part.bytes;
      const auto found = records_.find(part.key);
      out.default_estimated |= found == records_.end();
      out.default_ns += found == records_.end() ? model_errs_ * part.model_ns : default_of(found->second);
    }
    if (parts.empty()) {
      out.kernels_default = 1;
      out.bytes_default = planned.bytes;
      out.default_ns = default_of(record);
    }
    result_.groups.push_back(std::move(out));
    return known->second;
  }

  void add_totals() {
    JobResult& out = result_;
    for (const GroupResult& group : out.groups) {
      out.kernels_default += group.count * group.kernels_default;
      out.kernels += group.count * group.kernels;
      out.bytes_default += group.count * group.bytes_default;
      out.bytes += group.count * group.bytes;
      out.default_ns += static_cast<double>(group.count) * group.default_ns;
      out.default_estimated |= group.default_estimated;
      out.best_ns += static_cast<double>(group.count) * group.best_ns;
    }
    for (const PlannedGroup& group : plan_.groups) {
      const auto found = records_.find(group.key);
      if (found == records_.end()) continue;
      for (int64_t count : found->second.outcomes) out.trials += count;
      out.compile_s += found->second.compile_s;
      out.check_s += found->second.check_s;
      out.measure_s += found->second.measure_s;
    }
    out.graph_hash = plan_.graph_hash;
    out.enumerate_s = plan_.enumerate_s;
    out.device = plan_.device;
    out.environment = environment_of(plan_.device);
    out.warploom_version = WARPLOOM_VERSION;
  }

  const JobPlan& plan_;
  const Records& records_;
  const std::set<std::string>& searched_;
  const std::set<std::string>& transferred_;
  JobResult result_;
  std::vector<int> buffer_of_;
  // The measured time of default schedules as a multiple of the modelled time, of the last cover's groups that have a
  // record; the time of the others is estimated with it.
  double model_errs_ = 1;
  std::map<int, int> result_of_;
  int intermediates_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<Chosen>> choose_launches(const JobPlan& plan, const Records& records) {
  return Chooser(plan, records).choose();
}

std::set<std::string> parts_in_use(const JobPlan& plan, const std::vector<Chosen>& launches) {
  std::set<std::string> keys;
  for (Chosen chosen : launches)
    if (chosen.level > 0) keys.insert(plan.groups[plan.levels[chosen.level].launches[chosen.launch].group].key);
  return keys;
}

std::set<std::pair<int, int>> replaced_groups(const JobPlan& plan, const std::vector<Chosen>& launches) {
  std::set<std::pair<int, int>> replaced;
  for (Chosen chosen : launches) {
    const int part = plan.levels[chosen.level].launches[chosen.launch].group;
    for (int level = chosen.level - 1, below = chosen.launch; level >= 0; --level) {
      const std::vector<std::vector<int>>& parts_of = plan.levels[level].parts_of;
      const auto whole = std::find_if(parts_of.begin(), parts_of.end(), [&](const std::vector<int>& parts) {
        return std::find(parts.begin(), parts.end(), below) != parts.end();
      });
      if (whole == parts_of.end()) break;
      below = static_cast<int>(whole - parts_of.begin());
      const int group = plan.levels[level].launches[below].group;
      if (group != part) replaced.insert({group, part});
    }
  }
  return replaced;
}

absl::StatusOr<JobResult> assemble(const JobPlan& plan, const Records& records, const std::set<std::string>& searched,
                                   const std::set<std::string>& transferred) {
  return Assembler(plan, records, searched, transferred).run();
}

}  // namespace wl
